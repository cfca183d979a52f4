/** A model response on its way into the transcript: JSON only, call ids that are unique and usable, usage complete. */
import {
  LLMProviderError,
  deepFreeze,
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
  const message = json.json as unknown as Partial<AssistantMessage> | null;
  if (message === null || message.role !== 'assistant' || !Array.isArray(message.content))
    throw invalid('it has no assistant message');
  const content = (message.content as readonly AssistantPart[]).map(acceptPart);
  return {
    message: deepFreeze({ ...(message as AssistantMessage), content: withUsableIds(content) }),
    finishReason: response.finishReason,
    modelId: response.modelId ?? modelId,
    usage: completeUsage(response.usage ?? {}, request.messages, content),
  };
}

/** What a call cost that nobody got the response of: one call, its input estimated. */
export function droppedUsage(messages: readonly Message[], receivedText: string): ModelUsage {
  return completeUsage({}, messages, [{ type: 'text', text: receivedText }]);
}

function acceptPart(part: AssistantPart): AssistantPart {
  if (part.type !== 'tool-call') return part;
  return part.args === undefined ? { ...part, args: {} } : part;
}

/** No provider takes an id longer than this back. */
const MAX_CALL_ID_LENGTH = 256;

/** An id that a provider repeats inside one message, or leaves out, would make two calls look like one. */
function withUsableIds(content: readonly AssistantPart[]): readonly AssistantPart[] {
  const taken = new Set<string>();
  return content.map((part, index) => {
    if (part.type !== 'tool-call') return part;
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
  for (let suffix = 2; taken.has(id); suffix += 1) id = `${wanted}_${suffix}`;
  return id;
}

/** What a provider leaves out is 0; when it reports nothing at all, characters are counted instead, and the totals say so. */
function completeUsage(
  reported: LLMUsage,
  messages: readonly Message[],
  content: readonly AssistantPart[],
): ModelUsage {
  const isReported = reported.inputTokens !== undefined || reported.outputTokens !== undefined;
  const inputTokens = reported.inputTokens ?? (isReported ? 0 : estimateTokens(messages));
  const outputTokens = reported.outputTokens ?? (isReported ? 0 : estimateTokens(content));
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: reported.cachedInputTokens ?? 0,
    cacheWriteTokens: reported.cacheWriteTokens ?? 0,
    reasoningTokens: reported.reasoningTokens ?? 0,
    modelCalls: 1,
    ...(reported.costUsd === undefined ? undefined : { costUsd: reported.costUsd }),
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
