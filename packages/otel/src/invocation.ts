/** One agent at work: its `invoke_agent` span, and what it called and spent itself. Sub-agents and who takes over count for themselves. */
import { isSDKError, type ExecutionResult, type LLMResponse, type SegmentInfo } from '@lousho/contract';
import { SpanKind, trace, type Attributes, type Context, type Link, type Span } from '@opentelemetry/api';
import { outputText } from './content.ts';
import { attributes } from './conventions.ts';
import { errorType, markFailed, messageOf } from './failure.ts';
import { finishReason } from './model-call.ts';
import type { Recorder } from './options.ts';

export type SegmentEnd =
  | { readonly type: 'ended'; readonly result: ExecutionResult }
  | { readonly type: 'failed'; readonly error: unknown };
export type InvocationEnd = SegmentEnd | { readonly type: 'handed-over' };

export class Invocation {
  readonly agentName: string;
  readonly span: Span;
  /** Of what it does. */
  readonly context: Context;
  toolCalls = 0;
  #modelCalls = 0;
  #inputTokens = 0;
  #outputTokens = 0;
  #lastFinishReason: string | undefined;
  readonly #recorder: Recorder;
  readonly #startedMs: number;

  constructor(info: SegmentInfo, parent: Context, links: Link[], recorder: Recorder) {
    const { agentName } = info;
    this.agentName = agentName;
    this.#recorder = recorder;
    this.#startedMs = recorder.clock.monotonicMs();
    this.span = recorder.tracer.startSpan(
      `invoke_agent ${agentName}`,
      { kind: SpanKind.INTERNAL, attributes: attributesOf(info), links },
      parent,
    );
    this.context = trace.setSpan(parent, this.span);
  }

  /** `undefined`: it gave no response. */
  addModelCall(response: LLMResponse | undefined): void {
    this.#modelCalls += 1;
    if (response === undefined) return;
    this.#inputTokens += response.usage.inputTokens ?? 0;
    this.#outputTokens += response.usage.outputTokens ?? 0;
    this.#lastFinishReason = finishReason(response);
  }

  end(end: InvocationEnd): void {
    const { clock, metrics } = this.#recorder;
    this.span.setAttributes({
      [attributes.inputTokens]: this.#inputTokens,
      [attributes.outputTokens]: this.#outputTokens,
      ...(this.#lastFinishReason !== undefined && { [attributes.finishReasons]: [this.#lastFinishReason] }),
    });
    const failure = end.type === 'failed' ? this.#fail(end.error) : this.#finish(end);
    this.span.end();
    const seconds = (clock.monotonicMs() - this.#startedMs) / 1_000;
    const spent = { seconds, modelCalls: this.#modelCalls, toolCalls: this.toolCalls };
    metrics.agent(spent, this.agentName, failure, this.context);
  }

  #finish(end: Exclude<InvocationEnd, { readonly type: 'failed' }>): Attributes {
    const { finishReason: status, text } =
      end.type === 'ended' ? end.result : { finishReason: end.type, text: '' };
    this.span.setAttribute(attributes.status, status);
    if (this.#recorder.recordContent && text !== '')
      this.span.setAttribute(attributes.outputMessages, outputText(text));
    return {};
  }

  #fail(error: unknown): Attributes {
    // The process goes away and another one goes on: nothing is wrong with the run.
    if (isSDKError(error, 'LOUSHO_SHUTDOWN')) {
      this.span.setAttribute(attributes.status, 'suspended');
      return {};
    }
    const type = errorType(error);
    this.span.setAttribute(attributes.status, 'failed');
    markFailed(this.span, type, this.#recorder.recordContent ? messageOf(error) : undefined);
    return { [attributes.errorType]: type };
  }
}

function attributesOf(info: SegmentInfo): Attributes {
  const { sessionId, forkedFrom, subagentPath } = info;
  return {
    [attributes.operationName]: 'invoke_agent',
    [attributes.agentName]: info.agentName,
    [attributes.requestModel]: info.modelId,
    ...(sessionId !== undefined && { [attributes.conversationId]: sessionId }),
    [attributes.runId]: info.runId,
    [attributes.resumed]: info.resumed,
    [attributes.step]: info.step,
    [attributes.attempts]: info.attempts,
    ...(forkedFrom !== undefined && {
      [attributes.forkedFrom]: forkedFrom.sessionId,
      [attributes.forkedAtStep]: forkedFrom.step,
    }),
    ...(subagentPath !== undefined && { [attributes.subagentPath]: [...subagentPath] }),
  };
}
