/** What `send` and its like resolve with. */
import type { BackgroundTask } from './background-task.ts';
import type { JsonValue } from './json.ts';
import type { Message } from './messages.ts';
import type { ReachedLimit, RunEnd, ToolCallRecord } from './run.ts';
import type { RunUsage } from './usage.ts';

export interface ResultBase {
  readonly runId: string;
  readonly sessionId?: string;
  /** Who answered: after a handoff, the target. */
  readonly agentName: string;
  /** Text of the last assistant message. */
  readonly text: string;
  /** The whole conversation. */
  readonly messages: readonly Message[];
  /** Model responses of this run. */
  readonly steps: number;
  readonly usage: RunUsage;
  /** Calls of this run, in call order. */
  readonly toolCalls: readonly ToolCallRecord[];
  readonly businessState?: JsonValue;
  /** What became of the tasks that this run gave in the background; absent when it gave none. */
  readonly backgroundTasks?: readonly BackgroundTask[];
}
interface NotPaused {
  readonly approvalId?: never;
  readonly approvalIds?: never;
}
export interface FinishedResult extends ResultBase, NotPaused {
  readonly finishReason: RunEnd;
  /** With `finishReason: 'limit'`. */
  readonly limit?: ReachedLimit;
}
export interface AbortedResult extends ResultBase, NotPaused {
  readonly finishReason: 'aborted';
  readonly abortReason: { readonly name: string; readonly message: string };
}
export interface PausedResult extends ResultBase {
  readonly finishReason: 'awaiting-approval';
  /** First of `approvalIds`. */
  readonly approvalId: string;
  /** The undecided ones in call order. */
  readonly approvalIds: readonly string[];
}
export type ExecutionResult = FinishedResult | AbortedResult | PausedResult;
