/** The `chat` span of one request to a model, and its metrics. */
import type { LLMResponse, LLMUsage, ModelCallInfo } from '@lousho/contract';
import { SpanKind, trace, type Attributes, type Context, type Span } from '@opentelemetry/api';
import { inputMessages, outputMessage, systemInstructions, toolDefinitions } from './content.ts';
import { attributes, providerName } from './conventions.ts';
import { errorType, markFailed, messageOf } from './failure.ts';
import type { Recorder } from './options.ts';

export class ModelCall {
  readonly context: Context;
  readonly #span: Span;
  readonly #info: ModelCallInfo;
  readonly #recorder: Recorder;
  /** On the span and on every metric. */
  readonly #common: Attributes;
  readonly #startedMs: number;

  constructor(info: ModelCallInfo, parent: Context, recorder: Recorder) {
    const { providerId, modelId } = info;
    this.#info = info;
    this.#recorder = recorder;
    this.#startedMs = recorder.clock.monotonicMs();
    this.#common = {
      [attributes.operationName]: 'chat',
      [attributes.providerName]: providerName(providerId),
      [attributes.requestModel]: modelId,
    };
    this.#span = recorder.tracer.startSpan(
      `chat ${modelId}`,
      { kind: SpanKind.CLIENT, attributes: { ...this.#common, ...requestAttributes(info) } },
      parent,
    );
    this.context = trace.setSpan(parent, this.#span);
    if (recorder.recordContent && this.#span.isRecording()) this.#span.setAttributes(requestContent(info));
  }

  firstChunk(): void {
    const seconds = this.#secondsSoFar();
    this.#span.setAttribute(attributes.timeToFirstChunk, seconds);
    this.#recorder.metrics.firstChunk(seconds, this.#common, this.context);
  }

  answered(response: LLMResponse): void {
    const { message, responseId, modelId, usage } = response;
    this.#span.setAttributes({
      [attributes.finishReasons]: [finishReason(response)],
      ...(responseId !== undefined && { [attributes.responseId]: responseId }),
      ...(modelId !== undefined && { [attributes.responseModel]: modelId }),
      ...usageAttributes(usage),
    });
    if (this.#recorder.recordContent && this.#span.isRecording())
      this.#span.setAttribute(attributes.outputMessages, outputMessage(message));
    this.#end(usage, modelId === undefined ? {} : { [attributes.responseModel]: modelId });
  }

  failed(error: unknown): void {
    // A response was expected and did not come.
    this.#span.setAttribute(attributes.finishReasons, ['error']);
    if (this.#info.request.signal.aborted) {
      // Whoever stopped the run wanted it so; nothing is wrong with the model.
      this.#span.setAttribute(attributes.cancelled, true);
      return this.#end({}, {});
    }
    const type = errorType(error);
    markFailed(this.#span, type, this.#recorder.recordContent ? messageOf(error) : undefined);
    this.#end({}, { [attributes.errorType]: type });
  }

  #end(usage: LLMUsage, ended: Attributes): void {
    this.#span.end();
    const about = { common: this.#common, ended };
    this.#recorder.metrics.modelCall(this.#secondsSoFar(), usage, about, this.context);
  }

  #secondsSoFar(): number {
    return (this.#recorder.clock.monotonicMs() - this.#startedMs) / 1_000;
  }
}

/** In the words of the conventions. */
export function finishReason({ finishReason: reason }: LLMResponse): string {
  return reason === 'tool-calls' ? 'tool_call' : reason.replace('-', '_');
}

function requestAttributes({ sessionId, step, retries, isStreamed, request }: ModelCallInfo): Attributes {
  const { maxOutputTokens, temperature, topP, stopSequences, seed, reasoning, responseFormat } =
    request.settings;
  return {
    ...(sessionId !== undefined && { [attributes.conversationId]: sessionId }),
    [attributes.step]: step,
    ...(retries > 0 && { [attributes.retries]: retries }),
    ...(isStreamed && { [attributes.stream]: true }),
    ...(maxOutputTokens !== undefined && { [attributes.maxTokens]: maxOutputTokens }),
    ...(temperature !== undefined && { [attributes.temperature]: temperature }),
    ...(topP !== undefined && { [attributes.topP]: topP }),
    ...(stopSequences !== undefined && { [attributes.stopSequences]: [...stopSequences] }),
    ...(seed !== undefined && { [attributes.seed]: seed }),
    ...(reasoning !== undefined && { [attributes.reasoningLevel]: reasoning }),
    ...(responseFormat !== undefined && { [attributes.outputType]: responseFormat.type }),
  };
}

function requestContent({ request: { messages, tools } }: ModelCallInfo): Attributes {
  const system = systemInstructions(messages);
  return {
    ...(system !== undefined && { [attributes.systemInstructions]: system }),
    [attributes.inputMessages]: inputMessages(messages),
    ...(tools.length > 0 && { [attributes.toolDefinitions]: toolDefinitions(tools) }),
  };
}

function usageAttributes(usage: LLMUsage): Attributes {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens, costUsd } = usage;
  return {
    ...(inputTokens !== undefined && { [attributes.inputTokens]: inputTokens }),
    ...(outputTokens !== undefined && { [attributes.outputTokens]: outputTokens }),
    ...(cachedInputTokens && { [attributes.cacheReadTokens]: cachedInputTokens }),
    ...(cacheWriteTokens && { [attributes.cacheWriteTokens]: cacheWriteTokens }),
    ...(reasoningTokens && { [attributes.reasoningTokens]: reasoningTokens }),
    ...(costUsd !== undefined && { [attributes.costUsd]: costUsd }),
  };
}
