/** The plainest store that keeps every promise: what crash sweeps run on, and what other stores are compared with. */
import {
  assertCheckpointId,
  checkpointHeader,
  compareSaves,
  deepFreeze,
  listCheckpoints,
  platformClock,
  type AgentStore,
  type ApprovalRecord,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
  type Clock,
  type FullCheckpointStore,
  type SessionRecord,
  type SessionStore,
} from '@lousho/contract';

export interface ReferenceStoreOptions {
  /** Default: the platform's. Leases are measured by its wall time. */
  readonly clock?: Clock | undefined;
  /** Default 50. */
  readonly historyLimit?: number | undefined;
}
export type ReferenceCheckpointStore = Omit<
  FullCheckpointStore,
  'prune' | 'close' | typeof Symbol.asyncDispose
>;
export interface ReferenceStore extends AgentStore {
  readonly checkpoints: ReferenceCheckpointStore;
  readonly approvals: ApprovalStore;
  readonly sessions: Required<SessionStore>;
}

/** Keeps JSON texts in maps and copies on every way in and out. Slow on purpose: nothing in it is clever enough to be wrong. */
export function referenceStore(options: ReferenceStoreOptions = {}): ReferenceStore {
  return {
    contractVersion: 1,
    checkpoints: referenceCheckpoints(options),
    approvals: referenceApprovals(),
    sessions: referenceSessions(),
  };
}

function referenceCheckpoints({
  clock = platformClock,
  historyLimit = 50,
}: ReferenceStoreOptions): ReferenceCheckpointStore {
  const latest = new Map<string, string>();
  /** Oldest first. */
  const histories = new Map<string, readonly string[]>();
  const leases = referenceLeases(clock);
  const write = (id: string, checkpoint: Checkpoint): void => {
    const text = JSON.stringify(checkpoint);
    latest.set(id, text);
    const saves = [...(histories.get(id) ?? []), text];
    histories.set(id, saves.slice(Math.max(0, saves.length - historyLimit)));
  };
  const all = (): CheckpointListEntry[] =>
    [...latest].map(([sessionId, text]) => {
      const checkpoint = parse<Checkpoint>(text);
      return { sessionId, status: checkpoint.status, checkpoint };
    });
  return {
    claims: { leases: 'atomic', history: true, list: true, durable: 'memory', consistency: 'strong' },
    async save(id, checkpoint) {
      assertCheckpointId(id);
      write(id, checkpoint);
    },
    async load(id) {
      assertCheckpointId(id);
      const text = latest.get(id);
      return text === undefined ? null : parse<Checkpoint>(text);
    },
    async delete(id, { keepHistory = false } = {}) {
      assertCheckpointId(id);
      latest.delete(id);
      if (!keepHistory) histories.delete(id);
      leases.end(id);
    },
    async history(id, { limit = Infinity } = {}) {
      assertCheckpointId(id);
      return [...(histories.get(id) ?? [])].reverse().slice(0, limit).map(historyEntry);
    },
    list: async (options) => listCheckpoints(all(), options),
    async listHeaders(options) {
      const entries = listCheckpoints(all(), options);
      return entries.map(({ sessionId, status, checkpoint }) => {
        return { sessionId, status, header: checkpoint === null ? null : checkpointHeader(checkpoint) };
      });
    },
    acquireLease: async (id, owner, ttlMs) => leases.acquire(id, owner, ttlMs),
    renewLease: async (id, owner, ttlMs, fence) => leases.renew(id, owner, ttlMs, fence),
    async releaseLease(id, owner, fence) {
      assertCheckpointId(id);
      if (leases.isHeldBy(id, owner, fence)) leases.end(id);
    },
    async saveIfLeased(id, checkpoint, owner, fence) {
      assertCheckpointId(id);
      if (!leases.isHeldBy(id, owner, fence)) return false;
      write(id, checkpoint);
      return true;
    },
  };
}

/** Written without the contract's own lease functions: the other stores use those, and are compared with this. */
function referenceLeases(clock: Clock) {
  const held = new Map<
    string,
    { readonly owner: string; readonly fence: number; readonly expiresAtMs: number }
  >();
  const lastFences = new Map<string, number>();
  const isHeldBy = (id: string, owner: string, fence?: number): boolean => {
    const lease = held.get(id);
    return lease?.owner === owner && (fence === undefined || lease.fence === fence);
  };
  const hold = (id: string, owner: string, fence: number, ttlMs: number): void => {
    const earliestMs = isHeldBy(id, owner) ? (held.get(id)?.expiresAtMs ?? 0) : 0;
    held.set(id, { owner, fence, expiresAtMs: Math.max(earliestMs, clock.wallMs() + ttlMs) });
  };
  return {
    isHeldBy,
    acquire(id: string, owner: string, ttlMs: number): { readonly fence: number } | false {
      assertCheckpointId(id);
      const lease = held.get(id);
      const isOwn = lease?.owner === owner;
      if (lease !== undefined && !isOwn && clock.wallMs() < lease.expiresAtMs) return false;
      const fence = isOwn ? lease.fence : (lastFences.get(id) ?? 0) + 1;
      hold(id, owner, fence, ttlMs);
      lastFences.set(id, fence);
      return { fence };
    },
    renew(id: string, owner: string, ttlMs: number, fence?: number): boolean {
      assertCheckpointId(id);
      const lease = held.get(id);
      if (lease === undefined || !isHeldBy(id, owner, fence)) return false;
      hold(id, owner, lease.fence, ttlMs);
      return true;
    },
    end(id: string): void {
      held.delete(id);
    },
  };
}

function referenceApprovals(): ApprovalStore {
  const records = new Map<string, string>();
  return {
    async save(record) {
      assertCheckpointId(record.id);
      records.set(record.id, JSON.stringify(record));
    },
    async load(id) {
      const text = records.get(id);
      return text === undefined ? null : parse<ApprovalRecord>(text);
    },
    async list({ sessionId } = {}) {
      const all = [...records.values()].map((text) => parse<ApprovalRecord>(text));
      return all
        .filter((record) => sessionId === undefined || record.sessionId === sessionId)
        .sort((a, b) => compareSaves(a.createdAt, a.id, b.createdAt, b.id));
    },
    delete: async (id) => records.delete(id),
  };
}

function referenceSessions(): Required<SessionStore> {
  const records = new Map<string, SessionRecord>();
  return {
    load: async (id) => records.get(id) ?? null,
    async saveIfRevision(record, expectedRevision) {
      assertCheckpointId(record.id);
      if ((records.get(record.id)?.revision ?? 0) !== expectedRevision) return false;
      const stored = { ...record, revision: expectedRevision + 1 };
      records.set(record.id, parse<SessionRecord>(JSON.stringify(stored)));
      return true;
    },
    async delete(id) {
      records.delete(id);
    },
    list: async () => [...records.keys()].sort(),
  };
}

function historyEntry(text: string): CheckpointHistoryEntry {
  const checkpoint = parse<Checkpoint>(text);
  const { stepIndex: step, savedAt, status } = checkpoint;
  return { step, savedAt, status, checkpoint };
}

function parse<Value>(text: string): Value {
  return deepFreeze(JSON.parse(text) as Value);
}
