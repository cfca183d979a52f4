/** A complete answer of an AI SDK model as ours. An answer that is none is an error, because what is stored is never asked for again. */
import {
  LLMProviderError,
  type AssistantPart,
  type LLMResponse,
  type LLMUsage,
  type ModelFinishReason,
} from '@lousho/contract';
import type {
  AiSdkFinishReason,
  AiSdkInputTokens,
  AiSdkOutputTokens,
  AiSdkResult,
  AiSdkUsage,
  AiSdkWarning,
} from './language-model.ts';
import { jsonOf, metadataOf } from './metadata.ts';

/** @throws LLMProviderError for an answer that ended in an error, or before its end */
export function readResponse(
  content: readonly AssistantPart[],
  result: Omit<AiSdkResult, 'content'>,
  ownWarnings: readonly string[],
): LLMResponse {
  const { finishReason, usage, providerMetadata, response, warnings = [] } = result;
  const { raw } = reasonsOf(finishReason);
  const metadata = metadataOf(providerMetadata);
  const allWarnings = [...ownWarnings, ...warnings.map(warningText)];
  return {
    message: { role: 'assistant', content },
    finishReason: readFinishReason(finishReason, content),
    ...(raw === undefined ? undefined : { rawFinishReason: raw }),
    usage: readUsage(usage ?? {}, metadata.providerMetadata?.anthropic?.cacheCreationInputTokens),
    ...(typeof response?.modelId === 'string' ? { modelId: response.modelId } : undefined),
    ...(typeof response?.id === 'string' ? { responseId: response.id } : undefined),
    ...(allWarnings.length === 0 ? undefined : { warnings: allWarnings }),
  };
}

/** Our word for it, and the service's own where the version tells. */
export function reasonsOf(finishReason: AiSdkFinishReason): {
  readonly unified: string;
  readonly raw?: string;
} {
  if (typeof finishReason === 'string') return { unified: finishReason };
  const { unified, raw } = finishReason;
  return typeof raw === 'string' ? { unified, raw } : { unified };
}

function readFinishReason(
  finishReason: AiSdkFinishReason,
  content: readonly AssistantPart[],
): ModelFinishReason {
  const { unified, raw } = reasonsOf(finishReason);
  switch (unified) {
    case 'length':
    case 'content-filter':
      return unified;
    case 'tool-calls':
      if (content.some(({ type }) => type === 'tool-call')) return 'tool-calls';
      throw invalid('The model says that it calls a tool, but its answer holds no call.');
    case 'stop':
      // Some services say "stop" beside calls.
      return content.some(isOwnCall) ? 'tool-calls' : 'stop';
    case 'error':
      throw invalid(`The model ended its answer with an error${raw === undefined ? '' : ` (${raw})`}.`);
    case 'interrupted':
      throw interrupted('The answer ended before it was complete.');
    default:
      return 'other';
  }
}

export function interrupted(message: string): LLMProviderError {
  return new LLMProviderError(message, { kind: 'stream-interrupted', retryable: true });
}

function invalid(message: string): LLMProviderError {
  return new LLMProviderError(message, { kind: 'invalid-response', retryable: true });
}

function isOwnCall(part: AssistantPart): boolean {
  return part.type === 'tool-call' && part.providerExecuted !== true;
}

/** `anthropicCacheWrites`: what the `v2` Anthropic models say beside the usage. Their input leaves out what the cache was read and written with. */
function readUsage(usage: AiSdkUsage, anthropicCacheWrites: unknown): LLMUsage {
  const { inputTokens, outputTokens } = usage;
  if (isParts(inputTokens) || isParts(outputTokens)) return readNestedUsage(usage);
  const cached = countOf('cachedInputTokens', usage.cachedInputTokens);
  const reasoning = countOf('reasoningTokens', usage.reasoningTokens);
  const output = countOf('outputTokens', outputTokens);
  if (typeof inputTokens !== 'number' || anthropicCacheWrites === undefined)
    return { ...countOf('inputTokens', inputTokens), ...output, ...cached, ...reasoning };
  const written = typeof anthropicCacheWrites === 'number' ? anthropicCacheWrites : 0;
  return {
    inputTokens: inputTokens + (cached.cachedInputTokens ?? 0) + written,
    ...output,
    ...cached,
    ...reasoning,
    cacheWriteTokens: written,
  };
}

function readNestedUsage({ inputTokens, outputTokens, raw }: AiSdkUsage): LLMUsage {
  const input = (inputTokens ?? {}) as AiSdkInputTokens;
  const output = (outputTokens ?? {}) as AiSdkOutputTokens;
  return {
    ...countOf('inputTokens', input.total),
    ...countOf('outputTokens', output.total),
    ...countOf('cachedInputTokens', input.cacheRead),
    ...countOf('cacheWriteTokens', input.cacheWrite),
    ...countOf('reasoningTokens', output.reasoning),
    ...(raw === undefined || raw === null ? undefined : { raw: jsonOf(raw, 'usage') }),
  };
}

function isParts(tokens: AiSdkUsage['inputTokens'] | AiSdkUsage['outputTokens']): boolean {
  return typeof tokens === 'object' && tokens !== null;
}

type TokenCounts = Omit<LLMUsage, 'raw'>;

/** What is not reported is left out. */
function countOf<Name extends keyof TokenCounts>(
  name: Name,
  count: unknown,
): { readonly [N in Name]?: number } {
  return typeof count === 'number' && Number.isFinite(count)
    ? ({ [name]: count } as { [N in Name]: number })
    : {};
}

/** For example `unsupported-setting: topK: not for this model`. */
function warningText({ type, message, feature, setting, tool, details }: AiSdkWarning): string {
  const what =
    message ?? [feature ?? setting ?? tool?.name, details].filter((text) => text !== undefined).join(': ');
  return what === '' ? type : `${type}: ${what}`;
}
