/** A chat for the AI SDK's `useChat`: its requests come in, the agent's sessions are what they mean. */
import {
  isSDKError,
  requireKnownOptions,
  SDKError,
  type AgentRun,
  type ApprovalDecision,
  type OptionNames,
  type Principal,
} from '@lousho/contract';
import type { Agent, AgentSession, SessionOptions } from '@lousho/core';
import { Answers, ownPart, restOf, type Answer, type Begin } from './answers.ts';
import { guard, type Authorize } from './authorize.ts';
import { readChatRequest, type ChatRequest, type PageDecision } from './chat-request.ts';
import { eventStream } from './event-stream.ts';
import { bodyReader, readDecision, refuse } from './request-body.ts';
import { json, nothing, reporter } from './responses.ts';
import { router, type Handler } from './routing.ts';
import { uiMessages } from './transcript-ui.ts';
import type { UIChunk } from './ui-messages.ts';

export interface ChatHandlerOptions {
  /** Asked for every request, before anything of the conversation is read or done. */
  readonly authorize: Authorize;
  /** Where the handler is mounted. Default `'/api/chat'`. */
  readonly basePath?: string | undefined;
  /** What a message does that comes during a turn of this process. Default `'wait'`. */
  readonly turnPolicy?: SessionOptions['turnPolicy'];
  /** Keeps a platform from ending the process while an answer is made, for example `ctx.waitUntil` of a Worker. */
  readonly waitUntil?: ((work: Promise<void>) => void) | undefined;
  /** Of a request's body; a page posts its whole conversation each time. Default 20 MiB (20,971,520). */
  readonly maxBodyBytes?: number | undefined;
  /** What went wrong and is not the client's fault. Default: `console.error`. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const everyOption: OptionNames<ChatHandlerOptions> = {
  authorize: true,
  basePath: true,
  turnPolicy: true,
  waitUntil: true,
  maxBodyBytes: true,
  onError: true,
};

/**
 * `POST <base>` takes a message or decisions and streams the answer, `GET <base>/:id` gives the conversation, `GET <base>/:id/stream` an
 * answer under way from its beginning, `POST <base>/:id/stop` stops it, `POST <base>/:id/approvals/:approvalId` decides. A page that goes
 * away stops nothing. @throws LOUSHO_CONFIG_INVALID
 */
export function createChatHandler(agent: Agent, options: ChatHandlerOptions): Handler {
  requireKnownOptions('', options, everyOption);
  const { basePath = '/api/chat' } = options;
  const onError = reporter(options.onError);
  const readBody = bodyReader(options.maxBodyBytes);
  const allowed = guard(options.authorize);
  const chats = new Chats(agent, options, onError);
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

class Chats {
  readonly #answers: Answers;

  constructor(
    readonly agent: Agent,
    readonly options: ChatHandlerOptions,
    onError: (error: unknown) => void,
  ) {
    this.#answers = new Answers(onError);
  }

  async take(posted: ChatRequest, principal: Principal | undefined): Promise<Response> {
    const answer =
      posted.said.length > 0 ? await this.#send(posted, principal) : await this.#decide(posted, principal);
    return stream(ownPart(answer), posted.chatId);
  }

  async decideOne(
    chatId: string,
    decision: ApprovalDecision,
    principal: Principal | undefined,
  ): Promise<Response> {
    await this.#decideLast(chatId, { ...decision, ...decidedBy(principal) });
    return json({ decided: decision.id });
  }

  async load(chatId: string): Promise<Response> {
    const underWay = this.#underWay(chatId);
    if (underWay !== undefined) underWay.awaitedBy += 1;
    const approvals = await this.agent.approvals.list({ sessionId: chatId });
    const messages = await this.#session(chatId).messages({ includePending: true });
    const shown = uiMessages(messages, approvals);
    const last = shown.at(-1);
    // Whoever comes back to the answer gets all of it, in the place of what there is.
    const isOfAnswer = underWay !== undefined && last?.role === 'assistant';
    return json({
      messages: isOfAnswer ? [...shown.slice(0, -1), { ...last, id: underWay.messageId }] : shown,
    });
  }

  /** Of an answer whose process died, this goes on with it. */
  async reconnect(chatId: string, startIndex: number | undefined): Promise<Response> {
    const session = this.#session(chatId);
    const known = this.#answers.of(chatId);
    const isAwaited = known !== undefined && (known.awaitedBy > 0 || startIndex !== undefined);
    if (known !== undefined && known.awaitedBy > 0) known.awaitedBy -= 1;
    const before = await session.messages({ includePending: true });
    // One that is over is of use to nobody once the conversation was forgotten or went on elsewhere.
    const isWanted = isAwaited && uiMessages(before).at(-1)?.id === known.messageId;
    if (known !== undefined && (!known.log.isOver || isWanted))
      return stream(restOf(known, startIndex), chatId);
    if ((await session.pending())?.status !== 'in-progress') return nothing();
    const answer = await this.#begin(session, session.streamResume(), { before, isShown: false });
    return stream(restOf(answer), chatId);
  }

  async stop(chatId: string): Promise<Response> {
    const answer = this.#underWay(chatId);
    answer?.stop();
    return json({ stopped: answer !== undefined });
  }

  async #send(
    { chatId, messageId, said, trigger }: ChatRequest,
    principal: Principal | undefined,
  ): Promise<Answer> {
    if (trigger === 'regenerate-message')
      refuse('trigger', trigger, "'submit-message': what an answer has done cannot be taken back");
    const session = this.#session(chatId);
    // Posted again, they are the same messages.
    const inputId = said.map(({ id }) => id).join(' ');
    const start = async (): Promise<Answer> => {
      const before = await session.messages({ includePending: true });
      const input = said.map(({ message }) => message);
      const run = session.stream(input, {
        inputId,
        ...(principal === undefined ? undefined : { principal }),
      });
      return this.#begin(session, run, { messageId, before, isShown: false });
    };
    try {
      return await start();
    } catch (error) {
      if (!isSDKError(error, 'LOUSHO_SESSION_TURN_FAILED')) throw error;
      // A person who goes on after a failure wants it tried again: what it had done must not be forgotten.
      await session.resume();
      return start();
    }
  }

  /** A page says old decisions again: those that nothing waits for are left out. The last one goes on with the run. */
  async #decide(
    { chatId, messageId, decisions }: ChatRequest,
    principal: Principal | undefined,
  ): Promise<Answer> {
    const open = await this.agent.approvals.list({ sessionId: chatId });
    const given = decisions.filter(({ id }) => open.some((request) => request.id === id));
    // Of none that is open, the last one says why.
    const last = given.at(-1) ?? decisions.at(-1);
    if (last === undefined) return refuse('messages', 'nothing new', 'a message of the user, or a decision');
    const decide = ({ id, approved, reason }: PageDecision): ApprovalDecision => {
      const isQuestion = open.some((request) => request.id === id && request.kind === 'question');
      // A page has no other place for an answer.
      const words = isQuestion && approved ? { answer: reason } : { note: reason };
      return { id, approved, ...(reason === undefined ? undefined : words), ...decidedBy(principal) };
    };
    for (const decision of given.slice(0, -1)) await this.agent.approvals.resolve(decide(decision));
    return this.#decideLast(chatId, decide(last), { messageId });
  }

