/** The turns of a session: finish what is unfinished, then take the input, one at a time. */
import {
  SDKError,
  classifyCheckpointId,
  isSessionId,
  turnCheckpointId,
  type AgentEvent,
  type Checkpoint,
  type ExecutionResult,
  type Message,
  type RunLimits,
  type SessionRecord,
} from '@lousho/contract';
import {
  executePlan,
  inLine,
  isOver,
  loadCheckpoint,
  newMessages,
  perform,
  turnResult,
  type ApplicationCall,
  type OrderPlan,
} from '@lousho/executor/wiring';
import type { AgentParts } from './agent-config.ts';
import type { AbortOptions } from './agent.ts';
import type { LiveRuns } from './live-runs.ts';
import { planResume } from './plan-run.ts';
import { partsOf, type SessionParts } from './session-parts.ts';
import { SessionTurn } from './session-turn.ts';
import { loadTranscript } from './transcripts.ts';

/** The turn that a checkpoint id names; `undefined` when it is not one. */
export function turnAt(parts: AgentParts, checkpointId: string): SessionTurn | undefined {
  const named = classifyCheckpointId(checkpointId);
  if (named.kind !== 'session') return undefined;
  const { sessionId, turn } = named;
  return new SessionTurn(partsOf(parts, sessionId).sessions, sessionId, turn, parts.engine.ports.clock);
}

/** Whether a turn of this session is stored: unfinished, or over and not yet in the transcript. */
export async function hasTurn(sessions: SessionParts, sessionId: string): Promise<boolean> {
  if (!isSessionId(sessionId)) return false;
  const { turn } = await loadTranscript(sessions.transcripts, sessionId);
  return (await loadCheckpoint(sessions.turns, turnCheckpointId(sessionId, turn))) !== null;
}

/** What the turns of one session object have in common. */
export interface TurnWiring {
  readonly parts: AgentParts;
  readonly live: LiveRuns;
  /** Over the whole session. */
  readonly limits?: RunLimits | undefined;
  readonly listeners?: readonly ((event: AgentEvent) => void)[] | undefined;
  /** What the turn comes to when code has decided its pauses; before anybody else has a turn. */
  readonly decide?: ((result: ExecutionResult) => Promise<ExecutionResult>) | undefined;
}

/** Continues the unfinished turn. `null` when there is none; one that is over and not in the transcript gets there. */
export async function resumeTurn(
  wiring: TurnWiring,
  sessionId: string,
  options: AbortOptions,
  call?: ApplicationCall,
): Promise<ExecutionResult | null> {
  const { parts, live } = wiring;
  const record = await loadTranscript(parts.sessions.transcripts, sessionId);
  const plan = turnPlan(wiring, planResume(parts, live, sessionId, options), record);
  return call === undefined ? executePlan(plan) : perform(plan, call);
}

/**
 * An input on its way through a session: what is unfinished comes first, then it gets a turn of its own.
 * @param plan made from the input, for no turn yet
 */
export async function takeInput(
  wiring: TurnWiring,
  plan: OrderPlan,
  call: ApplicationCall,
): Promise<ExecutionResult> {
  const { sessions } = wiring.parts;
  const { sessionId: id = '', signal } = plan;
  call.stop.follow(signal);
  const place = { store: sessions.turns, id, whenBusy: 'wait', left: call.stop.requested } as const;
  return inLine(place, async () => {
    for (;;) {
      const record = await loadTranscript(sessions.transcripts, id);
      await removeLeftover(sessions, record);
      const order = { ...plan, request: newInput(plan.request, record) };
      if (isRetry(plan.request, order.request) && record.lastTurn !== undefined)
        return turnResult(record, record.lastTurn, id);
      const result = (await comesFirst(sessions, record, order.request))
        ? await finishFirst(wiring, id, call)
        : await perform(turnPlan(wiring, order, record), call);
      // `null`: something else is over now, here or by another process. What the session needs next is looked at again.
      if (result !== null) return wiring.decide === undefined ? result : await wiring.decide(result);
    }
  });
}

