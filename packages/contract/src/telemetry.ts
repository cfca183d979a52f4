/** Tracing without imports: three wrappers and three callbacks. */
import type { ApprovalRequest } from './approval.ts';
import type { CheckpointStatus } from './checkpoint.ts';
import type { ToolCallPart } from './messages.ts';
import type { LLMRequest, LLMResponse } from './provider.ts';
import type { ExecutionResult } from './result.ts';

export interface SegmentInfo {
  readonly runId: string;
  readonly sessionId?: string;
  readonly agentName: string;
  readonly providerId: string;
  readonly modelId: string;
  readonly resumed: boolean;
  readonly step: number;
  readonly attempts: number;
  /** Of the segment before, when the run was paused or interrupted: link to it. */
  readonly linkTo?: string;
  readonly forkedFrom?: { readonly sessionId: string; readonly step: number };
}
/** Tracing without imports. The three wrappers call `work` once and pass on what it returns or throws. */
export interface Telemetry {
  /** One stretch of execution: until finished, paused, aborted or failed. A pause is never inside one. */
  segment?<T extends ExecutionResult>(info: SegmentInfo, work: () => Promise<T>): Promise<T>;
  modelCall?<T extends LLMResponse>(
    info: SegmentInfo & { readonly request: LLMRequest },
    work: () => Promise<T>,
  ): Promise<T>;
  toolCall?<T>(
    info: SegmentInfo & { readonly call: ToolCallPart; readonly rerun: boolean },
    work: () => Promise<T>,
  ): Promise<T>;
  onCheckpoint?(
    info: SegmentInfo & {
      readonly checkpointId: string;
      readonly status: CheckpointStatus;
      readonly durationMs: number;
      readonly fenced: boolean;
    },
  ): void;
  onApproval?(info: SegmentInfo & { readonly approval: ApprovalRequest }): void;
  /** Of the current segment; saved in the checkpoint. */
  traceparent?(): string | undefined;
}
