/** What a second input does while a turn of this process is under way: it waits for it, joins it, or steers it. */
import { SDKError, type ExecutionResult, type UserMessage } from '@lousho/contract';
import { isInsideLine, type ApplicationCall, type OrderPlan } from '@lousho/executor/wiring';
import type { SessionOptions } from './agent-session.ts';
import type { ActiveTurn, SessionParts } from './session-parts.ts';

/** Says that a turn is under way, from before it begins until it ends. */
type UnderWay = (
  input: ApplicationCall['input'],
  result: Promise<ExecutionResult>,
) => Promise<ExecutionResult>;

/**
 * The result of the turn that took the input: one that was under way, or its own. An input that comes too late for the turn under way
 * runs as its own turn, unless that one failed: then both callers get its error.
 * @throws LOUSHO_SESSION_BUSY when a tool of the turn under way sends to its own session
 */
export async function joinActiveTurn(
  { active, turns }: SessionParts,
  { id, turnPolicy = 'wait' }: SessionOptions,
  plan: OrderPlan,
  takeOwnTurn: (isUnderWay: UnderWay) => Promise<ExecutionResult>,
): Promise<ExecutionResult> {
  const message = joinable(plan);
  const turn = turnPolicy === 'wait' || message === undefined ? undefined : active.get(id);
  if (turn !== undefined && message !== undefined) {
    if (isInsideLine(turns, id)) throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: id });
    const queued = turnPolicy === 'queue' ? turn.input.enqueue(message) : turn.input.steer(message);
    const isTaken = queued.applied !== false && (await queued.joined);
    const result = await turn.result;
    if (isTaken) return result;
  }
  return takeOwnTurn((input, result) => whileActive({ active }, id, { input, result }));
}

/** Others can join it, from before it begins until it ends. */
export async function whileActive(
  { active }: Pick<SessionParts, 'active'>,
  id: string,
  mine: ActiveTurn,
): Promise<ExecutionResult> {
  active.set(id, mine);
  try {
    return await mine.result;
  } finally {
    if (active.get(id) === mine) active.delete(id);
  }
}

/** One message of the user can join a turn; several, or one with an `inputId`, take a turn of their own. */
function joinable({ request }: OrderPlan): UserMessage | undefined {
  if (request.type !== 'send' || request.inputId !== undefined || request.messages.length !== 1)
    return undefined;
  const [message] = request.messages;
  return message?.role === 'user' ? message : undefined;
}
