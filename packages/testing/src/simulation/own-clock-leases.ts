/** Leases as a store has them that several machines share and that has no clock: each taker decides by its own. */
import {
  endLease,
  extendLease,
  holdsLease,
  takeLease,
  type AgentStore,
  type CheckpointStore,
  type Clock,
  type LeaseRecord,
} from '@lousho/contract';

/** What all handles share. */
export type SharedLeases = Map<string, LeaseRecord>;

/** `store` as the machine with this clock has it. Each method looks, decides and writes without waiting in between. */
export function withOwnClockLeases(store: AgentStore, leases: SharedLeases, clock: Clock): AgentStore {
  const { checkpoints } = store;
  if (checkpoints === undefined) return store;
  const holds = (id: string, owner: string, fence?: number): boolean =>
    holdsLease(leases.get(id) ?? null, owner, fence);
  const end = (id: string): void => {
    const lease = leases.get(id);
    if (lease !== undefined) leases.set(id, endLease(lease));
  };
  const leased: CheckpointStore = {
    ...(checkpoints.claims && { claims: checkpoints.claims }),
    save: (...save) => checkpoints.save(...save),
    load: (id) => checkpoints.load(id),
    ...(checkpoints.history && { history: (...asked) => need(checkpoints.history?.(...asked)) }),
    ...(checkpoints.list && { list: (options) => need(checkpoints.list?.(options)) }),
    ...(checkpoints.listHeaders && { listHeaders: (options) => need(checkpoints.listHeaders?.(options)) }),
    async acquireLease(id, owner, ttlMs) {
      const nowMs = clock.wallMs();
      const taken = takeLease(leases.get(id) ?? null, { id, owner, ttlMs, nowMs, graceMs: ttlMs });
      if (taken === null) return false;
      leases.set(id, taken);
      return { fence: taken.fence };
    },
    async renewLease(id, owner, ttlMs, fence) {
      const renewed = extendLease(leases.get(id) ?? null, { owner, fence, ttlMs, nowMs: clock.wallMs() });
      if (renewed !== null) leases.set(id, renewed);
      return renewed !== null;
    },
    async releaseLease(id, owner, fence) {
      if (holds(id, owner, fence)) end(id);
    },
    async saveIfLeased(id, checkpoint, owner, fence) {
      if (!holds(id, owner, fence)) return false;
      await checkpoints.save(id, checkpoint);
      return true;
    },
    async delete(id, options) {
      end(id);
      await checkpoints.delete(id, options);
    },
  };
  const { approvals, sessions } = store;
  return { checkpoints: leased, ...(approvals && { approvals }), ...(sessions && { sessions }) };
}

function need<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('Invariant: a method of the store is gone.');
  return value;
}
