/** What to do with a run that is not over. Pure: from its header and the time. Asked of a listing, and again under the run's lease. */
import { assertNever, type CheckpointHeader } from '@lousho/contract';
import { isExpired } from '@lousho/executor/wiring';

export type RecoveryDecision =
  /** `starts`: how often it was started before without progress. */
  | { readonly type: 'resume'; readonly starts: number }
  /** Approvals that nobody decided in time. */
  | { readonly type: 'deny'; readonly approvalIds: readonly string[] }
  /** Started too often without progress. */
  | { readonly type: 'park'; readonly starts: number }
  | { readonly type: 'leave'; readonly because: LeaveReason };

export type LeaveReason =
  | 'finished'
  | 'another-agent'
  /** The store may not show yet what others saved. */
  | 'just-saved'
  | 'waits-for-a-person'
  | 'stopped-by-a-person'
  | 'parked'
  /** A fork that nobody has resumed: whoever made it says when. */
  | 'not-started'
  /** Its last error said that the next attempt would fail the same way. */
  | 'fails-the-same-way'
  | 'backing-off';

export interface RecoveryRules {
  /** Only its own runs. */
  readonly agentName: string;
  readonly maxAttempts: number;
  /** How long a run must have been at rest: 0 where everybody reads what was saved last. */
  readonly minRestMs: number;
}

/** @param forgivenStarts starts that were lost to the store, not to the run */
export function decideRecovery(
  header: CheckpointHeader,
  { agentName, maxAttempts, minRestMs }: RecoveryRules,
  nowMs: number,
  forgivenStarts = 0,
): RecoveryDecision {
  if (header.status === 'finished') return leave('finished');
  if (header.agentName !== agentName) return leave('another-agent');
  const restMs = nowMs - Date.parse(header.savedAt);
  if (minRestMs > 0 && restMs < minRestMs) return leave('just-saved');
  switch (header.status) {
    case 'awaiting-approval': {
      const expired = header.approvals.filter(
        (approval) => header.approvalIds.includes(approval.id) && isExpired(approval, nowMs),
      );
      if (expired.length === 0) return leave('waits-for-a-person');
      return { type: 'deny', approvalIds: expired.map(({ id }) => id) };
    }
    case 'in-progress': {
      if (header.finishReason === 'aborted') return leave('stopped-by-a-person');
      if (header.parkedAt !== undefined) return leave('parked');
      if (header.startsWithoutProgress === 0) return leave('not-started');
      if (header.lastError?.retryable === false) return leave('fails-the-same-way');
      const starts = Math.max(0, (header.startsWithoutProgress ?? 0) - forgivenStarts);
      if (starts >= maxAttempts) return { type: 'park', starts };
      // Clocks of two machines differ: a save from the future is as far off as one of the past, and no run waits for ever.
      if (Math.abs(restMs) < backOffMs(starts)) return leave('backing-off');
      return { type: 'resume', starts };
    }
    default:
      return assertNever(header);
  }
}

const FIRST_BACK_OFF_MS = 30_000;
const LONGEST_BACK_OFF_MS = 3_600_000;

/** From the last save on. A run that was interrupted for the first time does not wait. */
function backOffMs(starts: number): number {
  return starts === 0 ? 0 : Math.min(FIRST_BACK_OFF_MS * 2 ** (starts - 1), LONGEST_BACK_OFF_MS);
}

function leave(because: LeaveReason): RecoveryDecision {
  return { type: 'leave', because };
}
