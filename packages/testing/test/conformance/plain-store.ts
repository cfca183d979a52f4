/** The correct store that flaws are planted in: JSON texts in maps, any number of handles, damage, and an end. */
import {
  assertCheckpointId,
  checkpointHeader,
  classifyCheckpointId,
  compareSaves,
  ConfigurationError,
  CONTRACT_VERSION,
  deepFreeze,
  endLease,
  extendLease,
  holdsLease,
  listCheckpoints,
  parseApprovalRecord,
  parseCheckpoint,
  parseSessionRecord,
  SDKError,
  storedError,
  takeLease,
  type ApprovalRecord,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointListEntry,
  type Clock,
  type FullAgentStore,
  type FullCheckpointStore,
  type LeaseRecord,
  type PruneOptions,
  type PruneResult,
  type SessionStore,
  type StoreClaims,
} from '@lousho/contract';

export const HISTORY_LIMIT = 50;
export const plainClaims: StoreClaims = {
  leases: 'atomic',
  history: true,
  list: true,
  durable: 'process',
  consistency: 'strong',
};

/** What all handles share. A damaged record is a text that is no JSON. */
export class Medium {
  readonly latest = new Map<string, string>();
  /** Oldest first. */
  readonly histories = new Map<string, readonly string[]>();
  readonly leases = new Map<string, LeaseRecord>();
  readonly approvals = new Map<string, string>();
  readonly sessions = new Map<string, string>();

  constructor(readonly clock: Clock) {}

  save(id: string, checkpoint: Checkpoint): void {
    this.write(id, JSON.stringify(checkpoint));
  }

  write(id: string, text: string): void {
    this.latest.set(id, text);
    this.histories.set(id, [...(this.histories.get(id) ?? []), text].slice(-HISTORY_LIMIT));
  }

  remove(id: string): void {
    this.latest.delete(id);
    this.endLease(id);
  }

  endLease(id: string): void {
    const lease = this.leases.get(id);
    if (lease !== undefined) this.leases.set(id, endLease(lease));
  }

  isHeld(id: string, owner: string, fence?: number): boolean {
    return holdsLease(this.leases.get(id) ?? null, owner, fence);
  }

  /** Executed by somebody, as far as anybody can tell. */
  isLive(id: string): boolean {
    const lease = this.leases.get(id);
    if (lease === undefined || lease.released === true) return false;
    return this.clock.wallMs() < lease.expiresAtMs + lease.ttlMs;
  }

  /** Throws what `load` throws. */
  read(id: string): Checkpoint | null {
    const text = this.latest.get(id);
    return text === undefined ? null : readCheckpoint(text, id);
  }

  readSession(id: string) {
    const text = this.sessions.get(id);
    return text === undefined ? null : parsed('session', id, text, parseSessionRecord);
  }
}

export interface Handle extends FullAgentStore {
  readonly checkpoints: FullCheckpointStore;
  readonly sessions: Required<SessionStore>;
  /** What each method begins with. @throws LOUSHO_STORE_CLOSED, LOUSHO_SESSION_ID_INVALID */
  readonly enter: Enter;
}

export function plainStore(medium: Medium): Handle {
  let isClosed = false;
  const enter = (operation: string, id?: string): void => {
    if (isClosed) throw new SDKError('LOUSHO_STORE_CLOSED', { operation });
    if (id !== undefined) assertCheckpointId(id);
  };
  const whole = {
    prune: async (options: PruneOptions): Promise<PruneResult> => {
      enter('prune');
      return prune(medium, options);
    },
    close: async (): Promise<void> => void (isClosed = true),
    [Symbol.asyncDispose]: async (): Promise<void> => void (isClosed = true),
  };
  return {
    contractVersion: CONTRACT_VERSION,
    checkpoints: { ...plainCheckpoints(medium, enter), ...whole },
    approvals: plainApprovals(medium, enter),
    sessions: plainSessions(medium, enter),
    enter,
    ...whole,
  };
}

