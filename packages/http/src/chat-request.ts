/** What `useChat` posts: checked, and cut down to what a client may say. The transcript of the server is the truth. */
import { ConfigurationError, type UserMessage, type UserPart } from '@lousho/contract';
import { refuse, requireObject, type JsonFields } from './request-body.ts';

export interface ChatRequest {
  readonly chatId: string;
  readonly trigger: 'submit-message' | 'regenerate-message';
  /** Of the newest message. */
  readonly lastId: string | undefined;
  /** How many there are of the user; fewer than the conversation has when a page posts its newest alone. */
  readonly userMessages: number;
  /** What the user said behind the last answer, oldest first. */
  readonly said: readonly { readonly id: string; readonly message: UserMessage }[];
  /** Every decision that the page knows of, old ones too. */
  readonly decisions: readonly PageDecision[];
}
export interface PageDecision {
  readonly id: string;
  readonly approved: boolean;
  readonly reason?: string;
}

/** @throws LOUSHO_CONFIG_INVALID naming what is wrong with it, LOUSHO_INPUT_EMPTY */
export function readChatRequest({ id, messages, trigger = 'submit-message' }: JsonFields): ChatRequest {
  if (typeof id !== 'string') refuse('id', id, 'the id of the chat');
  if (!Array.isArray(messages)) refuse('messages', messages, 'a list of messages');
  if (trigger !== 'submit-message' && trigger !== 'regenerate-message')
    refuse('trigger', trigger, "'submit-message' or 'regenerate-message'");
  const given = messages.map((message, index) => requireObject(`messages[${index}]`, message));
  const lastAnswer = given.findLastIndex((message) => message['role'] !== 'user' && !isEmpty(message));
  const said = given
    .slice(lastAnswer + 1)
    .flatMap((message, index) =>
      message['role'] === 'user' ? [userMessage(message, lastAnswer + 1 + index)] : [],
    );
  const last = given.at(-1);
  return {
    chatId: id,
    trigger,
    lastId: typeof last?.['id'] === 'string' ? last['id'] : undefined,
    userMessages: given.filter(({ role }) => role === 'user').length,
    said,
    decisions: given.flatMap(decisionsIn),
  };
}

/** An answer of which nothing came. */
function isEmpty({ parts }: JsonFields): boolean {
  return (
    Array.isArray(parts) && parts.every((part) => (part as { type?: unknown } | null)?.type === 'step-start')
  );
}

function userMessage(
  { id, parts }: JsonFields,
  index: number,
): { readonly id: string; readonly message: UserMessage } {
  if (typeof id !== 'string' || id === '') refuse(`messages[${index}].id`, id, 'a text that is not empty');
  if (!Array.isArray(parts)) refuse(`messages[${index}].parts`, parts, 'a list of parts');
  const content = parts
    .map((part, at) => userPart(part, `messages[${index}].parts[${at}]`))
    .filter((part) => part.type !== 'text' || part.text !== '');
  const [first] = content;
  // Stored, it would be refused by the model in every turn to come.
  if (first === undefined) throw new ConfigurationError('LOUSHO_INPUT_EMPTY', {});
  const isPlain = content.length === 1 && first?.type === 'text';
  return { id, message: { role: 'user', content: isPlain ? first.text : content } };
}

function userPart(part: unknown, option: string): UserPart {
  const given = requireObject(option, part);
  if (given['type'] === 'text' && typeof given['text'] === 'string')
    return { type: 'text', text: given['text'] };
  if (given['type'] === 'file') return filePart(given, option);
  return refuse(option, given['type'], 'a text or a file');
}

const DATA_URL = /^data:[^,]*;base64,(?<data>[A-Za-z0-9+/=]*)$/;

function filePart({ mediaType, url, filename }: JsonFields, option: string): UserPart {
  if (typeof mediaType !== 'string') refuse(`${option}.mediaType`, mediaType, 'a media type');
  if (typeof url !== 'string') refuse(`${option}.url`, url, 'an https: or a data: URL');
  const named = typeof filename === 'string' ? { filename } : undefined;
  const data = DATA_URL.exec(url)?.groups?.['data'];
  if (data !== undefined) return { type: 'file', mediaType, data: { type: 'data', data }, ...named };
  // Whoever fetches it does so from inside: nothing but what is public.
  if (!/^https?:\/\//.test(url)) refuse(`${option}.url`, url.slice(0, 80), 'an https: or a data: URL');
  return { type: 'file', mediaType, data: { type: 'url', url }, ...named };
}

function decisionsIn({ parts }: JsonFields): readonly PageDecision[] {
  if (!Array.isArray(parts)) return [];
  return parts.flatMap((part: unknown) => {
    const { state, approval } = (part ?? {}) as { readonly state?: unknown; readonly approval?: unknown };
    if (state !== 'approval-responded') return [];
    const { id, approved, reason } = requireObject('approval', approval);
    if (typeof id !== 'string' || typeof approved !== 'boolean')
      return refuse('approval', approval, 'an object with id and approved');
    return [{ id, approved, ...(typeof reason === 'string' ? { reason } : undefined) }];
  });
}
