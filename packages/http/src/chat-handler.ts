/** A chat for the AI SDK's `useChat`: its requests come in, the agent's sessions are what they mean. */
import { platformClock, requireKnownOptions, type Clock, type OptionNames } from '@lousho/contract';
import type { Agent } from '@lousho/core';
import { guard, type Authorize } from './authorize.ts';
import { readChatRequest } from './chat-request.ts';
import { Chats } from './chats.ts';
import { bodyReader, readDecision, refuse } from './request-body.ts';
import { reporter } from './responses.ts';
import { router, type Handler } from './routing.ts';

export interface ChatHandlerOptions {
  /** Asked for every request, before anything of the conversation is read or done. */
  readonly authorize: Authorize;
  /** Where the handler is mounted. Default `'/api/chat'`. */
  readonly basePath?: string | undefined;
  /** Keeps a platform from ending the process while an answer is made, for example `ctx.waitUntil` of a Worker. */
  readonly waitUntil?: ((work: Promise<void>) => void) | undefined;
  /** Of a request's body; a page posts its whole conversation each time. Default 20 MiB (20,971,520). */
  readonly maxBodyBytes?: number | undefined;
  /** What went wrong and is not the client's fault. Default: `console.error`. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** For tests. Default: the platform's. */
  readonly clock?: Clock | undefined;
}

const everyOption: OptionNames<ChatHandlerOptions> = {
  authorize: true,
  basePath: true,
  waitUntil: true,
  maxBodyBytes: true,
  onError: true,
  clock: true,
};

/**
 * `POST <base>` takes a message or decisions and streams the answer, `GET <base>/:id` gives the conversation, `GET <base>/:id/stream` an
 * answer under way from its beginning, `POST <base>/:id/stop` stops it, `POST <base>/:id/approvals/:approvalId` decides. A page that goes
 * away stops nothing. @throws LOUSHO_CONFIG_INVALID
 */
export function createChatHandler(agent: Agent, options: ChatHandlerOptions): Handler {
  requireKnownOptions('', options, everyOption);
  const { basePath = '/api/chat', waitUntil = () => undefined, clock = platformClock } = options;
  const onError = reporter(options.onError);
  const readBody = bodyReader(options.maxBodyBytes);
  const allowed = guard(options.authorize);
  const chats = new Chats(agent, { waitUntil, onError, clock });
  return router(
    [
      {
        method: 'POST',
        path: '',
        async handle(request) {
          const posted = readChatRequest(await readBody(request));
          const action = posted.said.length > 0 ? 'send' : 'decide';
          return allowed(request, { action, sessionId: posted.chatId }, (principal) =>
            chats.take(posted, principal),
          );
        },
      },
      {
        method: 'GET',
        path: ':id',
        handle: (request, { id = '' }) =>
          allowed(request, { action: 'read', sessionId: id }, () => chats.load(id)),
      },
      {
        method: 'GET',
        path: ':id/stream',
        handle: (request, { id = '' }) =>
          allowed(request, { action: 'read', sessionId: id }, () =>
            chats.reconnect(id, startIndexOf(request)),
          ),
      },
      {
        method: 'POST',
        path: ':id/stop',
        handle: (request, { id = '' }) =>
          allowed(request, { action: 'stop', sessionId: id }, () => chats.stop(id)),
      },
      {
        method: 'POST',
        path: ':id/approvals/:approvalId',
        handle: (request, { id = '', approvalId = '' }) =>
          allowed(request, { action: 'decide', sessionId: id }, async (principal) =>
            chats.decideOne(id, { ...readDecision(await readBody(request)), id: approvalId }, principal),
          ),
      },
    ],
    { basePath, onError },
  );
}

/** How many chunks the client has had, as `WorkflowChatTransport` counts them. */
function startIndexOf(request: Request): number | undefined {
  const given = new URL(request.url).searchParams.get('startIndex');
  if (given === null) return undefined;
  const count = Number(given);
  if (!Number.isSafeInteger(count) || count < 0) refuse('startIndex', given, 'a whole number, 0 or more');
  return count;
}
