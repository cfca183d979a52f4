/** The state of a run without a store, as the record of its approval carries it. */
import {
  parseCheckpoint,
  type ApprovalSnapshot,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointStore,
} from '@lousho/contract';
import { ephemeralCheckpoints } from './ephemeral-store.ts';
import { fold } from './fold.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { openCalls } from './next-action.ts';
import type { Run } from './run.ts';
import { openTasks, taskChildId } from './task-ledger.ts';
import { failures } from './tool-result.ts';

/** Read when it is asked for, as a decision of a sibling call changes it. @throws LOUSHO_CHECKPOINT_CORRUPT */
export function stateInRecord(inbox: ApprovalStore, approvalId: string): CheckpointStore {
  return ephemeralCheckpoints(async (id) => {
    const { snapshot } = (await inbox.load(approvalId)) ?? {};
    const stored = snapshot?.checkpoints.find(({ checkpointId }) => checkpointId === id)?.checkpoint;
    if (snapshot === undefined || stored === undefined) return undefined;
    const checkpoint = parseCheckpoint(stored, id);
    return snapshot.remainingToolCalls === undefined ? withoutLaterCalls(checkpoint, approvalId) : checkpoint;
  });
}

/** Releases that did not know the later calls of a step paused at the first gated one: nobody knows whether those were wanted. */
function withoutLaterCalls(checkpoint: Checkpoint, approvalId: string): Checkpoint {
  const paused = checkpoint.approvals.find(({ id }) => id === approvalId);
  const open = openCalls(checkpoint);
  const at = open.findIndex(({ call }) => call.toolCallId === paused?.toolCallId);
  const results = at < 0 ? [] : open.slice(at + 1).map(({ call }) => failures.leftBehind(call));
  return results.length === 0 ? checkpoint : fold(checkpoint, { type: 'results', results });
}

/** The state of a run that waits, with that of the sub-agents that it waits for, or that work in the background. */
export async function snapshotOf(
  { checkpointId, store }: Pick<Run, 'checkpointId' | 'store'>,
  checkpoint: Checkpoint,
): Promise<ApprovalSnapshot> {
  const checkpoints = [{ checkpointId, checkpoint }];
  // It grows while it is read: a sub-agent may wait for its own.
  for (const { checkpointId: id, checkpoint: known } of checkpoints) {
    const inBackground = openTasks(known).map((task) => taskChildId(id, known, task));
    for (const childId of new Set([...known.approvals.map((one) => one.childId), ...inBackground])) {
      const child = childId === undefined ? null : await loadCheckpoint(store, childId);
      if (childId !== undefined && child !== null)
        checkpoints.push({ checkpointId: childId, checkpoint: child });
    }
  }
  return { checkpoints, remainingToolCalls: [] };
}
