/**
 * Whether a value is a message that can be stored and read again. By hand, not by zod: a resume looks at every message of the
 * transcript, and a run at every response.
 */
import type { Message } from './messages.ts';

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

/** Looks anew each time: it is asked about values that may change. */
export function isMessage(value: unknown): value is Message {
  if (!isFields(value) || !hasMetadata(value)) return false;
  const { role, content } = value;
  switch (role) {
    case 'system':
      return isText(content);
    case 'user':
      return isText(content) || isListOf(content, isUserPart);
    case 'assistant':
      return isListOf(content, isAssistantPart);
    case 'tool':
      return isListOf(content, isToolResult) && content.length === 1;
    default:
      return false;
  }
}

/** Entries of a history share their messages: each is looked at once. Only for what was read from a store, and so does not change. */
const storedMessages = new WeakSet<object>();

export function isMessageList(value: unknown): value is readonly unknown[] {
  return isListOf(value, isStoredMessage);
}

function isStoredMessage(value: unknown): boolean {
  if (isFields(value) && storedMessages.has(value)) return true;
  if (!isMessage(value)) return false;
  storedMessages.add(value);
  return true;
}

export function isToolCall(value: unknown): boolean {
  return isFields(value) && value.type === 'tool-call' && isAssistantPart(value);
}

export function isToolResult(value: unknown): boolean {
  return isFields(value) && value.type === 'tool-result' && isAssistantPart(value);
}

const userParts: ReadonlyMap<unknown, (part: Fields) => boolean> = new Map<
  unknown,
  (part: Fields) => boolean
>([
  ['text', ({ text }) => isText(text)],
  ['file', (part) => isText(part.mediaType) && isOptional(isText, part.filename) && isFileData(part.data)],
]);

const assistantParts: typeof userParts = new Map([
  ...userParts,
  ['reasoning', ({ text }) => isText(text)],
  [
    'tool-call',
    (part) =>
      isText(part.toolCallId) &&
      isText(part.toolName) &&
      'args' in part &&
      isOptional(isText, part.invalidArgs) &&
      isOptional(isTrue, part.providerExecuted),
  ],
  [
    'tool-result',
    (part) =>
      isText(part.toolCallId) &&
      isText(part.toolName) &&
      'result' in part &&
      isOptional(isTrue, part.isError) &&
      isOptional(isText, part.kind) &&
      isOptional(isAudit, part.approval) &&
      isOptional((value) => isListOf(value, isAudit), part.innerApprovals),
  ],
  ['custom', ({ kind }) => isText(kind)],
]);

function isUserPart(value: unknown): boolean {
  return isFields(value) && hasMetadata(value) && userParts.get(value.type)?.(value) === true;
}

function isAssistantPart(value: unknown): boolean {
  return isFields(value) && hasMetadata(value) && assistantParts.get(value.type)?.(value) === true;
}

function isFileData(value: unknown): boolean {
  if (!isFields(value)) return false;
  const { type } = value;
  if (type === 'reference') return isFields(value.reference) && Object.values(value.reference).every(isText);
  return (type === 'data' || type === 'url' || type === 'text') && isText(value[type]);
}

function isAudit(value: unknown): boolean {
  return (
    isFields(value) && isText(value.id) && typeof value.approved === 'boolean' && isText(value.decidedAt)
  );
}

function hasMetadata(value: Fields): boolean {
  return isOptional(isFields, value.providerMetadata);
}

function isListOf(value: unknown, isItem: Check): value is readonly unknown[] {
  return Array.isArray(value) && value.every(isItem);
}

function isOptional(is: Check, value: unknown): boolean {
  return value === undefined || is(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTrue(value: unknown): boolean {
  return value === true;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
