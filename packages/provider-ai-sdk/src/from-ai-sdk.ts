/** Any language model of the AI SDK as the provider of an agent. */
import {
  LLMProviderError,
  requireKnownOptions,
  type LLMProvider,
  type LLMRequest,
  type LLMResponse,
  type LLMStreamEvent,
  type ModelSettings,
} from '@lousho/contract';
import { writeCall, type CallTarget } from './call-options.ts';
import {
  specVersionOf,
  type AiSdkLanguageModel,
  type AiSdkResult,
  type AiSdkStreamPart,
} from './language-model.ts';
import { asProviderError } from './provider-error.ts';
import { readContent } from './read-content.ts';
import { readResponse } from './read-response.ts';
import { readStream } from './read-stream.ts';

export interface FromAiSdkOptions {
  /** Merged below what a request brings. */
  readonly settings?: ModelSettings | undefined;
  /** Lets OpenAI keep responses on its side: edits of a fork are then ignored by it. Default `false`. */
  readonly openaiStore?: boolean | undefined;
  /** For local servers that end a stream without a reason. Default `false`: such a stream is an error. */
  readonly allowMissingFinishReason?: boolean | undefined;
}

/**
 * The model as a provider. It does not retry (the executor does), and downloads nothing: URLs of files go to the service.
 * @throws synchronously LLMProviderError for another specification version, LOUSHO_CONFIG_INVALID for what is no model and for an unknown
 * option
 */
export function fromAiSdk(model: AiSdkLanguageModel, options: FromAiSdkOptions = {}): LLMProvider {
  requireKnownOptions<FromAiSdkOptions>('', options, {
    settings: true,
    openaiStore: true,
    allowMissingFinishReason: true,
  });
  const { settings = {}, openaiStore = false, allowMissingFinishReason = false } = options;
  const version = specVersionOf(model);
  const target: CallTarget = { version, provider: model.provider, settings, openaiStore };

  return {
    // `openai.responses` and `openai.chat` share the key of their metadata.
    providerId: model.provider.split('.')[0] ?? model.provider,
    modelId: model.modelId,

    async generate(request) {
      try {
        const { options: callOptions, warnings } = prepare(request);
        return readResult((await model.doGenerate(callOptions as never)) as AiSdkResult, warnings);
      } catch (error) {
        throw asProviderError(error, { signal: request.signal, isStreaming: false });
      }
    },

    async *stream(request): AsyncGenerator<LLMStreamEvent> {
      let isStreaming = false;
      try {
        const { options: callOptions, warnings } = prepare(request);
        const { stream } = (await model.doStream(callOptions as never)) as {
          readonly stream: ReadableStream<AiSdkStreamPart>;
        };
        isStreaming = true;
        yield* readStream(stream, { allowMissingFinishReason, warnings });
      } catch (error) {
        throw asProviderError(error, { signal: request.signal, isStreaming });
      }
    },
  };

  function prepare(request: LLMRequest): ReturnType<typeof writeCall> {
    request.signal.throwIfAborted();
    if (request.model !== undefined && request.model !== model.modelId)
      throw new LLMProviderError(
        `This provider is the model "${model.modelId}"; it cannot ask "${request.model}". Make a provider of that model with fromAiSdk.`,
        { kind: 'config', retryable: false },
      );
    return writeCall(request, target);
  }
}

function readResult(result: AiSdkResult, warnings: readonly string[]): LLMResponse {
  if (!Array.isArray(result?.content))
    throw new LLMProviderError('The model gave no content.', { kind: 'invalid-response', retryable: true });
  return readResponse(result.content.flatMap(readContent), result, warnings);
}
