/** What a resume or a decision changes is stored before anything else happens. */
import { SDKError, deepFreeze, type ApprovalStore, type Checkpoint } from '@lousho/contract';
import type { Run } from './run.ts';
import type { RunOrder } from './run-order.ts';

export async function storeOpening(order: RunOrder, run: Run): Promise<void> {
  // Without a store, whoever removes the record has the run: of two deciders one goes on.
  if (order.isEphemeral) await claimSnapshot(order);
  // 1. The decision, or that an execution begins. Crash before it: nothing changed.
  await run.writer.save();
  // 2. The inbox lets go of what is decided. Crash before it: the leftover decides nothing, and the next resume removes it.
  await removeDecided(order, run);
}

async function claimSnapshot({ decision, inbox }: RunOrder): Promise<void> {
  if (decision === undefined || inbox === undefined) return;
  if (!(await inbox.delete(decision.id)))
    throw new SDKError('LOUSHO_APPROVAL_ORPHANED', { approvalId: decision.id });
}

async function removeDecided(order: RunOrder, run: Run): Promise<void> {
  const inbox = order.inbox ?? order.approvals;
  if (inbox === undefined) return;
  const { checkpoint } = run;
  for (const { id, decision } of checkpoint.approvals) {
    if (decision !== undefined) await inbox.delete(id);
    else if (order.isEphemeral)
      await carrySnapshot(inbox, id, { checkpointId: order.checkpointId, checkpoint });
  }
}

/** The records that are still open carry the state that the next decision goes on from. */
async function carrySnapshot(
  inbox: ApprovalStore,
  id: string,
  state: { checkpointId: string; checkpoint: Checkpoint },
): Promise<void> {
  const record = await inbox.load(id);
  if (record)
    await inbox.save(deepFreeze({ ...record, snapshot: { checkpoints: [state], remainingToolCalls: [] } }));
}