  async #decideLast(
    chatId: string,
    decision: ApprovalDecision,
    about: Pick<Begin, 'messageId'> = {},
  ): Promise<Answer> {
    const session = this.#session(chatId);
    // The id of an approval begins with that of its chat. One of another chat is, to this one, none that ever was.
    if (!decision.id.startsWith(`${chatId}.`))
      throw new SDKError('LOUSHO_APPROVAL_NOT_FOUND', { approvalId: decision.id });
    const before = await session.messages({ includePending: true });
    const run = this.agent.approvals.streamResolve(decision);
    return this.#begin(session, run, { ...about, before, isShown: true });
  }

  async #begin(session: AgentSession, run: AgentRun, about: Omit<Begin, 'committed'>): Promise<Answer> {
    const committed = (): ReturnType<AgentSession['messages']> => session.messages();
    const answer = await this.#answers.begin(session.id, run, { ...about, committed });
    this.options.waitUntil?.(answer.done);
    return answer;
  }

  #underWay(chatId: string): Answer | undefined {
    const answer = this.#answers.of(chatId);
    return answer?.log.isOver === false ? answer : undefined;
  }

  #session(id: string): AgentSession {
    return this.agent.session({ id, turnPolicy: this.options.turnPolicy });
  }
}

function decidedBy(principal: Principal | undefined): { readonly by?: string } {
  return principal === undefined ? {} : { by: principal.id };
}

/** How many chunks the client has had, as `WorkflowChatTransport` counts them. */
function startIndexOf(request: Request): number | undefined {
  const given = new URL(request.url).searchParams.get('startIndex');
  if (given === null) return undefined;
  const count = Number(given);
  if (!Number.isSafeInteger(count) || count < 0) refuse('startIndex', given, 'a whole number, 0 or more');
  return count;
}

function stream(chunks: AsyncIterable<UIChunk>, chatId: string): Response {
  return eventStream(chunks, {
    encode: (chunk) => `data: ${JSON.stringify(chunk)}`,
    headers: { 'x-vercel-ai-ui-message-stream': 'v1', 'x-workflow-run-id': chatId },
    end: 'data: [DONE]',
  });
}
