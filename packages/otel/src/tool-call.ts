/** The `execute_tool` span of one call that runs, and its metric. */
import type { ToolCallEnd, ToolCallInfo, ToolResultPart } from '@lousho/contract';
import { SpanKind, trace, type Attributes, type Context, type Span } from '@opentelemetry/api';
import { attributes } from './conventions.ts';
import { errorType, markFailed, messageOf } from './failure.ts';
import type { Recorder } from './options.ts';

export class ToolCall {
  /** What the tool's own spans belong below. */
  readonly context: Context;
  readonly #span: Span;
  readonly #recorder: Recorder;
  /** On the span and on the metric. */
  readonly #common: Attributes;
  readonly #startedMs: number;

  constructor(info: ToolCallInfo, parent: Context, recorder: Recorder) {
    const { call, agentName, args } = info;
    this.#recorder = recorder;
    this.#startedMs = recorder.clock.monotonicMs();
    this.#common = {
      [attributes.toolName]: call.toolName,
      [attributes.toolType]: 'function',
      [attributes.agentName]: agentName,
    };
    this.#span = recorder.tracer.startSpan(
      `execute_tool ${call.toolName}`,
      { kind: SpanKind.INTERNAL, attributes: { ...this.#common, ...callAttributes(info) } },
      parent,
    );
    this.context = trace.setSpan(parent, this.#span);
    if (recorder.recordContent && this.#span.isRecording())
      this.#span.setAttribute(attributes.toolCallArguments, JSON.stringify(args));
  }

  end(end: ToolCallEnd): void {
    const failure = this.#note(end);
    this.#span.end();
    const seconds = (this.#recorder.clock.monotonicMs() - this.#startedMs) / 1_000;
    const about = failure === undefined ? this.#common : { ...this.#common, [attributes.errorType]: failure };
    this.#recorder.metrics.toolCall(seconds, about, this.context);
  }

  /** The `error.type` of a call that failed. */
  #note(end: ToolCallEnd): string | undefined {
    switch (end.type) {
      case 'result':
        return this.#noteResult(end.result);
      case 'propagated':
        return this.#fail(errorType(end.error), messageOf(end.error));
      case 'waits':
        this.#span.setAttribute(attributes.status, 'awaiting-approval');
        return undefined;
      case 'open':
        this.#span.setAttribute(attributes.status, 'suspended');
        return undefined;
    }
  }

  #noteResult({ kind, result }: ToolResultPart): string | undefined {
    if (this.#recorder.recordContent && this.#span.isRecording())
      this.#span.setAttribute(attributes.toolCallResult, JSON.stringify(result));
    if (kind === undefined) return undefined;
    if (kind !== 'cancelled') return this.#fail(kind, String((result as { readonly error?: unknown }).error));
    // Whoever stopped the run wanted it so.
    this.#span.setAttribute(attributes.cancelled, true);
    return undefined;
  }

  #fail(type: string, message: string): string {
    markFailed(this.#span, type, this.#recorder.recordContent ? message : undefined);
    return type;
  }
}

function callAttributes({ call, description, rerun, approvalId, step }: ToolCallInfo): Attributes {
  return {
    [attributes.operationName]: 'execute_tool',
    [attributes.toolCallId]: call.toolCallId,
    [attributes.toolDescription]: description,
    [attributes.step]: step,
    ...(rerun && { [attributes.rerun]: true }),
    ...(approvalId !== undefined && { [attributes.approvalId]: approvalId }),
  };
}
