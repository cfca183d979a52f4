/** The checkpoint part. Each method does its work in one piece, without waiting in between: that is what makes it atomic. */
import {
  assertCheckpointId,
  checkpointHeader,
  compareSaves,
  frozenCopy,
  matchesStatus,
  type Checkpoint,
  type Clock,
  type FullCheckpointStore,
  type ListOptions,
  type StoreClaims,
} from '@lousho/contract';
import type { MemoryState } from './memory-state.ts';
import { statusOf } from './stored-status.ts';

const claims: StoreClaims = Object.freeze({
  leases: 'atomic',
  history: true,
  list: true,
  durable: 'memory',
  consistency: 'strong',
});

export interface MemoryCheckpointsDeps {
  readonly state: MemoryState;
  readonly clock: Clock;
  /** Called behind each save. */
  readonly afterSave: () => void;
}
/** What concerns the whole store and is reachable from this part too. */
export type WholeStore = Pick<FullCheckpointStore, 'prune' | 'close' | typeof Symbol.asyncDispose>;

export function memoryCheckpoints(
  { state, clock, afterSave }: MemoryCheckpointsDeps,
  wholeStore: WholeStore,
): FullCheckpointStore {
  const enter = (operation: string, id: string): void => {
    state.assertOpen(operation);
    assertCheckpointId(id);
  };
  // Frozen is shared; what is not is copied, so that nobody can change a save from outside.
  const write = (id: string, checkpoint: Checkpoint): void => {
    state.putCheckpoint(id, frozenCopy(checkpoint));
    afterSave();
  };
  return {
    claims,
    async save(id, checkpoint) {
      enter('save', id);
      write(id, checkpoint);
    },
    async load(id) {
      enter('load', id);
      return state.checkpoints.get(id) ?? null;
    },
    async delete(id, { keepHistory = false } = {}) {
      enter('delete', id);
      state.removeCheckpoint(id);
      if (!keepHistory) state.history.delete(id);
    },
    async history(id, { limit } = {}) {
      enter('history', id);
      return state.history.newestFirst(id, limit);
    },
    async list(options = {}) {
      state.assertOpen('list');
      return select(state, options).map(([sessionId, checkpoint]) => {
        return { sessionId, status: statusOf(checkpoint), checkpoint };
      });
    },
    async listHeaders(options = {}) {
      state.assertOpen('listHeaders');
      return select(state, options).map(([sessionId, checkpoint]) => {
        return { sessionId, status: statusOf(checkpoint), header: checkpointHeader(checkpoint) };
      });
    },
    async acquireLease(id, owner, ttlMs) {
      enter('acquireLease', id);
      return state.leases.acquire(id, owner, ttlMs, clock.monotonicMs());
    },
    async renewLease(id, owner, ttlMs, fence) {
      enter('renewLease', id);
      return state.leases.renew(id, owner, ttlMs, fence, clock.monotonicMs());
    },
    async releaseLease(id, owner, fence) {
      enter('releaseLease', id);
      state.leases.release(id, owner, fence);
    },
    async saveIfLeased(id, checkpoint, owner, fence) {
      enter('saveIfLeased', id);
      if (!state.leases.isHeldBy(id, owner, fence)) return false;
      write(id, checkpoint);
      return true;
    },
    ...wholeStore,
  };
}

/** Oldest save first. Asked for unfinished runs only, it never looks at a finished one. */
function select(state: MemoryState, options: ListOptions): [string, Checkpoint][] {
  const ids = matchesStatus('finished', options) ? state.checkpoints.keys() : state.unfinished;
  const selected: [string, Checkpoint][] = [];
  for (const id of ids) {
    const checkpoint = state.checkpoints.get(id);
    if (checkpoint !== undefined && matchesStatus(statusOf(checkpoint), options))
      selected.push([id, checkpoint]);
  }
  return selected.sort(([idA, a], [idB, b]) => compareSaves(a.savedAt, idA, b.savedAt, idB));
}