type InputRequest = OrderPlan['request'];

/** Without what the session holds already. */
function newInput(request: InputRequest, record: SessionRecord): InputRequest {
  // The system messages of the first input stay in the transcript.
  if (request.type !== 'send' || record.messages.length === 0) return request;
  const { messages: given, inputId } = request;
  const isKnown = inputId !== undefined && record.inputIds.includes(inputId);
  const left = newMessages(record, given, inputId);
  const isStopped = record.lastTurn?.finishReason === 'aborted' && left.length === 0 && !isKnown;
  return { ...request, messages: isStopped ? lastWords(given) : left };
}

/** A person stopped the answer to these words: said again, they want one. */
function lastWords(messages: readonly Message[]): readonly Message[] {
  const said = messages.filter(({ role }) => role !== 'system');
  return said.slice(said.findLastIndex(({ role }) => role !== 'user') + 1);
}

/** Everything that was given is in the session. */
function isRetry(given: InputRequest, left: InputRequest): boolean {
  if (given.type !== 'send' || left.type !== 'send') return false;
  return given.messages.some(({ role }) => role !== 'system') && left.messages.length === 0;
}

/** Whether a turn is unfinished that this input does not belong to. @throws LOUSHO_SESSION_TURN_FAILED */
async function comesFirst(
  { turns }: SessionParts,
  { id, turn }: SessionRecord,
  request: InputRequest,
): Promise<boolean> {
  const stored: Checkpoint | null = await loadCheckpoint(turns, turnCheckpointId(id, turn));
  if (stored?.status !== 'in-progress' || isOver(stored)) return false;
  const { lastError } = stored;
  if (lastError?.retryable === false)
    throw new SDKError('LOUSHO_SESSION_TURN_FAILED', { sessionId: id, lastError });
  return request.type === 'send' && newMessages(stored, request.messages, request.inputId).length > 0;
}

/** `null`: it is done, or waits for a person, and the input is looked at again. Stopped meanwhile: the input was not taken. */
async function finishFirst(
  wiring: TurnWiring,
  id: string,
  { stop }: ApplicationCall,
): Promise<ExecutionResult | null> {
  // However the call is aborted, by its signal or by its handle. A shutdown reaches the turn by itself.
  const aborted = new AbortController();
  const follow = (): void => {
    if (stop.current?.type === 'abort') aborted.abort(stop.current.reason);
  };
  follow();
  stop.requested.addEventListener('abort', follow, { once: true });
  try {
    const result = await resumeTurn(wiring, id, { signal: aborted.signal });
    return stop.current === undefined ? null : result;
  } finally {
    stop.requested.removeEventListener('abort', follow);
  }
}

/** The order for the next turn of the session. */
function turnPlan(wiring: TurnWiring, plan: OrderPlan, record: SessionRecord): OrderPlan {
  const { sessions, engine } = wiring.parts;
  const conversation = new SessionTurn(sessions, record.id, record.turn, engine.ports.clock);
  return ofSession(wiring, record, {
    ...plan,
    checkpointId: conversation.checkpointId,
    store: sessions.turns,
    isEphemeral: sessions.isEphemeral,
    conversation,
  });
}

/** What a session adds to every order of its turns. */
export function ofSession(
  { limits, listeners }: Pick<TurnWiring, 'limits' | 'listeners'>,
  record: SessionRecord,
  plan: OrderPlan,
): OrderPlan {
  return {
    ...plan,
    ...(limits === undefined
      ? undefined
      : { engine: { ...plan.engine, sessionLimits: { limits, usage: record.usage } } }),
    ...(listeners === undefined ? undefined : { listeners }),
  };
}

/** Of a crash between the commit of a turn and the removal of its checkpoint, here or in another process. */
async function removeLeftover(
  { turns, sweptUpTo }: SessionParts,
  { id, turn }: SessionRecord,
): Promise<void> {
  if (sweptUpTo.isSwept(id, turn)) return;
  if (turn > 0) await turns.delete(turnCheckpointId(id, turn - 1));
  sweptUpTo.note(id, turn);
}
