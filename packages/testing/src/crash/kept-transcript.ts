/** What one state of a run had and a later one has not: nothing, if every promise is kept. */
import {
  jsonEqual,
  resultOf,
  type AssistantPart,
  type Checkpoint,
  type JsonValue,
  type Message,
  type ToolResultPart,
} from '@lousho/contract';

/** Of two states of one run: messages, and results that settled early. One phrase each. */
export function* lostBetween(earlier: Checkpoint, later: Checkpoint): Iterable<string> {
  const lost = lostMessage(earlier, later);
  if (lost !== undefined) yield lost;
  for (const result of earlier.settledResults)
    if (!keepsEarlyResult(earlier, result, later)) yield `the early result of "${result.toolCallId}"`;
}

export function lostMessage(earlier: Checkpoint, later: Checkpoint): string | undefined {
  const before = conversation(earlier.messages);
  const after = conversation(later.messages);
  const index = before.findIndex((message, at) => !isKept(message, after[at], later));
  const message = before[index];
  return message === undefined ? undefined : `${message.role} message ${index} ${excerpt(message)}`;
}

/** Without the leading system messages, which a resume may refresh. */
export function conversation(messages: readonly Message[]): readonly Message[] {
  const first = messages.findIndex(({ role }) => role !== 'system');
  return first === -1 ? [] : messages.slice(first);
}

function isKept(before: Message, after: Message | undefined, later: Checkpoint): boolean {
  if (after === undefined) return false;
  if (sameJson(before, after)) return true;
  if (before.role !== 'assistant' || after.role !== 'assistant') return false;
  if (before.content.length !== after.content.length) return false;
  return before.content.every((part, index) => isKeptPart(part, after.content[index], later));
}

/** A person may approve a call with other arguments; the audit of its result then keeps those that the model had asked for. */
function isKeptPart(
  before: AssistantPart,
  after: AssistantPart | undefined,
  { messages, settledResults }: Checkpoint,
): boolean {
  if (after === undefined || sameJson(before, after)) return after !== undefined;
  if (before.type !== 'tool-call' || after.type !== 'tool-call') return false;
  const isAudit = (result: ToolResultPart | undefined): boolean =>
    result?.toolCallId === before.toolCallId && sameJson(result.approval?.proposedArgs ?? null, before.args);
  const isAudited = settledResults.some(isAudit) || messages.some((message) => isAudit(resultOf(message)));
  return isAudited && sameJson({ ...before, args: null }, { ...after, args: null });
}

/** In its place behind the step, or still early. */
export function keepsEarlyResult(earlier: Checkpoint, result: ToolResultPart, end: Checkpoint): boolean {
  if (end.settledResults.some((part) => sameJson(part, result))) return true;
  const behind = conversation(end.messages).slice(conversation(earlier.messages).length);
  const nextStep = behind.findIndex(({ role }) => role !== 'tool');
  const placed = nextStep === -1 ? behind : behind.slice(0, nextStep);
  return placed.some((message) => sameJson(resultOf(message), result));
}

function excerpt(message: Message): string {
  const text = JSON.stringify(message.content);
  return text.length <= 120 ? text : `${text.slice(0, 117)}...`;
}

export function sameJson(a: unknown, b: unknown): boolean {
  return a === b || jsonEqual(a as JsonValue | undefined, b as JsonValue | undefined);
}
