/** Transcripts of sessions. Each is a log like a run's, so a commit costs its own new messages, however long the conversation is. */
import {
  assertCheckpointId,
  deepFreeze,
  frozenCopy,
  parseSessionRecord,
  sessionAsCheckpoint,
  sessionOfCheckpoint,
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
    parseSessionRecord(sessionOfCheckpoint(state as Checkpoint, id), id);
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
        // As it is known, when nobody else wrote it: each turn of a long conversation would read it whole.
        const state = this.logs.current(sessionLogId(id), kind);
        return state === undefined ? null : deepFreeze(sessionOfCheckpoint(state, id));
      },
    });
  }

  async saveIfRevision(record: SessionRecord, expectedRevision: number): Promise<boolean> {
    assertCheckpointId(record.id);
    const next = sessionAsCheckpoint({ ...frozenCopy(record), revision: expectedRevision + 1 });
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
