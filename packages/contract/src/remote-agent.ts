/** An agent elsewhere that works on tasks, as the executor sees it. How it is reached is no matter of the executor: `@lousho/http` has one. */
import type { ApprovalDecision, ApprovalRequest } from './approval.ts';
import type { SDKError } from './errors.ts';
import type { Clock } from './ports.ts';
import type { ReachedLimit, RunEnd } from './run.ts';
import type { DelegatedUsage } from './usage.ts';

/** One task in a conversation of the remote. Asked for again, by another process too, it names the same ids. */
export interface RemoteTask {
  /** 1-128 characters of `A-Za-z0-9_-`. A task that goes on with an earlier one has the same. */
  readonly sessionId: string;
  /** What the remote has taken under this id is never given to it a second time. */
  readonly inputId: string;
  readonly prompt: string;
  /**
   * What the remote has answered to before and must still hold: nothing, what was said in earlier tasks, or this task itself. Gone there,
   * the task would begin anew.
   */
  readonly knownThere: 'nothing' | 'conversation' | 'task';
  /** By the remote's own approval ids. Given again until its next answer is stored. */
  readonly decisions: readonly ApprovalDecision[];
  /** Aborts when nobody waits for the answer any more. The remote is not stopped by that. */
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
  /** Before it is asked again: resolves after this time, or when the signal aborts. `attempt`: from 1. */
  pause(delayMs: number, attempt: number, why: SDKError): Promise<void>;
}

/** A call at the remote that waits for a person. */
export type RemoteApproval = Pick<
  ApprovalRequest,
  'id' | 'kind' | 'toolCallId' | 'toolName' | 'args' | 'question' | 'subagentPath' | 'expiresAt'
>;

export type RemoteAnswer =
  /** `usage`: of this task, from its beginning. */
  | {
      readonly type: 'ended';
      readonly text: string;
      readonly finishReason: RunEnd;
      readonly limit?: ReachedLimit | undefined;
      readonly usage: DelegatedUsage;
    }
  /** At least one. */
  | { readonly type: 'waits'; readonly approvals: readonly RemoteApproval[] }
  /** Somebody stopped it there. */
  | { readonly type: 'stopped'; readonly usage: DelegatedUsage };

export interface RemoteAgent {
  /**
   * Gives the task, or asks for it again, with what people decided, and waits for what it comes to. Asks as often as it takes to get an
   * answer; a decision that somebody else made meanwhile is none any more. @throws LOUSHO_REMOTE_FAILED
   */
  work(task: RemoteTask): Promise<RemoteAnswer>;
  /** Nobody wants it any more. Gives what it has spent, if the remote says so. */
  stop(task: RemoteTask): Promise<DelegatedUsage | undefined>;
}
