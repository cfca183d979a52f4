/** The inbox of pauses: one row each, checked like every other record. */
import { crc32 } from 'node:zlib';
import type { Database, Statement } from 'better-sqlite3';
import { deepFreeze, parseApprovalRecord, type ApprovalRecord, type ApprovalStore } from '@lousho/contract';
import type { CommitQueue } from './commit-queue.ts';
import type { DatabaseReader } from './database-reader.ts';
import { damageError } from './sqlite-errors.ts';

export interface ApprovalRow {
  readonly id: string;
  readonly record: string;
  readonly sum: number;
}

export class SqliteApprovals implements ApprovalStore {
  readonly #queue: CommitQueue;
  readonly #reader: DatabaseReader;
  readonly #save: Statement<[string, string, string | null, string, string, number]>;
  readonly #load: Statement<[string], ApprovalRow>;
  readonly #list: Statement<[], ApprovalRow>;
  readonly #listOfSession: Statement<[string], ApprovalRow>;
  readonly #delete: Statement<[string]>;

  constructor(connection: Database, queue: CommitQueue, reader: DatabaseReader) {
    this.#queue = queue;
    this.#reader = reader;
    this.#save = connection.prepare(
      'INSERT OR REPLACE INTO approvals (id, checkpoint_id, session_id, created_at, record, sum) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#load = connection.prepare('SELECT id, record, sum FROM approvals WHERE id = ?');
    this.#list = connection.prepare('SELECT id, record, sum FROM approvals ORDER BY created_at, id');
    this.#listOfSession = connection.prepare(
      'SELECT id, record, sum FROM approvals WHERE session_id = ? ORDER BY created_at, id',
    );
    this.#delete = connection.prepare('DELETE FROM approvals WHERE id = ?');
  }

  async save(record: ApprovalRecord): Promise<void> {
    const { id, checkpointId, sessionId = null, createdAt } = record;
    const text = JSON.stringify(record);
    await this.#queue.add({
      operation: 'approvals.save',
      id,
      level: 'synced',
      apply: () => this.#save.run(id, checkpointId, sessionId, createdAt, text, checksum(text)),
    });
  }

  async load(id: string): Promise<ApprovalRecord | null> {
    return this.#reader.read({
      operation: 'approvals.load',
      target: { record: 'approval', id },
      read: () => {
        const row = this.#load.get(id);
        return row === undefined ? null : readRow(row);
      },
    });
  }

  /** A damaged record is left out: the run that waits shows its pause, and `load` names the damage. */
  async list({ sessionId }: { readonly sessionId?: string | undefined } = {}): Promise<
    readonly ApprovalRecord[]
  > {
    const rows = await this.#reader.read({
      operation: 'approvals.list',
      read: () => (sessionId === undefined ? this.#list.all() : this.#listOfSession.all(sessionId)),
    });
    return rows.map(readIntactRow).filter((record) => record !== undefined);
  }

  async delete(id: string): Promise<boolean> {
    return this.#queue.add({
      operation: 'approvals.delete',
      id,
      level: 'synced',
      apply: () => this.#delete.run(id).changes === 1,
    });
  }
}

function readRow({ id, record, sum }: ApprovalRow): ApprovalRecord {
  try {
    if (checksum(record) !== sum) throw new Error('the record does not match its checksum');
    return deepFreeze(parseApprovalRecord(JSON.parse(record), id));
  } catch (error) {
    throw damageError(error, 'approval', id);
  }
}

function readIntactRow(row: ApprovalRow): ApprovalRecord | undefined {
  try {
    return readRow(row);
  } catch {
    return undefined;
  }
}

function checksum(text: string): number {
  return crc32(text) | 0;
}
