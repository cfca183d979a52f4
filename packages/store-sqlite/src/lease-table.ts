/** The statements on `leases`. */
import type { Database, Statement } from 'better-sqlite3';
import type { LeaseRecord, ProcessFacts } from '@lousho/contract';
import type { LogMark, LogStatus } from './log-tables.ts';

type LeaseRow = [string, number, number, number, number, number, string | null];
type SaveRow = [string, number, number, LogStatus | null, number | null];

/** As `LeaseRow` has them. */
const COLUMNS = 'owner, fence, expires_at, ttl_ms, renew_count, released, holder';

export interface LeaseForSave {
  /** As much of the record as says who holds it. */
  readonly lease: LeaseRecord;
  readonly logMark: LogMark | undefined;
}

export class LeaseTable {
  readonly #select: Statement<[string], LeaseRow>;
  readonly #selectForSave: Statement<[number, string], SaveRow>;
  readonly #upsert: Statement<[string, string, number, number, number, number, number, string | null]>;
  readonly #delete: Statement<[string]>;
  readonly #idsBetween: Statement<[string, string], string>;
  readonly #held: Statement<[], [string, ...LeaseRow]>;

  constructor(connection: Database) {
    this.#select = connection.prepare<[string], LeaseRow>(`SELECT ${COLUMNS} FROM leases WHERE id = ?`).raw();
    this.#selectForSave = connection
      .prepare<[number, string], SaveRow>(
        `SELECT owner, fence, released, status, first_seq FROM leases
         LEFT JOIN runs ON runs.key = ? WHERE leases.id = ?`,
      )
      .raw();
    this.#upsert = connection.prepare(
      `INSERT INTO leases (id, owner, fence, expires_at, ttl_ms, renew_count, released, holder)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, fence = excluded.fence, expires_at = excluded.expires_at,
         ttl_ms = excluded.ttl_ms, renew_count = excluded.renew_count, released = excluded.released,
         holder = excluded.holder`,
    );
    this.#delete = connection.prepare('DELETE FROM leases WHERE id = ?');
    this.#idsBetween = connection
      .prepare<[string, string], string>('SELECT id FROM leases WHERE id > ? AND id < ?')
      .pluck();
    this.#held = connection
      .prepare<[], [string, ...LeaseRow]>(`SELECT id, ${COLUMNS} FROM leases WHERE released = 0 ORDER BY id`)
      .raw();
  }

  read(id: string): LeaseRecord | null {
    const row = this.#select.get(id);
    return row === undefined ? null : leaseOf(id, row);
  }

  /** With the mark of the log with this key, for the save that appends to it: both in one look, which every save takes. */
  readForSave(id: string, logKey: number): LeaseForSave | undefined {
    const row = this.#selectForSave.get(logKey, id);
    if (row === undefined) return undefined;
    const [owner, fence, released, status, firstSeq] = row;
    const held = { id, owner, fence, renewCount: 0, expiresAtMs: 0, ttlMs: 0 };
    return {
      lease: released === 1 ? { ...held, released: true } : held,
      logMark: status === null || firstSeq === null ? undefined : { status, firstSeq },
    };
  }

  write(lease: LeaseRecord): void {
    const { id, owner, fence, expiresAtMs, ttlMs, renewCount, released, holder } = lease;
    const facts = holder === undefined ? null : JSON.stringify(holder);
    this.#upsert.run(id, owner, fence, expiresAtMs, ttlMs, renewCount, released === true ? 1 : 0, facts);
  }

  remove(id: string): void {
    this.#delete.run(id);
  }

  /** Every one that has not ended, in the order of their ids. */
  held(): LeaseRecord[] {
    return this.#held.all().map(([id, ...row]) => leaseOf(id, row));
  }

  /** Ids between the two, both exclusive. */
  idsBetween(afterId: string, beforeId: string): string[] {
    return this.#idsBetween.all(afterId, beforeId);
  }
}

function leaseOf(
  id: string,
  [owner, fence, expiresAtMs, ttlMs, renewCount, released, holder]: LeaseRow,
): LeaseRecord {
  return {
    ...{ id, owner, fence, expiresAtMs, ttlMs, renewCount },
    ...(released === 1 ? { released: true as const } : undefined),
    ...(holder === null ? undefined : { holder: JSON.parse(holder) as ProcessFacts }),
  };
}
