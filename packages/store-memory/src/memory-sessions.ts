/** Transcripts of sessions, saved by compare-and-swap. */
import { assertCheckpointId, deepFreeze, frozenCopy, type SessionStore } from '@lousho/contract';
import type { MemoryState } from './memory-state.ts';

export function memorySessions(state: MemoryState): Required<SessionStore> {
  const enter = (operation: string, id: string): void => {
    state.assertOpen(operation);
    assertCheckpointId(id);
  };
  return {
    async load(id) {
      enter('sessions.load', id);
      return state.sessions.get(id) ?? null;
    },
    async saveIfRevision(record, expectedRevision) {
      enter('sessions.saveIfRevision', record.id);
      const storedRevision = state.sessions.get(record.id)?.revision ?? 0;
      if (storedRevision !== expectedRevision) return false;
      state.sessions.set(record.id, deepFreeze({ ...frozenCopy(record), revision: expectedRevision + 1 }));
      return true;
    },
    async delete(id) {
      enter('sessions.delete', id);
      state.sessions.delete(id);
    },
    async list() {
      state.assertOpen('sessions.list');
      return [...state.sessions.keys()].sort();
    },
  };
}
