/** Tracing without imports: three wrappers and four callbacks. What one of them throws changes nothing in the run. */
import type { ApprovalRequest } from './approval.ts';
import type { CheckpointStatus } from './checkpoint.ts';
import type { JsonValue } from './json.ts';
import type { ToolCallPart, ToolResultPart } from './messages.ts';
import type { LLMRequest, LLMResponse } from './provider.ts';
import type { ExecutionResult } from './result.ts';

export interface SegmentInfo {
  /** Random; the same in everything that is told of one segment. */
  readonly segmentId: string;
  readonly runId: string;
  readonly sessionId?: string;
  /** Who answers at this moment: another one after a handoff. */
  readonly agentName: string;
  readonly providerId: string;
  readonly modelId: string;
  /** The run was there before this segment. */
  readonly resumed: boolean;
  /** Model responses of the run so far. */
  readonly step: number;
  /** Failed attempts in a row. */
  readonly attempts: number;
  /** `traceparent` of the segment before, when the run was paused or interrupted: link to it. */
  readonly linkTo?: string;
  readonly forkedFrom?: { readonly sessionId: string; readonly step: number };
  /** Of the run of a sub-agent: names from the outermost to this one, and the call that runs it. */
  readonly subagentPath?: readonly string[];
  readonly calledBy?: { readonly segmentId: string; readonly toolCallId: string };
}
/** One request to the model. A retry is another one. */
export interface ModelCallInfo extends SegmentInfo {
  readonly request: LLMRequest;
  readonly isStreamed: boolean;
  /** Requests to the same model for this response before this one. */
  readonly retries: number;
}
export interface ToolCallInfo extends SegmentInfo {
  readonly call: ToolCallPart;
  /** What the tool runs with: as the model said, or as a hook or a person changed it. */
  readonly args: JsonValue;
  readonly description: string;
  /** A resume runs it, so it may have begun before. */
  readonly rerun: boolean;
  /** Of the decision that lets it run. */
  readonly approvalId?: string;
}
export type ToolCallEnd =
  /** A failure has a `kind`. */
  | { readonly type: 'result'; readonly result: ToolResultPart }
  /** Calls inside the sub-agent that it runs wait for a person, or its tool asks one. */
  | { readonly type: 'waits' }
  /** The process goes away, or lost the run: it is made again elsewhere. */
  | { readonly type: 'open' }
  /** It rejects the run. */
  | { readonly type: 'propagated'; readonly error: unknown };

/** The wrappers call `work` once and pass on what it returns or throws. */
export interface Telemetry {
  /** One stretch of execution: until finished, paused, aborted or failed. A pause is never inside one. */
  segment?<T extends ExecutionResult>(info: SegmentInfo, work: () => Promise<T>): Promise<T>;
  /** Ends when the run stops to wait for it, too: then `work` throws the reason of `request.signal`. */
  modelCall?<T extends LLMResponse>(info: ModelCallInfo, work: () => Promise<T>): Promise<T>;
  /** A call that runs, until the run has its result or stops to wait for it; `work` never throws. */
  toolCall?<T extends ToolCallEnd>(info: ToolCallInfo, work: () => Promise<T>): Promise<T>;
  /** The first word of a streamed response. `info` is the very object that `modelCall` was given. */
  onFirstChunk?(info: ModelCallInfo): void;
  onCheckpoint?(
    info: SegmentInfo & {
      readonly checkpointId: string;
      readonly status: CheckpointStatus;
      readonly durationMs: number;
      readonly fenced: boolean;
    },
  ): void;
  onApproval?(info: SegmentInfo & { readonly approval: ApprovalRequest }): void;
  /** W3C trace context of this segment, for the next one to link to; saved in the checkpoint. `undefined`: what is saved stays. */
  traceparent?(info: SegmentInfo): string | undefined;
}
