/** Lousho's telemetry as OpenTelemetry spans and metrics: `invoke_agent` around `chat` and `execute_tool`, links over pauses and crashes. */
import type { ModelCallInfo, SegmentInfo, Telemetry } from '@lousho/contract';
import { context, type Context, type HrTime } from '@opentelemetry/api';
import { approvalRequested, attributes, checkpointSave } from './conventions.ts';
import { ModelCall } from './model-call.ts';
import { resolveOptions, type OpenTelemetryOptions, type Recorder } from './options.ts';
import { Segment } from './segment.ts';
import { ToolCall } from './tool-call.ts';
import { formatTraceparent } from './traceparent.ts';

/**
 * For the option `telemetry` of an agent; one object may serve any number of agents. Needs no SDK: without one it traces nothing.
 * @throws synchronously LOUSHO_CONFIG_INVALID naming the option
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  const recorder = resolveOptions(options);
  const segments = new Map<string, Segment>();
  const modelCalls = new WeakMap<ModelCallInfo, ModelCall>();
  return {
    async segment(info, work) {
      const segment = new Segment(info, callerOf(info, segments), recorder);
      segments.set(info.segmentId, segment);
      return watch(() => context.with(segment.root.context, work), {
        gave: (result) => segment.end({ type: 'ended', result }),
        threw: (error) => segment.end({ type: 'failed', error }),
      }).finally(() => segments.delete(info.segmentId));
    },
    async modelCall(info, work) {
      const agent = segments.get(info.segmentId)?.invocationOf(info);
      const call = new ModelCall(info, agent?.context ?? context.active(), recorder);
      modelCalls.set(info, call);
      return watch(() => context.with(call.context, work), {
        gave(response) {
          agent?.addModelCall(response);
          call.answered(response);
        },
        threw(error) {
          agent?.addModelCall(undefined);
          call.failed(error);
        },
      });
    },
    async toolCall(info, work) {
      const segment = segments.get(info.segmentId);
      const agent = segment?.invocationOf(info);
      const call = new ToolCall(info, agent?.context ?? context.active(), recorder);
      if (agent !== undefined) agent.toolCalls += 1;
      segment?.calls.set(info.call.toolCallId, call.context);
      const end = await context.with(call.context, work);
      segment?.calls.delete(info.call.toolCallId);
      call.end(end);
      return end;
    },
    onFirstChunk: (info) => modelCalls.get(info)?.firstChunk(),
    onApproval(info) {
      const { id, kind, toolName, toolCallId, subagentPath } = info.approval;
      segments
        .get(info.segmentId)
        ?.invocationOf(info)
        .span.addEvent(approvalRequested, {
          [attributes.approvalId]: id,
          [attributes.approvalKind]: kind,
          [attributes.toolName]: toolName,
          [attributes.toolCallId]: toolCallId,
          ...(subagentPath !== undefined && { [attributes.subagentPath]: [...subagentPath] }),
        });
    },
    ...(recorder.recordCheckpoints && { onCheckpoint: checkpointsOf(segments, recorder) }),
    traceparent({ segmentId }) {
      const segment = segments.get(segmentId);
      return segment && formatTraceparent(segment.root.span.spanContext());
    },
  };
}

/** One of the two is told, once. */
async function watch<Value>(
  work: () => Promise<Value>,
  tell: { gave(value: Value): void; threw(error: unknown): void },
): Promise<Value> {
  let value: Value;
  try {
    value = await work();
  } catch (error) {
    tell.threw(error);
    throw error;
  }
  tell.gave(value);
  return value;
}

/** Told by the run, not read from the active context: a platform without async context has the same tree. */
function callerOf({ calledBy }: SegmentInfo, segments: ReadonlyMap<string, Segment>): Context {
  const calls = calledBy && segments.get(calledBy.segmentId)?.calls;
  return calls?.get(calledBy?.toolCallId ?? '') ?? context.active();
}

/** A save is told when it is done; one that comes before its segment begins belongs to none. */
function checkpointsOf(
  segments: ReadonlyMap<string, Segment>,
  { tracer, clock }: Recorder,
): NonNullable<Telemetry['onCheckpoint']> {
  return (info) => {
    const segment = segments.get(info.segmentId);
    if (segment === undefined) return;
    const endMs = clock.wallMs();
    const about = {
      [attributes.checkpointId]: info.checkpointId,
      [attributes.checkpointStatus]: info.status,
      [attributes.fenced]: info.fenced,
      [attributes.step]: info.step,
    };
    const startTime = hrTime(endMs - info.durationMs);
    tracer
      .startSpan(checkpointSave, { attributes: about, startTime }, segment.root.context)
      .end(hrTime(endMs));
  };
}

/** Seconds and nanoseconds: a plain number is taken for the time since the process began when it is small. */
function hrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1_000);
  return [seconds, Math.round((epochMs - seconds * 1_000) * 1e6)];
}
