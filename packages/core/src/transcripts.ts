/** Where the transcripts of sessions are kept: in the store's part for them, else among its checkpoints, else in memory. */
import {
  deepFreeze,
  emptyUsage,
  parseSessionRecord,
  sessionAsCheckpoint,
  sessionOfCheckpoint,
  transcriptCheckpointId,
  type AgentStore,
  type CheckpointStore,
  type Clock,
  type SessionRecord,
  type SessionStore,
} from '@lousho/contract';
import { loadCheckpoint, refuseSealed } from '@lousho/executor/wiring';

export function transcriptsOf(store: AgentStore | undefined): SessionStore {
  if (store?.sessions !== undefined) return store.sessions;
  return store?.checkpoints === undefined ? transcriptsInMemory() : transcriptsIn(store.checkpoints);
}

/** A session that has no record yet. */
export function newTranscript(id: string): SessionRecord {
  return deepFreeze({
    id,
    revision: 0,
    turn: 0,
    messages: [],
    inputIds: [],
    usage: emptyUsage,
    savedAt: new Date(0).toISOString(),
  });
}

/** Nothing of what was said, and a turn that is none of those before. */
export function clearedTranscript({ id, revision, turn }: SessionRecord, clock: Clock): SessionRecord {
  const savedAt = new Date(clock.wallMs()).toISOString();
  return deepFreeze({ ...newTranscript(id), revision: revision + 1, turn: turn + 1, savedAt });
}

/** It has turns behind it, and nothing of them is left. */
export function isCleared({ turn, messages }: SessionRecord): boolean {
  return turn > 0 && messages.length === 0;
}

/** What is read is checked: a store of somebody else may give anything. @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_KEY_UNKNOWN */
export async function loadTranscript(transcripts: SessionStore, id: string): Promise<SessionRecord> {
  const stored = await transcripts.load(id);
  refuseSealed(stored, { id, record: 'session' });
  return stored === null || stored === undefined
    ? newTranscript(id)
    : deepFreeze(parseSessionRecord(stored, id));
}

/**
 * A checkpoint store cannot compare and swap. The lease of the turn keeps other processes away, so comparing before the save is enough
 * where leases are atomic; where they are not, nothing else would help.
 */
function transcriptsIn(checkpoints: CheckpointStore): SessionStore {
  const load = async (id: string): Promise<SessionRecord | null> => {
    const state = await loadCheckpoint(checkpoints, transcriptCheckpointId(id));
    return state === null ? null : sessionOfCheckpoint(state, id);
  };
  return {
    load,
    async saveIfRevision(record, expectedRevision) {
      if (((await load(record.id))?.revision ?? 0) !== expectedRevision) return false;
      const next = sessionAsCheckpoint({ ...record, revision: expectedRevision + 1 });
      await checkpoints.save(transcriptCheckpointId(record.id), next);
      return true;
    },
    delete: (id) => checkpoints.delete(transcriptCheckpointId(id)),
  };
}

/** Of an agent without a store: they die with it. */
function transcriptsInMemory(): SessionStore {
  const records = new Map<string, SessionRecord>();
  return {
    async load(id) {
      return records.get(id) ?? null;
    },
    async saveIfRevision(record, expectedRevision) {
      if ((records.get(record.id)?.revision ?? 0) !== expectedRevision) return false;
      records.set(record.id, deepFreeze({ ...record, revision: expectedRevision + 1 }));
      return true;
    },
    async delete(id) {
      records.delete(id);
    },
  };
}
