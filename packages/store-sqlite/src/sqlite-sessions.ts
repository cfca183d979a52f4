/** Transcripts of sessions. Each is a log like a run's, so a commit costs its own new messages, however long the conversation is. */
import {
  CHECKPOINT_VERSION,
  assertCheckpointId,
  deepFreeze,
  frozenCopy,
  parseSessionRecord,
  type Checkpoint,
  type SessionRecord,
  type SessionStore,
} from '@lousho/contract';
import type { CommitQueue } from './commit-queue.ts';
import type { DatabaseReader } from './database-reader.ts';
import type { EventLogs } from './event-logs.ts';
import { SESSION_LOG_IDS, nameOf, sessionLogId, type LogKind } from './log-reader.ts';

const kind: LogKind = {
  record: 'session',
  // Compare-and-swap needs the newest state alone.
  keptEntries: 1,
  keptBytes: 0,
  parse(state, id) {
    parseSessionRecord(recordOf(state as Checkpoint, id), id);
    return state as Checkpoint;
  },
};

export class SqliteSessions implements SessionStore {
  constructor(
    readonly queue: CommitQueue,
    readonly reader: DatabaseReader,
    readonly logs: EventLogs,
  ) {}

  async load(id: string): Promise<SessionRecord | null> {
    assertCheckpointId(id);
    return this.reader.read({
      operation: 'sessions.load',
      target: { record: 'session', id },
      read: () => {
        const row = this.logs.tables.rowById(sessionLogId(id));
        return row === undefined ? null : deepFreeze(recordOf(this.logs.load(row, kind), id));
      },
    });
  }

  async saveIfRevision(record: SessionRecord, expectedRevision: number): Promise<boolean> {
    assertCheckpointId(record.id);
    const next = stateOf({ ...frozenCopy(record), revision: expectedRevision + 1 });
    const logId = sessionLogId(record.id);
    return this.queue.add({
      operation: 'sessions.saveIfRevision',
      id: record.id,
      level: 'synced',
      apply: () => {
        const current = this.logs.current(logId, kind);
        if ((current?.stepIndex ?? 0) !== expectedRevision) return false;
        this.logs.append(logId, next, 'session', kind);
        return true;
      },
    });
  }

  async delete(id: string): Promise<void> {
    assertCheckpointId(id);
    await this.queue.add({
      operation: 'sessions.delete',
      id,
      level: 'synced',
      apply: () => {
        const row = this.logs.tables.rowById(sessionLogId(id));
        if (row !== undefined) this.logs.remove(row, { keepHistory: false });
      },
    });
  }

  async list(): Promise<readonly string[]> {
    const { after, before } = SESSION_LOG_IDS;
    const rows = await this.reader.read({
      operation: 'sessions.list',
      read: () => this.logs.tables.rowsBetween(after, before),
    });
    return rows.map(nameOf);
  }
}

/** Where the fields of a session that a run does not have are kept in its log. */
interface SessionState {
  readonly session: Omit<
    SessionRecord,
    'id' | 'revision' | 'messages' | 'inputIds' | 'businessState' | 'usage' | 'savedAt'
  >;
}

/** The record as the codec of logs takes it. The revision stands where a run has its step. */
function stateOf(record: SessionRecord): Checkpoint {
  const { id: _id, revision, messages, inputIds, businessState, usage, savedAt, ...session } = record;
  const state: Checkpoint & SessionState = {
    version: CHECKPOINT_VERSION,
    status: 'in-progress',
    runId: '',
    agentName: '',
    stepIndex: revision,
    ...{ messages, inputIds, usage, savedAt, session },
    ...(businessState === undefined ? undefined : { businessState }),
    runInput: noInput,
    heldInput: nothing,
    settledResults: nothing,
    startedToolCallIds: nothing,
    approvals: nothing,
    delegatedInFlight: nothing,
  };
  return deepFreeze(state);
}

function recordOf(state: Checkpoint, id: string): SessionRecord {
  const { stepIndex, messages, inputIds, businessState, usage, savedAt } = state;
  return {
    ...(state as unknown as SessionState).session,
    ...{ id, revision: stepIndex, messages, inputIds, usage, savedAt },
    ...(businessState === undefined ? undefined : { businessState }),
  };
}

const nothing: readonly never[] = Object.freeze([]);
const noInput = Object.freeze({ start: 0, count: 0 });
