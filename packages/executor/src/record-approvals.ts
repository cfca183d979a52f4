/** Calls that wait for a person, and what was decided about them, on their way into the checkpoint. */
import {
  lastStep,
  type Checkpoint,
  type CheckpointApproval,
  type Decision,
  type JsonValue,
} from '@lousho/contract';

export interface Paused {
  readonly approvals: readonly CheckpointApproval[];
  /** The caller's state, if a tool changed it before it asked. */
  readonly businessState?: JsonValue;
}
export interface Decided {
  readonly approvalId: string;
  readonly decision: Decision;
}

export function pause(checkpoint: Checkpoint, outcome: Paused): Checkpoint {
  const asking = outcome.approvals.filter(
    ({ question, childId }) => question !== undefined && childId === undefined,
  );
  return {
    ...checkpoint,
    approvals: mergeApprovals(checkpoint, outcome.approvals),
    // A call that asks has done its part: it is not under way while it waits, and is marked again when it goes on.
    ...(asking.length === 0
      ? undefined
      : {
          startedToolCallIds: checkpoint.startedToolCallIds.filter(
            (id) => !asking.some(({ toolCallId }) => toolCallId === id),
          ),
        }),
    ...('businessState' in outcome ? { businessState: outcome.businessState } : undefined),
  };
}

function mergeApprovals(
  checkpoint: Checkpoint,
  added: readonly CheckpointApproval[],
): readonly CheckpointApproval[] {
  const calls = lastStep(checkpoint.messages)?.calls ?? [];
  const place = (approval: CheckpointApproval): number =>
    calls.findIndex((call) => call.toolCallId === approval.toolCallId);
  const kept = checkpoint.approvals.filter((known) => !added.some((approval) => approval.id === known.id));
  return [...kept, ...added].sort((a, b) => place(a) - place(b));
}

export function decide(checkpoint: Checkpoint, { approvalId, decision }: Decided): Checkpoint {
  const approvals = checkpoint.approvals.map((approval) =>
    approval.id === approvalId ? { ...approval, decision } : approval,
  );
  const decided = checkpoint.approvals.find((approval) => approval.id === approvalId);
  // "Yes, run it again": the mark of the cut attempt goes, in the same save, so that the call runs.
  const runsAgain = decided?.kind === 'interrupted' && decided.childId === undefined && decision.approved;
  return {
    ...checkpoint,
    approvals,
    startedToolCallIds: runsAgain
      ? checkpoint.startedToolCallIds.filter((id) => id !== decided.toolCallId)
      : checkpoint.startedToolCallIds,
  };
}
