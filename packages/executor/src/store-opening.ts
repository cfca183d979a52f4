/** What a resume or a decision changes is stored before anything else happens. */
import { SDKError, deepFreeze, type ApprovalSnapshot, type ApprovalStore } from '@lousho/contract';
import { nextQuestionId } from './approval-gate.ts';
import { snapshotOf } from './approval-snapshot.ts';
import { removeRecordedChildren } from './child-leftovers.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import type { Run } from './run.ts';
import type { RunOrder } from './run-order.ts';

export async function storeOpening(order: RunOrder, run: Run): Promise<void> {
  // Without a store, whoever removes the record has the run: of two deciders one goes on.
  if (order.isEphemeral) await claimSnapshot(order);
  // 1. The decision, or that an execution begins. Crash before it: nothing changed.
  await run.writer.save();
  // 2. The inbox lets go of what nobody has to decide any more. Crash before it: the leftover decides nothing, and the next resume removes it.
  await removeClosed(order, run);
  // 3. Sub-agents whose result is recorded. Crash before it: nobody reads what is left, and the next resume removes it.
  await removeRecordedChildren(run);
}

async function claimSnapshot({ decision, inbox, store }: RunOrder): Promise<void> {
  if (decision === undefined || inbox === undefined) return;
  const snapshot = (await inbox.load(decision.id))?.snapshot;
  // Into this run's memory before the record goes: it is read when it is asked for.
  for (const { checkpointId } of snapshot?.checkpoints ?? []) {
    const checkpoint = await loadCheckpoint(store, checkpointId);
    if (checkpoint !== null) await store.save(checkpointId, checkpoint);
  }
  if (!(await inbox.delete(decision.id)))
    throw new SDKError('LOUSHO_APPROVAL_ORPHANED', { approvalId: decision.id });
}

/** The records are in the inbox of the lead: a sub-agent has none. */
async function removeClosed(order: RunOrder, run: Run): Promise<void> {
  const inbox = order.inbox ?? order.approvals;
  if (inbox === undefined || order.task !== undefined) return;
  const { checkpoint } = run;
  for (const { id, decision } of checkpoint.approvals) {
    if (decision !== undefined) await inbox.delete(id);
    else if (order.isEphemeral) await carrySnapshot(inbox, id, await snapshotOf(run, checkpoint));
  }
  // A call that was cut off may have asked: the record is there, the pause is not, and the call is not begun again.
  for (const open of run.openCalls())
    if (checkpoint.startedToolCallIds.includes(open.call.toolCallId))
      await inbox.delete(nextQuestionId(run, open));
}

/** The records that are still open carry the state that the next decision goes on from. */
async function carrySnapshot(inbox: ApprovalStore, id: string, snapshot: ApprovalSnapshot): Promise<void> {
  const record = await inbox.load(id);
  if (record) await inbox.save(deepFreeze({ ...record, snapshot }));
}
