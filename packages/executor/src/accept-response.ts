/** A model response on its way into the transcript: JSON only, call ids that are unique and usable, usage complete. */
import {
  LLMProviderError,
  cutText,
  deepFreeze,
  isMessage,
  toJson,
  type AssistantMessage,
  type AssistantPart,
  type LLMRequest,
  type LLMResponse,
  type LLMUsage,
  type Message,
  type ModelFinishReason,
  type ModelUsage,
} from '@lousho/contract';

export interface AcceptedResponse {
  readonly message: AssistantMessage;
  readonly finishReason: ModelFinishReason;
  readonly modelId: string;
  readonly usage: ModelUsage;
}

/** @throws LLMProviderError when it is no response at all */
export function acceptResponse(
  response: LLMResponse,
  request: LLMRequest,
  modelId: string,
): AcceptedResponse {
  const json = toJson(response?.message);
  if (!json.ok) throw invalid(`its message is no JSON at ${json.path}`);
  const given = json.json as unknown as Partial<AssistantMessage> | null;
  if (given === null || given.role !== 'assistant' || !Array.isArray(given.content))
    throw invalid('it has no assistant message');
  const content = withUsableIds((given.content as readonly AssistantPart[]).map(acceptPart));
  const message = deepFreeze({ ...(given as AssistantMessage), content });
  // What a store could not read back would make the run unreadable.
  if (!isMessage(message)) throw invalid('a part of its message is not one that we know');
  return {
    message,
    finishReason: knownReasons.has(response.finishReason) ? response.finishReason : 'other',
    modelId: typeof response.modelId === 'string' ? response.modelId : modelId,
    usage: completeUsage(response.usage ?? {}, request.messages, content),
  };
}

const knownReasons: ReadonlySet<ModelFinishReason> = new Set([
  'stop',
  'length',
  'tool-calls',
  'content-filter',
  'other',
]);

/** What a call cost that nobody got the response of: one call, its input estimated. */
export function droppedUsage(messages: readonly Message[], receivedText: string): ModelUsage {
  return completeUsage({}, messages, [{ type: 'text', text: receivedText }]);
}

/** Also of a provider that says `null`: the check of the whole message comes later. */
function acceptPart(part: AssistantPart | null): AssistantPart {
  if (part?.type !== 'tool-call') return part as AssistantPart;
  return part.args === undefined ? { ...part, args: {} } : part;
}

/** No provider takes an id longer than this back. */
const MAX_CALL_ID_LENGTH = 256;

/**
 * An id that a provider repeats inside one message, or leaves out, would make two calls look like one. Calls that it runs itself keep
 * theirs: their results in the same message name them.
 */
export function withUsableIds(content: readonly AssistantPart[]): readonly AssistantPart[] {
  const taken = new Set<string>();
  for (const part of content)
    if (part?.type === 'tool-call' && part.providerExecuted === true) taken.add(part.toolCallId);
  return content.map((part, index) => {
    if (part?.type !== 'tool-call' || part.providerExecuted === true) return part;
    const toolCallId = freeId(isUsableId(part.toolCallId) ? part.toolCallId : `call_${index}`, taken);
    taken.add(toolCallId);
    return toolCallId === part.toolCallId ? part : { ...part, toolCallId };
  });
}

function isUsableId(id: unknown): id is string {
  return typeof id === 'string' && id.length > 0 && id.length <= MAX_CALL_ID_LENGTH && !/[\p{Cc}]/u.test(id);
}

function freeId(wanted: string, taken: ReadonlySet<string>): string {
  let id = wanted;
  for (let count = 2; taken.has(id); count += 1) {
    const suffix = `_${count}`;
    id = `${cutText(wanted, MAX_CALL_ID_LENGTH - suffix.length)}${suffix}`;
  }
  return id;
}

/** What a provider leaves out, or reports as no number, is 0; when it reports nothing at all, characters are counted instead, and the totals say so. */
function completeUsage(
  reported: LLMUsage,
  messages: readonly Message[],
  content: readonly AssistantPart[],
): ModelUsage {
  const counted = (name: Exclude<keyof LLMUsage, 'raw'>): number | undefined => {
    const count = reported[name];
    return typeof count === 'number' && Number.isFinite(count) && count >= 0 ? count : undefined;
  };
  const input = counted('inputTokens');
  const output = counted('outputTokens');
  const isReported = input !== undefined || output !== undefined;
  const inputTokens = input ?? (isReported ? 0 : estimateTokens(messages));
  const outputTokens = output ?? (isReported ? 0 : estimateTokens(content));
  const costUsd = counted('costUsd');
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: counted('cachedInputTokens') ?? 0,
    cacheWriteTokens: counted('cacheWriteTokens') ?? 0,
    reasoningTokens: counted('reasoningTokens') ?? 0,
    modelCalls: 1,
    ...(costUsd === undefined ? undefined : { costUsd }),
    ...(isReported ? undefined : { estimated: true as const }),
  };
}

/** About four characters a token, which holds for English text within a factor of two. */
function estimateTokens(items: readonly (Message | AssistantPart)[]): number {
  let characters = 0;
  for (const item of items) characters += lengthOf(item);
  return Math.ceil(characters / 4);
}

const lengths = new WeakMap<object, number>();

/** Messages are frozen: each is measured once. */
function lengthOf(item: Message | AssistantPart): number {
  let length = lengths.get(item);
  if (length === undefined) lengths.set(item, (length = JSON.stringify(item).length));
  return length;
}

function invalid(what: string): LLMProviderError {
  return new LLMProviderError(`The provider gave no usable response: ${what}.`, {
    kind: 'invalid-response',
    retryable: true,
  });
}
