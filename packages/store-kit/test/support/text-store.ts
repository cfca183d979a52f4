/** A store of somebody else: JSON texts in maps, which the test reads and changes as whoever has the database can. */
import {
  SDKError,
  assertCheckpointId,
  compareSaves,
  listCheckpoints,
  parseApprovalRecord,
  parseCheckpoint,
  parseSessionRecord,
  type AgentStore,
  type ApprovalRecord,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type ErrorDetails,
  type SessionRecord,
} from '@lousho/contract';

type RecordKind = ErrorDetails['LOUSHO_CHECKPOINT_CORRUPT']['record'];

export interface TextStore {
  readonly store: AgentStore;
  /** Oldest first: the last is the checkpoint. */
  readonly saves: Map<string, string[]>;
  readonly approvals: Map<string, string>;
  readonly sessions: Map<string, string>;
}

/** @param looks whether it checks what it reads; a careless one only parses the text */
export function textStore({ looks = true }: { readonly looks?: boolean } = {}): TextStore {
  const saves = new Map<string, string[]>();
  /** Ids whose history stayed behind. */
  const deleted = new Set<string>();
  const approvals = new Map<string, string>();
  const sessions = new Map<string, string>();
  const checkpointOf = (id: string, text: string): Checkpoint =>
    read(text, id, 'checkpoint', looks ? parseCheckpoint : asIs<Checkpoint>);
  const approvalOf = (id: string, text: string): ApprovalRecord =>
    read(text, id, 'approval', looks ? parseApprovalRecord : asIs<ApprovalRecord>);
  const sessionOf = (id: string, text: string): SessionRecord =>
    read(text, id, 'session', looks ? parseSessionRecord : asIs<SessionRecord>);
  const store: AgentStore = {
    contractVersion: 1,
    checkpoints: {
      claims: { leases: 'none', history: true, list: true, durable: 'memory', consistency: 'strong' },
      async save(id, checkpoint) {
        assertCheckpointId(id);
        const text = JSON.stringify(checkpoint);
        saves.set(id, [...(saves.get(id) ?? []), text]);
        deleted.delete(id);
      },
      async load(id) {
        assertCheckpointId(id);
        const text = deleted.has(id) ? undefined : saves.get(id)?.at(-1);
        return text === undefined ? undefined : checkpointOf(id, text);
      },
      async delete(id, { keepHistory = false } = {}) {
        assertCheckpointId(id);
        if (keepHistory) deleted.add(id);
        else saves.delete(id);
      },
      async history(id, { limit = Infinity } = {}) {
        assertCheckpointId(id);
        const entries = (saves.get(id) ?? []).map((text): CheckpointHistoryEntry => {
          const checkpoint = checkpointOf(id, text);
          const { stepIndex: step, savedAt, status } = checkpoint;
          return { step, savedAt, status, checkpoint };
        });
        return entries.reverse().slice(0, limit);
      },
      async list(options) {
        const ids = [...saves].filter(([id]) => !deleted.has(id));
        const entries = ids.map(([sessionId, texts]) => {
          const checkpoint = checkpointOf(sessionId, texts.at(-1) ?? '');
          return { sessionId, status: checkpoint.status, checkpoint };
        });
        return listCheckpoints(entries, options);
      },
    },
    approvals: {
      async save(record) {
        assertCheckpointId(record.id);
        approvals.set(record.id, JSON.stringify(record));
      },
      async load(id) {
        const text = approvals.get(id);
        return text === undefined ? undefined : approvalOf(id, text);
      },
      async list({ sessionId } = {}) {
        return [...approvals]
          .map(([id, text]) => approvalOf(id, text))
          .filter((record) => sessionId === undefined || record.sessionId === sessionId)
          .sort((a, b) => compareSaves(a.createdAt, a.id, b.createdAt, b.id));
      },
      async delete(id) {
        return approvals.delete(id);
      },
    },
    sessions: {
      async load(id) {
        const text = sessions.get(id);
        return text === undefined ? undefined : sessionOf(id, text);
      },
      async saveIfRevision(record, expectedRevision) {
        const text = sessions.get(record.id);
        const revision = text === undefined ? 0 : sessionOf(record.id, text).revision;
        if (revision !== expectedRevision) return false;
        sessions.set(record.id, JSON.stringify({ ...record, revision: revision + 1 }));
        return true;
      },
      async delete(id) {
        sessions.delete(id);
      },
      async list() {
        return [...sessions.keys()];
      },
    },
  };
  return { store, saves, approvals, sessions };
}

/** The three methods that are enough. */
export function threeMethodStore(): AgentStore {
  const { checkpoints } = textStore().store;
  if (checkpoints === undefined) throw new Error('Invariant: it has checkpoints.');
  return {
    checkpoints: {
      save: (id, checkpoint) => checkpoints.save(id, checkpoint),
      load: (id) => checkpoints.load(id),
      delete: (id) => checkpoints.delete(id),
    },
  };
}

function read<Value>(
  text: string,
  id: string,
  record: RecordKind,
  parse: (value: unknown, id: string) => Value,
): Value {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record }, { cause: error });
  }
  return parse(value, id);
}

function asIs<Value>(value: unknown): Value {
  return value as Value;
}
