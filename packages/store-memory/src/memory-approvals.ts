/** The inbox of pauses. */
import { assertCheckpointId, frozenCopy, type ApprovalRecord, type ApprovalStore } from '@lousho/contract';
import type { MemoryState } from './memory-state.ts';

export function memoryApprovals(state: MemoryState): ApprovalStore {
  return {
    async save(record) {
      state.assertOpen('approvals.save');
      assertCheckpointId(record.id);
      state.approvals.set(record.id, frozenCopy(record));
    },
    // An id that could not be saved is one that nobody saved: people paste ids, and a wrong one is no error of the store.
    async load(id) {
      state.assertOpen('approvals.load');
      return state.approvals.get(id) ?? null;
    },
    async list({ sessionId } = {}) {
      state.assertOpen('approvals.list');
      const records = [...state.approvals.values()];
      return records
        .filter((record) => sessionId === undefined || record.sessionId === sessionId)
        .sort(compareCreation);
    },
    async delete(id) {
      state.assertOpen('approvals.delete');
      return state.approvals.delete(id);
    },
  };
}

function compareCreation(a: ApprovalRecord, b: ApprovalRecord): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}
