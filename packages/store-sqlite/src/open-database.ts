/** Opening a database: foreign files are refused as they are, settings are set and read back, old tables are brought up to date. */
import path from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { SDKError } from '@lousho/contract';
import { fileSystemType, networkKind } from '@lousho/contract/node';
import {
  FileWatch,
  MEMORY_PATH,
  SMALLEST_DATABASE_BYTES,
  assertOurs,
  fileIdentity,
  noDatabaseError,
  prepareFile,
  sizeOf,
} from './database-file.ts';
import { migrate, ownerOf, MIGRATIONS } from './migrations.ts';
import { SqliteDatabase, type SynchronousLevel } from './sqlite-database.ts';
import { isBusy, isNoDatabase, needsWriter, openError } from './sqlite-errors.ts';
import { holdThread } from './turn-clock.ts';

export interface DatabaseOptions {
  readonly path: string;
  readonly durability: 'power' | 'process';
  readonly journalMode: 'wal' | 'delete' | undefined;
}

/** What opening asks of the platform; tests give their own. */
export interface Platform {
  readonly fileSystemType: (folder: string) => number | undefined;
  readonly warn: (message: string) => void;
  readonly connect: (path: string, options: Sqlite.Options) => Database;
}

export const nodePlatform: Platform = {
  fileSystemType,
  warn: (message) => process.emitWarning(message),
  connect: (file, options) => new Sqlite(file, options),
};

/**
 * How long SQLite itself waits for another connection. It holds the thread meanwhile, so every heartbeat of the process stands still:
 * long enough for a short commit of another process, and no longer. Behind it callers wait without holding anything.
 */
const DRIVER_WAIT_MS = 4;
/** While the constructor runs there is nothing to hold up yet. */
const DRIVER_WAIT_AT_OPEN_MS = 250;
const OPEN_ATTEMPTS = 40;
const PAGE_BYTES = 4_096;
/**
 * How long the write-ahead log may grow before its pages are moved into the file. Short: a sync of what is written over takes less than one of
 * what makes the file longer, by a quarter in runs of 200 turns (`npm run bench`).
 */
const CHECKPOINT_AT_BYTES = 256 * 1024;
/** The log is cut to this size, so that it does not stay as long as it was after a burst; twice as much, so that usually nothing is cut. */
const JOURNAL_SIZE_LIMIT = 2 * CHECKPOINT_AT_BYTES;

/** Opens, configures and migrates. @throws LOUSHO_CONFIG_INVALID, LOUSHO_STORE_* */
export function openDatabase(options: DatabaseOptions, platform: Platform = nodePlatform): SqliteDatabase {
  let connection: Database | undefined;
  try {
    const file = prepareFile(options.path);
    const journalMode = options.journalMode ?? defaultJournalMode(file, platform);
    if (file !== MEMORY_PATH) refuseForeignFile(file, platform);
    const before = file === MEMORY_PATH ? undefined : fileIdentity(file);
    connection = platform.connect(file, { timeout: DRIVER_WAIT_AT_OPEN_MS });
    // Between the two looks, so that it watches the file that both saw.
    const watch = file === MEMORY_PATH ? undefined : new FileWatch(file);
    const identity = file === MEMORY_PATH ? undefined : fileIdentity(file);
    const isOther = before !== undefined && identity !== before;
    if (isOther || (identity === undefined && file !== MEMORY_PATH))
      throw new SDKError('LOUSHO_STORE_REPLACED', { path: file });
    const synced = options.durability === 'power' ? 'FULL' : 'NORMAL';
    // A rollback journal that is not synced can damage the file, not only lose the last commits: there every commit is a synced one.
    const visible = journalMode === 'wal' ? 'NORMAL' : synced;
    configure(connection, file, journalMode, synced);
    return new SqliteDatabase(connection, { path: file, identity, watch, levels: { synced, visible } });
  } catch (error) {
    connection?.close();
    throw openError(error, options.path);
  }
}

function defaultJournalMode(file: string, platform: Platform): 'wal' | 'delete' {
  if (file === MEMORY_PATH) return 'wal';
  const kind = networkKind(platform.fileSystemType(path.dirname(file)));
  if (kind === undefined) return 'wal';
  platform.warn(
    `The Lousho store "${file}" lies on ${kind}. Write-ahead logging does not work there, so it uses a rollback journal, ` +
      'which is slower. Use a local disk, or give journalMode to choose yourself.',
  );
  return 'delete';
}

/** Foreign files are refused before SQLite opens them to write, so that they stay as they are to the byte. */
function refuseForeignFile(file: string, platform: Platform): void {
  const bytes = sizeOf(file);
  if (bytes === 0) return;
  if (bytes < SMALLEST_DATABASE_BYTES) throw noDatabaseError(file);
  const reader = platform.connect(file, { readonly: true, timeout: DRIVER_WAIT_AT_OPEN_MS });
  try {
    assertOurs(
      retryWhileBusy(() => ownerOf(reader)),
      file,
      MIGRATIONS.length,
    );
  } catch (error) {
    // A writer died in the middle of a commit: only a connection that may write can undo it. `migrate` asks again.
    if (needsWriter(error)) return;
    throw isNoDatabase(error) ? noDatabaseError(file, error) : error;
  } finally {
    reader.close();
  }
}

function configure(
  connection: Database,
  file: string,
  journalMode: 'wal' | 'delete',
  synced: SynchronousLevel,
): void {
  // Only a new file takes it; it must come first.
  connection.pragma(`page_size = ${PAGE_BYTES}`);
  // Changing to WAL is refused at once while another process does the same, whatever the time-out says.
  retryWhileBusy(() => connection.pragma(`journal_mode = ${journalMode}`));
  // better-sqlite3 is compiled with a lower level for WAL databases: it is set on every open, and read back.
  connection.pragma(`synchronous = ${synced}`);
  connection.pragma(`wal_autocheckpoint = ${CHECKPOINT_AT_BYTES / PAGE_BYTES}`);
  connection.pragma(`journal_size_limit = ${JOURNAL_SIZE_LIMIT}`);
  retryWhileBusy(() => migrate(connection, file));
  assertSetting(connection, 'synchronous', synced === 'FULL' ? 2 : 1);
  assertSetting(connection, 'journal_mode', file === MEMORY_PATH ? 'memory' : journalMode);
  connection.pragma(`busy_timeout = ${DRIVER_WAIT_MS}`);
}

function assertSetting(connection: Database, setting: string, want: number | string): void {
  const got = connection.pragma(setting, { simple: true });
  if (got !== want) throw new Error(`SQLite keeps ${setting} at ${String(got)} where ${want} was set`);
}

function retryWhileBusy<Result>(attempt: () => Result): Result {
  for (let left = OPEN_ATTEMPTS; ; left -= 1) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || left === 0) throw error;
      holdThread(25);
    }
  }
}
