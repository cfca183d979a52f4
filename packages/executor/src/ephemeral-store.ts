/** Where a run without a store keeps its state: memory that dies with it, with the three methods that every store has. */
import type { ApprovalRecord, ApprovalStore, Checkpoint, CheckpointStore } from '@lousho/contract';

/** `pausedState`: what a run that waits was carried away as. */
export function ephemeralCheckpoints(
  pausedState: (id: string) => Promise<Checkpoint | undefined> = async () => undefined,
): CheckpointStore {
  const checkpoints = new Map<string, Checkpoint>();
  return {
    claims: { leases: 'none', history: false, list: false, durable: 'memory', consistency: 'strong' },
    async save(id, checkpoint) {
      checkpoints.set(id, checkpoint);
    },
    async load(id) {
      return checkpoints.get(id) ?? (await pausedState(id)) ?? null;
    },
    async delete(id) {
      checkpoints.delete(id);
    },
  };
}

/** The inbox of an agent without a store. */
export function ephemeralApprovals(): ApprovalStore {
  const records = new Map<string, ApprovalRecord>();
  return {
    async save(record) {
      records.set(record.id, record);
    },
    async load(id) {
      return records.get(id) ?? null;
    },
    async list({ sessionId } = {}) {
      return [...records.values()]
        .filter((record) => sessionId === undefined || record.sessionId === sessionId)
        .sort((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0));
    },
    async delete(id) {
      return records.delete(id);
    },
  };
}
