/** Drops one run from a store, with its sub-agents and approvals, while nobody executes it. */
import {
  SDKError,
  classifyCheckpointId,
  platformIds,
  type AgentStore,
  type CheckpointStore,
} from '@lousho/contract';

/** Longer than a few deletes take; a command that dies blocks the run for no longer than any process. */
const LEASE_MS = 30_000;

/** @throws LOUSHO_SESSION_BUSY; what the store throws */
export async function discardRun(store: AgentStore, id: string): Promise<void> {
  const { checkpoints, approvals } = store;
  if (checkpoints === undefined) return;
  const owner = `discard-${platformIds.random()}`;
  const lease = (await checkpoints.acquireLease?.(id, owner, LEASE_MS)) ?? true;
  if (lease === false) throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: id });
  try {
    // 1. Its sub-agents, innermost first. Crash in between: the run is still there, and dropping it again finds the others.
    for (const childId of await childrenOf(checkpoints, id)) await checkpoints.delete(childId);
    // 2. The run. Crash behind it: its approvals are orphans, which nobody can decide and no list shows.
    await checkpoints.delete(id);
    // 3. Its approvals.
    for (const record of (await approvals?.list()) ?? [])
      if (record.checkpointId === id) await approvals?.delete(record.id);
  } finally {
    await checkpoints.releaseLease?.(id, owner, typeof lease === 'object' ? lease.fence : undefined);
  }
}

async function childrenOf(checkpoints: CheckpointStore, id: string): Promise<readonly string[]> {
  const listed = await (checkpoints.listHeaders?.() ?? checkpoints.list?.());
  return (listed ?? [])
    .map(({ sessionId }) => sessionId)
    .filter((childId) => {
      const named = classifyCheckpointId(childId);
      return named.kind === 'child' && named.leadId === id;
    })
    .sort((a, b) => b.length - a.length);
}
