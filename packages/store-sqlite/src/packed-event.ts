/**
 * An event as the table keeps it: without the words that are the same in almost every one. Most events are one tool result or one model
 * response, and nearly a tenth of them would be the names of fields; how many fit on a page decides what a save writes.
 *
 * `[t, s, n, u, the other fields]`; of the messages, a plain tool result is `[toolCallId, toolName, result]`, and a plain response is
 * `{ a: [text or [toolCallId, toolName, args] or any other part as it is] }`. What has one field more is kept as it is.
 */
import {
  SDKError,
  type AssistantMessage,
  type AssistantPart,
  type JsonValue,
  type LogEvent,
  type Message,
  type ToolMessage,
} from '@lousho/contract';

type PackedEvent = readonly [t: LogEvent['t'], s: number, n: number, u: LogEvent['u'], rest: PackedRest];

type PackedRest = Omit<LogEvent, 't' | 's' | 'n' | 'u' | 'm'> & { readonly m?: readonly PackedMessage[] };
type PackedMessage = string | PackedResult | PackedResponse | Message;
type PackedResult = readonly [toolCallId: string, toolName: string, result: JsonValue];
interface PackedResponse {
  readonly a: readonly PackedPart[];
}
type PackedPart = string | readonly [toolCallId: string, toolName: string, args: JsonValue] | AssistantPart;

/** Far below what SQLite takes (1 GB) in any script, and above what a program can still work with. */
const MAX_TEXT_LENGTH = 256 * 1024 * 1024;

/** The text of an event of this log. @throws LOUSHO_CHECKPOINT_TOO_LARGE */
export function eventText(id: string, event: LogEvent, maxLength: number = MAX_TEXT_LENGTH): string {
  const text = JSON.stringify(packEvent(event));
  if (text.length <= maxLength) return text;
  throw new SDKError('LOUSHO_CHECKPOINT_TOO_LARGE', { id, bytes: text.length, maxBytes: maxLength });
}

/** Only as sound as the text: `foldEvents` and the check of the state say whether it was an event. */
export function parseEvent(text: string): LogEvent {
  return unpackEvent(JSON.parse(text) as PackedEvent);
}

/** The same for many: one text for all is parsed faster than one after the other. */
export function parseEvents(texts: readonly string[]): LogEvent[] {
  return (JSON.parse(`[${texts.join(',')}]`) as PackedEvent[]).map(unpackEvent);
}

function packEvent({ t, s, n, u, m, ...rest }: LogEvent): PackedEvent {
  return [t, s, n, u, m === undefined ? rest : { ...rest, m: m.map(packMessage) }];
}

function unpackEvent([t, s, n, u, { m, ...rest }]: PackedEvent): LogEvent {
  return { t, s, n, u, ...rest, ...(m === undefined ? undefined : { m: m.map(unpackMessage) }) };
}

function packMessage(item: Message | string): PackedMessage {
  // A text stands for the message of a result that is in the log already.
  if (typeof item === 'string' || fieldCount(item) !== 2) return item;
  const { content } = item;
  // What is no message of ours comes back as it is too, and is refused by whoever reads it.
  if (!Array.isArray(content) || !content.every(isObject)) return item;
  if (item.role === 'tool') return packResult(item);
  return item.role === 'assistant' ? { a: item.content.map(packPart) } : item;
}

function packResult(message: ToolMessage): PackedMessage {
  const [part] = message.content;
  const isPlain =
    message.content.length === 1 &&
    part.type === 'tool-result' &&
    part.result !== undefined &&
    hasCallAndOneMore(part);
  return isPlain ? [part.toolCallId, part.toolName, part.result] : message;
}

function packPart(part: AssistantPart): PackedPart {
  if (part.type === 'text' && typeof part.text === 'string' && fieldCount(part) === 2) return part.text;
  if (part.type === 'tool-call' && part.args !== undefined && hasCallAndOneMore(part))
    return [part.toolCallId, part.toolName, part.args];
  return part;
}

function unpackMessage(item: PackedMessage): Message | string {
  if (typeof item === 'string') return item;
  if (isList(item)) {
    const [toolCallId, toolName, result] = item;
    return { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, result }] };
  }
  return 'role' in item ? item : unpackResponse(item);
}

function unpackResponse({ a }: PackedResponse): AssistantMessage {
  return { role: 'assistant', content: a.map(unpackPart) };
}

function unpackPart(part: PackedPart): AssistantPart {
  if (typeof part === 'string') return { type: 'text', text: part };
  if (!isList(part)) return part;
  const [toolCallId, toolName, args] = part;
  return { type: 'tool-call', toolCallId, toolName, args };
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Besides the type: the call's id, its tool, and one field that the caller has looked at. */
function hasCallAndOneMore(part: { readonly toolCallId: unknown; readonly toolName: unknown }): boolean {
  return typeof part.toolCallId === 'string' && typeof part.toolName === 'string' && fieldCount(part) === 4;
}

function fieldCount(value: object): number {
  return Object.keys(value).length;
}

function isList<Item>(value: Item): value is Extract<Item, readonly unknown[]> {
  return Array.isArray(value);
}
