/** Which of the given messages are new: callers retry a request after a crash, and re-send the history with each request. */
import {
  ConfigurationError,
  canonicalJson,
  deepFreeze,
  frozenCopy,
  isMessage,
  toJson,
  type AgentInput,
  type Checkpoint,
  type JsonValue,
  type Message,
} from '@lousho/contract';
import type { ConversationState } from './conversation.ts';

/** The messages of an input, in a form that can be stored. @throws synchronously LOUSHO_CONFIG_INVALID. */
export function inputMessages(input: AgentInput): readonly Message[] {
  if (typeof input === 'string') return [deepFreeze({ role: 'user', content: input.toWellFormed() })];
  const json = toJson(asMessages(input));
  if (!json.ok) refuse(`JSON (${json.path} is not)`);
  const messages = json.json as readonly unknown[];
  // What a store could not read back would make the run unreadable: refused before anything is stored.
  if (!messages.every(isMessage)) refuse('a text, messages, or the parts of one user message');
  return frozenCopy(messages);
}

function asMessages(input: unknown): readonly unknown[] {
  if (!Array.isArray(input)) return [input];
  return input.length > 0 && input.every(isUserPart) ? [{ role: 'user', content: input }] : input;
}

/** What of `input` the conversation does not hold yet: a run's, or that of a session whose turns are all over. */
export function newMessages(
  stored: Checkpoint | ConversationState,
  input: readonly Message[],
  inputId: string | undefined,
): readonly Message[] {
  if (inputId !== undefined && stored.inputIds.includes(inputId)) return [];
  // The session has its system messages.
  const given = input.filter((message) => message.role !== 'system');
  if (given.length === 0) return [];
  const heldInput = 'heldInput' in stored ? stored.heldInput : [];
  const conversation = [...stored.messages, ...heldInput].filter((message) => message.role !== 'system');
  const shared = sharedLength(conversation, given);
  if (shared === conversation.length) {
    // An id that the session does not hold says that this is no retry, also when the words are the same.
    const known = inputId === undefined || shared < given.length ? shared : historyLength(given);
    return given.slice(known);
  }
  if (!('status' in stored) || stored.status === 'finished') return given;
  const retried = inputId === undefined ? retriedLength(stored, given) : 0;
  if (retried > 0) return given.slice(retried);
  // A copy of the history that lags behind: it has what the model said, so it is no new message that happens to be equal.
  return historyLength(given.slice(0, shared)) > 0 ? given.slice(shared) : given;
}

/** How many messages at the start are a conversation that took place: up to the model's last words, and the results behind them. */
function historyLength(messages: readonly Message[]): number {
  return messages.findLastIndex((message) => message.role !== 'user') + 1;
}

/**
 * How many messages at the start repeat what this unfinished run was given: all of its inputs in a row, the one that started it, or
 * the last one alone.
 */
function retriedLength(stored: Checkpoint, given: readonly Message[]): number {
  const inputs = inputsOfRun(stored);
  const all = inputs.flat();
  if (startsWith(given, all)) return all.length;
  const [first = [], ...later] = inputs;
  const last = later.at(-1) ?? [];
  if (startsWith(given, first)) return first.length;
  // Inputs that came one after the other cannot be told apart any more: the last one is the end of what they are together.
  return startsWith(last.slice(-given.length), given) ? given.length : 0;
}

/** The inputs that this run took, each as its own list: the one that started it, then what joined it. */
function inputsOfRun(stored: Checkpoint): readonly (readonly Message[])[] {
  const { start, count } = stored.runInput;
  const inputs: Message[][] = [stored.messages.slice(start, start + count)];
  let current: Message[] | undefined;
  for (const message of [...stored.messages.slice(start + count), undefined, ...stored.heldInput]) {
    if (message?.role !== 'user') {
      current = undefined;
      continue;
    }
    if (current === undefined) inputs.push((current = []));
    current.push(message);
  }
  return inputs;
}

function sharedLength(conversation: readonly Message[], given: readonly Message[]): number {
  const most = Math.min(conversation.length, given.length);
  let length = 0;
  while (length < most && sameMessage(conversation[length], given[length])) length += 1;
  return length;
}

function startsWith(given: readonly Message[], start: readonly Message[]): boolean {
  return (
    start.length > 0 &&
    start.length <= given.length &&
    start.every((message, index) => sameMessage(message, given[index]))
  );
}

/** Equal in role and content; a text equals a single text part with it. */
function sameMessage(a: Message | undefined, b: Message | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a === b || (a.role === b.role && comparable(a) === comparable(b));
}

function comparable(message: Message): string {
  const { content } = message;
  return canonicalJson(
    typeof content === 'string' ? [{ type: 'text', text: content }] : (content as unknown as JsonValue),
  );
}

function isUserPart(item: unknown): boolean {
  const type = (item as { type?: unknown } | null)?.type;
  return type === 'text' || type === 'file';
}

function refuse(want: string): never {
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option: 'input', want });
}
