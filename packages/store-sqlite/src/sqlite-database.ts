/** One open connection: its transactions, and the look at whether the file under it is still the same. */
import type { Database, Statement } from 'better-sqlite3';
import { SDKError } from '@lousho/contract';
import type { FileWatch } from './database-file.ts';
import { closedError, isBusy, writeError } from './sqlite-errors.ts';

/** `synced`: survives a power cut. `visible`: other connections see it, and the next synced commit makes it durable. */
export type CommitLevel = 'synced' | 'visible';

export class SqliteDatabase {
  readonly connection: Database;
  readonly path: string;
  /** The same for every handle of this process on the same file. */
  readonly fileKey: string;
  readonly #file: FileWatch | undefined;
  readonly #levels: { readonly [Level in CommitLevel]: SynchronousLevel };
  #level: SynchronousLevel;
  #refusesReads = false;
  readonly #beginWrite: Statement;
  readonly #beginRead: Statement;
  readonly #commit: Statement;
  readonly #rollback: Statement;

  constructor(connection: Database, opened: OpenedFile) {
    this.connection = connection;
    this.path = opened.path;
    this.#file = opened.watch;
    this.fileKey = opened.identity ?? `memory ${(memoryCount += 1)}`;
    this.#levels = opened.levels;
    this.#level = opened.levels.synced;
    this.#beginWrite = connection.prepare('BEGIN IMMEDIATE');
    this.#beginRead = connection.prepare('BEGIN');
    this.#commit = connection.prepare('COMMIT');
    this.#rollback = connection.prepare('ROLLBACK');
  }

  /** Takes the write lock of the file. @throws LOUSHO_STORE_REPLACED, and what SQLite says when another connection has it */
  beginWrite(level: CommitLevel): void {
    this.#assertSameFile();
    // Left over from a rollback that failed.
    if (this.connection.inTransaction) this.#rollback.run();
    this.#setLevel(this.#levels[level]);
    this.#beginWrite.run();
  }

  commit(): void {
    this.#commit.run();
  }

  rollback(): void {
    // SQLite has rolled back by itself after some errors.
    if (!this.connection.inTransaction) return;
    try {
      this.#rollback.run();
    } catch {
      // Whoever rolls back has an error to report already, and it says more than this one would.
      return;
    }
  }

  /** Everything that `read` sees is of one moment. */
  inReadTransaction<Result>(read: () => Result): Result {
    this.#beginRead.run();
    try {
      return read();
    } finally {
      if (this.connection.inTransaction) this.#commit.run();
    }
  }

  /** From now on `assertOpen` throws; writes that were accepted before may still be made. */
  refuseReads(): void {
    this.#refusesReads = true;
  }

  /** @throws LOUSHO_STORE_CLOSED */
  assertOpen(operation: string): void {
    if (this.#refusesReads) throw closedError(operation);
  }

  /** Moves what is in the write-ahead log into the file and empties the log. With others in the way it is left for later. */
  truncateLog(): void {
    // Beside a file that took the place of ours there may be a log that is not ours either.
    if (!this.#isSameFile()) return;
    try {
      this.connection.pragma('wal_checkpoint(TRUNCATE)');
    } catch (error) {
      if (!isBusy(error)) throw writeError(error, 'checkpoint');
    }
  }

  close(): void {
    if (!this.connection.open) return;
    try {
      this.truncateLog();
    } finally {
      this.connection.close();
    }
  }

  /**
   * In WAL mode SQLite goes on writing into a file that was deleted, with success, and nobody ever reads it. One look at the path before
   * each transaction, so that a run stops instead.
   */
  #assertSameFile(): void {
    if (!this.#isSameFile()) throw new SDKError('LOUSHO_STORE_REPLACED', { path: this.path });
  }

  #isSameFile(): boolean {
    return this.#file?.isSameFile() ?? true;
  }

  #setLevel(level: SynchronousLevel): void {
    if (level === this.#level) return;
    this.connection.exec(`PRAGMA synchronous = ${level}`);
    this.#level = level;
  }
}

export type SynchronousLevel = 'FULL' | 'NORMAL';

export interface OpenedFile {
  readonly path: string;
  readonly identity: string | undefined;
  readonly watch: FileWatch | undefined;
  readonly levels: { readonly [Level in CommitLevel]: SynchronousLevel };
}

let memoryCount = 0;
