/**
 * The part of an AI SDK language model that we use, as shapes: each major of the AI SDK pins its own exact copy of the
 * specification, so a dependency on one would refuse the models of the others.
 */
import { ConfigurationError, LLMProviderError } from '@lousho/contract';

/** The shape of an AI SDK language model of specification v2 (AI SDK 5), v3 (AI SDK 6) or v4 (AI SDK 7). */
export interface AiSdkLanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

export type SpecVersion = 2 | 3 | 4;

/** @throws LLMProviderError for a version that we do not know, LOUSHO_CONFIG_INVALID for what is no model at all */
export function specVersionOf(model: AiSdkLanguageModel): SpecVersion {
  requireModel(model);
  const { specificationVersion, provider } = model;
  switch (specificationVersion) {
    case 'v2':
      return 2;
    case 'v3':
      return 3;
    case 'v4':
      return 4;
    default:
      throw new LLMProviderError(
        `The model of "${provider}" has the specification "${String(specificationVersion)}"; v2, v3 and v4 are supported (AI SDK 5, 6 and 7).`,
        { kind: 'unsupported', retryable: false },
      );
  }
}

/** An id alone is none: which service it is of, only the package of that service knows. */
function requireModel(model: AiSdkLanguageModel): void {
  if (typeof (model as AiSdkLanguageModel | null | undefined)?.doGenerate === 'function') return;
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
    option: 'model',
    got: model,
    want: "a language model of the AI SDK, for example openai('gpt-5')",
  });
}

/* ── What a model gives. What only some versions have, or may leave out, is optional. ── */

export interface AiSdkResult {
  readonly content: readonly AiSdkContent[];
  readonly finishReason: AiSdkFinishReason;
  readonly usage?: AiSdkUsage | null | undefined;
  readonly providerMetadata?: unknown;
  readonly response?: AiSdkResponseMetadata | undefined;
  readonly warnings?: readonly AiSdkWarning[] | undefined;
}

/** `v2`: one word; later: ours, and what the service itself said. */
export type AiSdkFinishReason =
  string | { readonly unified: string; readonly raw?: string | null | undefined };

export interface AiSdkResponseMetadata {
  readonly id?: string | null | undefined;
  readonly modelId?: string | null | undefined;
}

/** `v2`: numbers; later: each total with its parts. */
export interface AiSdkUsage {
  readonly inputTokens?: number | null | AiSdkInputTokens | undefined;
  readonly outputTokens?: number | null | AiSdkOutputTokens | undefined;
  readonly cachedInputTokens?: number | null | undefined;
  readonly reasoningTokens?: number | null | undefined;
  readonly raw?: unknown;
}
export interface AiSdkInputTokens {
  readonly total?: number | null | undefined;
  readonly cacheRead?: number | null | undefined;
  readonly cacheWrite?: number | null | undefined;
}
export interface AiSdkOutputTokens {
  readonly total?: number | null | undefined;
  readonly reasoning?: number | null | undefined;
}

/** Each version names the thing differently that is not supported. */
export interface AiSdkWarning {
  readonly type: string;
  readonly message?: string | undefined;
  readonly feature?: string | undefined;
  readonly setting?: string | undefined;
  readonly tool?: { readonly name?: string | undefined } | undefined;
  readonly details?: string | undefined;
}

interface WithMetadata {
  readonly providerMetadata?: unknown;
}
export interface AiSdkToolCall extends WithMetadata {
  readonly type: 'tool-call';
  readonly toolCallId: string;
  readonly toolName: string;
  /** JSON as the model wrote it: may be empty, and may be no JSON at all. */
  readonly input: string;
  readonly providerExecuted?: boolean | undefined;
}
export interface AiSdkToolResult extends WithMetadata {
  readonly type: 'tool-result';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly result: unknown;
  readonly isError?: boolean | undefined;
  /** A later one replaces it. */
  readonly preliminary?: boolean | undefined;
}
export interface AiSdkFile extends WithMetadata {
  readonly type: 'file' | 'reasoning-file';
  readonly mediaType: string;
  readonly data: AiSdkFileData;
}
/** Up to `v3`: bytes or base64; `v4`: tagged. */
export type AiSdkFileData =
  | string
  | Uint8Array
  | { readonly type: 'data'; readonly data: string | Uint8Array }
  | { readonly type: 'url'; readonly url: unknown };

export type AiSdkContent =
  | (WithMetadata & { readonly type: 'text' | 'reasoning'; readonly text: string })
  | AiSdkFile
  | AiSdkToolCall
  | AiSdkToolResult
  | (WithMetadata & { readonly type: 'custom'; readonly kind: string })
  | (WithMetadata & { readonly type: 'source' | 'tool-approval-request' });

export type AiSdkStreamPart =
  | AiSdkContent
  | (WithMetadata & { readonly type: 'text-start' | 'reasoning-start'; readonly id: string })
  | (WithMetadata & {
      readonly type: 'text-delta' | 'reasoning-delta';
      readonly id: string;
      readonly delta: string;
    })
  | (WithMetadata & { readonly type: 'text-end' | 'reasoning-end'; readonly id: string })
  | { readonly type: 'tool-input-start'; readonly id: string; readonly toolName: string }
  | { readonly type: 'tool-input-delta'; readonly id: string; readonly delta: string }
  | { readonly type: 'stream-start'; readonly warnings?: readonly AiSdkWarning[] | undefined }
  | ({ readonly type: 'response-metadata' } & AiSdkResponseMetadata)
  | { readonly type: 'error'; readonly error: unknown }
  | ({ readonly type: 'finish' } & Omit<AiSdkResult, 'content' | 'response' | 'warnings'>)
  | { readonly type: 'tool-input-end' | 'raw' | 'ping' };
