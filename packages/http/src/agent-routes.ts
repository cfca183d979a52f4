/** An agent's sessions and approvals as plain JSON over HTTP: for services, scripts and back offices. */
import {
  requireKnownOptions,
  type AgentEvent,
  type AgentInput,
  type AgentRun,
  type ExecutionResult,
  type JsonObject,
  type Principal,
} from '@lousho/contract';
import type { Agent } from '@lousho/core';
import { guard, type Authorize } from './authorize.ts';
import { begunRun } from './begun-run.ts';
import { eventStream } from './event-stream.ts';
import { ReplayLog } from './replay-log.ts';
import { bodyReader, readDecision, refuse, requireObject, type JsonFields } from './request-body.ts';
import { json, nothing, reporter } from './responses.ts';
import { router, type Handler } from './routing.ts';
import { Running } from './running.ts';

export interface AgentRoutesOptions {
  /** Asked for every request, before anything of a conversation is read or done. */
  readonly authorize: Authorize;
  /** Where the routes are mounted. Default: at the root. */
  readonly basePath?: string | undefined;
  /** Of a request's body. Default 20 MiB (20,971,520). */
  readonly maxBodyBytes?: number | undefined;
  /** What went wrong and is not the client's fault. Default: `console.error`. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * `POST /sessions/:id/messages` sends `{ input, inputId?, metadata? }` and gives the result, or the events when the client accepts an event
 * stream; `POST /sessions/:id/resume`, `POST /sessions/:id/stop`, `GET /sessions/:id/messages`, `DELETE /sessions/:id`, `GET /pending`,
 * `GET /approvals`, `POST /approvals/:id`. A client that goes away stops nothing. `remoteAgent()` speaks them. @throws LOUSHO_CONFIG_INVALID
 */
export function createAgentRoutes(agent: Agent, options: AgentRoutesOptions): Handler {
  requireKnownOptions<AgentRoutesOptions>('', options, {
    authorize: true,
    basePath: true,
    maxBodyBytes: true,
    onError: true,
  });
  const { basePath = '' } = options;
  const onError = reporter(options.onError);
  const readBody = bodyReader(options.maxBodyBytes);
  const allowed = guard(options.authorize);
  const running = new Running();
  return router(
    [
      {
        method: 'POST',
        path: 'sessions/:id/messages',
        handle: (request, { id = '' }) =>
          allowed(request, { action: 'send', sessionId: id }, async (principal) => {
            const session = agent.session({ id });
            const { input, given } = readMessage(await readBody(request));
            const sendOptions = { ...given, ...(principal === undefined ? undefined : { principal }) };
            if (!wantsEvents(request))
              return json(
                await running.during(id, (signal) => session.send(input, { ...sendOptions, signal })),
              );
            const run = session.stream(input, sendOptions);
            running.during(id, (signal) => untilEnd(run, signal)).catch(heard);
            return eventsOf(run, onError);
          }),
      },
      {
        method: 'GET',
        path: 'sessions/:id/messages',
        handle: (request, { id = '' }) =>
          allowed(request, { action: 'read', sessionId: id }, async () =>
            json({ messages: await agent.session({ id }).messages({ includePending: true }) }),
          ),
      },
      {
        method: 'POST',
        path: 'sessions/:id/resume',
        handle: (request, { id = '' }) =>
          allowed(request, { action: 'send', sessionId: id }, async () => {
            const session = agent.session({ id });
            const result = await running.during(id, (signal) => session.resume({ signal }));
            return result === null ? nothing() : json(result);
          }),
      },
      {
        method: 'POST',
        path: 'sessions/:id/stop',
        handle: (request, { id = '' }) =>
          allowed(request, { action: 'stop', sessionId: id }, async () => {
            const result = await running.stop(id);
            return json(result === undefined ? { stopped: false } : { stopped: true, usage: result.usage });
          }),
      },
      {
        method: 'DELETE',
        path: 'sessions/:id',
        handle: (request, { id = '' }) =>
          allowed(request, { action: 'delete', sessionId: id }, async () => {
            await agent.session({ id }).clear();
            return nothing();
          }),
      },
      {
        method: 'GET',
        path: 'pending',
        handle: (request) =>
          allowed(request, { action: 'read' }, async () => json({ pending: await agent.pending() })),
      },
      {
        method: 'GET',
        path: 'approvals',
        handle: (request) => {
          const sessionId = new URL(request.url).searchParams.get('sessionId') ?? undefined;
          const about = sessionId === undefined ? {} : { sessionId };
          return allowed(request, { action: 'read', ...about }, async () =>
            json({ approvals: await agent.approvals.list(about) }),
          );
        },
      },
      {
        method: 'POST',
        path: 'approvals/:id',
        async handle(request, { id = '' }) {
          const { sessionId } = (await agent.approvals.get(id)) ?? {};
          const about = sessionId === undefined ? {} : { sessionId };
          return allowed(request, { action: 'decide', ...about }, async (principal) => {
            const decision = { ...readDecision(await readBody(request), 'by'), id };
            const by = deciderOf(principal, decision.by);
            const decide = (signal: AbortSignal) => agent.approvals.resolve({ ...decision, by }, { signal });
            return json(await running.during(sessionId, decide));
          });
        },
      },
    ],
    { basePath, onError },
  );
}

function readMessage({ input, inputId, metadata, ...others }: JsonFields) {
  for (const name of Object.keys(others)) refuse(name, others[name], 'left out: input, inputId or metadata');
  if (typeof input !== 'string' && !Array.isArray(input)) requireObject('input', input);
  return {
    input: input as AgentInput,
    given: {
      ...(inputId === undefined ? undefined : { inputId: inputId as string }),
      ...(metadata === undefined
        ? undefined
        : { metadata: requireObject('metadata', metadata) as JsonObject }),
    },
  };
}

/** Who asks is known; on whose behalf, only by what they say. */
function deciderOf(principal: Principal | undefined, named: string | undefined): string | undefined {
  if (principal === undefined || named === undefined) return principal?.id ?? named;
  return `${principal.id} (for ${named})`;
}

function untilEnd(run: AgentRun, signal: AbortSignal): Promise<ExecutionResult> {
  signal.addEventListener('abort', () => run.abort(signal.reason), { once: true });
  return run.result;
}

function heard(): void {
  // Whoever reads the events hears of it.
}

function wantsEvents(request: Request): boolean {
  return request.headers.get('accept')?.includes('text/event-stream') === true;
}

/** Every event of the run, numbered; the last one says how it ended. */
async function eventsOf(run: AgentRun, onError: (error: unknown) => void): Promise<Response> {
  const { first, others } = await begunRun(run);
  const log = new ReplayLog<AgentEvent>();
  if (first !== undefined) log.add(first);
  void follow(log, others, onError);
  return eventStream(log.read(), {
    encode: (event) => `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}`,
  });
}

async function follow(
  log: ReplayLog<AgentEvent>,
  events: AsyncIterator<AgentEvent, void>,
  onError: (error: unknown) => void,
): Promise<void> {
  try {
    for (let next = await events.next(); next.done !== true; next = await events.next()) log.add(next.value);
  } catch (error) {
    // Those who read have its `error` event.
    onError(error);
  } finally {
    log.end();
  }
}