type Enter = (operation: string, id?: string) => void;

function plainCheckpoints(
  medium: Medium,
  enter: Enter,
): Omit<FullCheckpointStore, 'prune' | 'close' | typeof Symbol.asyncDispose> {
  const { clock, leases } = medium;
  const list = (): CheckpointListEntry[] => [...medium.latest.keys()].map((id) => listEntry(medium, id));
  return {
    claims: plainClaims,
    async save(id, checkpoint) {
      enter('save', id);
      medium.save(id, checkpoint);
    },
    async load(id) {
      enter('load', id);
      return medium.read(id);
    },
    async delete(id, { keepHistory = false } = {}) {
      enter('delete', id);
      medium.remove(id);
      if (!keepHistory) medium.histories.delete(id);
    },
    async history(id, { limit = Infinity } = {}) {
      enter('history', id);
      const texts = [...(medium.histories.get(id) ?? [])].reverse().slice(0, Math.max(0, limit));
      return texts.map((text) => historyEntry(readCheckpoint(text, id)));
    },
    async list(options) {
      enter('list');
      return listCheckpoints(list(), options);
    },
    async listHeaders(options) {
      enter('listHeaders');
      return listCheckpoints(list(), options).map(({ checkpoint, ...entry }) => {
        return { ...entry, header: checkpoint && checkpointHeader(checkpoint) };
      });
    },
    async acquireLease(id, owner, ttlMs) {
      enter('acquireLease', id);
      const current = leases.get(id) ?? null;
      const request = { id, owner, ttlMs, nowMs: clock.wallMs(), graceMs: current?.ttlMs ?? 0 };
      const taken = takeLease(current, request);
      if (taken === null) return false;
      leases.set(id, taken);
      return { fence: taken.fence };
    },
    async renewLease(id, owner, ttlMs, fence) {
      enter('renewLease', id);
      const renewed = extendLease(leases.get(id) ?? null, { owner, fence, ttlMs, nowMs: clock.wallMs() });
      if (renewed === null) return false;
      leases.set(id, renewed);
      return true;
    },
    async releaseLease(id, owner, fence) {
      enter('releaseLease', id);
      if (medium.isHeld(id, owner, fence)) medium.endLease(id);
    },
    async heldLeases() {
      enter('heldLeases');
      return [...leases.values()]
        .filter(({ released }) => released !== true)
        .sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    async saveIfLeased(id, checkpoint, owner, fence) {
      enter('saveIfLeased', id);
      if (!medium.isHeld(id, owner, fence)) return false;
      medium.save(id, checkpoint);
      return true;
    },
  };
}

export function historyEntry(checkpoint: Checkpoint) {
  const { stepIndex: step, savedAt, status } = checkpoint;
  return { step, savedAt, status, checkpoint };
}

export function listEntry(medium: Medium, id: string): CheckpointListEntry {
  try {
    const checkpoint = medium.read(id);
    return { sessionId: id, status: checkpoint?.status ?? 'in-progress', checkpoint };
  } catch (error) {
    return { sessionId: id, status: 'in-progress', checkpoint: null, error: storedError(error) };
  }
}

function plainApprovals({ approvals }: Medium, enter: Enter): ApprovalStore {
  const read = (id: string, text: string): ApprovalRecord =>
    parsed('approval', id, text, parseApprovalRecord);
  return {
    async save(record) {
      enter('approvals.save', record.id);
      approvals.set(record.id, JSON.stringify(record));
    },
    async load(id) {
      enter('approvals.load');
      const text = approvals.get(id);
      return text === undefined ? null : read(id, text);
    },
    async list({ sessionId } = {}) {
      enter('approvals.list');
      const records = [...approvals].flatMap(([id, text]) => (isDamaged(text) ? [] : [read(id, text)]));
      return records
        .filter((record) => sessionId === undefined || record.sessionId === sessionId)
        .sort((a, b) => compareSaves(a.createdAt, a.id, b.createdAt, b.id));
    },
    async delete(id) {
      enter('approvals.delete');
      return approvals.delete(id);
    },
  };
}

function plainSessions(medium: Medium, enter: Enter): Required<SessionStore> {
  const { sessions } = medium;
  return {
    async load(id) {
      enter('sessions.load', id);
      return medium.readSession(id);
    },
    async saveIfRevision(record, expectedRevision) {
      enter('sessions.saveIfRevision', record.id);
      if ((medium.readSession(record.id)?.revision ?? 0) !== expectedRevision) return false;
      sessions.set(record.id, JSON.stringify({ ...record, revision: expectedRevision + 1 }));
      return true;
    },
    async delete(id) {
      enter('sessions.delete', id);
      sessions.delete(id);
    },
    async list() {
      enter('sessions.list');
      return [...sessions.keys()];
    },
  };
}

/** Checkpoints decide; what belongs to one that goes goes with it. */
function prune(medium: Medium, options: PruneOptions): PruneResult {
  const { olderThanMs, statuses = ['finished'], dryRun = false } = options;
  if (!(olderThanMs >= 0))
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'olderThanMs',
      got: olderThanMs,
      want: '0 or more',
    });
  const cutoffMs = medium.clock.wallMs() - olderThanMs;
  const isOld = (time: string): boolean => Date.parse(time) <= cutoffMs;
  const childrenOf = (id: string): string[] =>
    [...medium.latest.keys()].filter((other) => other.startsWith(`${id}.sub-`));
  const isNeeded = (id: string): boolean => medium.isLive(id) || undecided(medium, id).length > 0;
  const runs = new Set<string>();
  for (const id of medium.latest.keys()) {
    const { checkpoint } = listEntry(medium, id);
    const family = [id, ...childrenOf(id)];
    if (
      checkpoint === null ||
      classifyCheckpointId(id).kind === 'child' ||
      !statuses.includes(checkpoint.status)
    )
      continue;
    if (isOld(checkpoint.savedAt) && !family.some(isNeeded)) for (const one of family) runs.add(one);
  }
  const histories = [...medium.histories].filter(([id, texts]) => {
    const newest = JSON.parse(texts.at(-1) ?? '{}') as { savedAt?: string };
    return runs.has(id) || (!medium.latest.has(id) && isOld(newest.savedAt ?? ''));
  });
  const approvals = [...medium.approvals].filter(([id, text]) => {
    const { checkpointId, createdAt } = JSON.parse(text) as ApprovalRecord;
    return runs.has(checkpointId) || (isOld(createdAt) && !undecided(medium, checkpointId).includes(id));
  });
  if (!dryRun) {
    for (const id of runs) medium.remove(id);
    for (const [id] of histories) medium.histories.delete(id);
    for (const [id] of approvals) medium.approvals.delete(id);
  }
  const historyEntries = histories.reduce((count, [, texts]) => count + texts.length, 0);
  return { checkpoints: runs.size, historyEntries, approvals: approvals.length, sessions: 0 };
}

function undecided(medium: Medium, id: string): string[] {
  const approvals = listEntry(medium, id).checkpoint?.approvals ?? [];
  return approvals.filter(({ decision }) => decision === undefined).map((approval) => approval.id);
}

function readCheckpoint(text: string, id: string): Checkpoint {
  return parsed('checkpoint', id, text, parseCheckpoint);
}

function parsed<Value>(
  record: 'checkpoint' | 'approval' | 'session',
  id: string,
  text: string,
  parse: (value: unknown, id: string) => Value,
): Value {
  if (isDamaged(text)) throw new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record });
  return deepFreeze(parse(JSON.parse(text), id));
}

const DAMAGE = '#damaged';

function isDamaged(text: string): boolean {
  return text.startsWith(DAMAGE);
}

export function damage(texts: Map<string, string>, id: string): void {
  if (!texts.has(id)) throw new Error(`There is nothing to damage for "${id}".`);
  texts.set(id, `${DAMAGE} ${texts.get(id)}`);
}
