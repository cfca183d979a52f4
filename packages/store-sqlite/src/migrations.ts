/** The tables, and how a file of an older release gets those of this one. */
import type { Database } from 'better-sqlite3';
import { APPLICATION_ID, assertOurs, type FileOwner } from './database-file.ts';

/**
 * Step n makes version n + 1 out of version n. A step that was released is never changed.
 *
 * `AUTOINCREMENT`: the key of a deleted run is never given to another one, so a handle that still knows the old run notices.
 * `WITHOUT ROWID`: one look finds a lease by its id, which every save does.
 * The index holds unfinished runs alone: what `pending()` asks for stays small however many runs have finished.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE runs (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    facts_seq INTEGER NOT NULL,
    stands_on INTEGER,
    saved_at INTEGER NOT NULL
  );
  CREATE INDEX unfinished_runs ON runs (status) WHERE status IN ('in-progress', 'awaiting-approval');
  CREATE INDEX runs_on_others ON runs (stands_on) WHERE stands_on IS NOT NULL;
  CREATE TABLE events (k INTEGER PRIMARY KEY, data TEXT NOT NULL, sum INTEGER NOT NULL);
  CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    fence INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    renew_count INTEGER NOT NULL,
    released INTEGER NOT NULL,
    holder TEXT
  ) WITHOUT ROWID;
  CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    checkpoint_id TEXT NOT NULL,
    session_id TEXT,
    created_at TEXT NOT NULL,
    record TEXT NOT NULL,
    sum INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX approvals_of_runs ON approvals (checkpoint_id);
  `,
];

/** @throws LOUSHO_CONFIG_INVALID, LOUSHO_STORE_VERSION_UNSUPPORTED, and what SQLite says */
export function migrate(connection: Database, path: string, steps: readonly string[] = MIGRATIONS): void {
  const supported = steps.length;
  const owner = ownerOf(connection);
  assertOurs(owner, path, supported);
  if (owner.applicationId === APPLICATION_ID && owner.userVersion === supported) return;
  // Ten processes may open a new file at once: one of them makes the tables, and the others find them when their turn comes.
  connection.exec('BEGIN EXCLUSIVE');
  try {
    const locked = ownerOf(connection);
    assertOurs(locked, path, supported);
    for (const step of steps.slice(locked.userVersion)) connection.exec(step);
    connection.pragma(`application_id = ${APPLICATION_ID}`);
    connection.pragma(`user_version = ${supported}`);
    connection.exec('COMMIT');
  } catch (error) {
    // SQLite has rolled back by itself after some errors.
    if (connection.inTransaction) connection.exec('ROLLBACK');
    throw error;
  }
}

/** All of one moment: while another process makes the tables, the file would look like one of another program. */
export function ownerOf(connection: Database): FileOwner {
  const read = connection.transaction(() => ({
    applicationId: connection.pragma('application_id', { simple: true }) as number,
    userVersion: connection.pragma('user_version', { simple: true }) as number,
    isEmpty: connection.prepare('SELECT count(*) FROM sqlite_master').pluck().get() === 0,
  }));
  return read();
}
