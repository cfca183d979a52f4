/** The statements on `runs` and `events`. A log is one row in `runs` and its events; a run is one, the transcript of a session another. */
import { crc32 } from 'node:zlib';
import type { Database, Statement } from 'better-sqlite3';
import type { CheckpointStatus } from '@lousho/contract';

/** `deleted`: only the history is left. `session`: no run but the transcript of a session. */
export type LogStatus = CheckpointStatus | 'deleted' | 'session';

export interface LogRow {
  readonly key: number;
  readonly id: string;
  readonly status: LogStatus;
  /** The first event that is kept; it is a base. */
  readonly firstSeq: number;
  /** The event with the newest facts. */
  readonly factsSeq: number;
  /** Key of the log that the first base stands on. */
  readonly standsOn: number | null;
  /** `savedAt` when the status last changed, epoch milliseconds. */
  readonly savedAtMs: number;
}

/**
 * What changes in a row when another handle deletes the run, begins it anew, ends it, or drops old events. While it is the same, the
 * numbers behind the last known event are free or taken by somebody who wrote since, and never were taken and dropped.
 */
export interface LogMark {
  readonly status: LogStatus;
  readonly firstSeq: number;
}

/** Key in the table, text, checksum. */
export type EventRow = [k: number, data: string, sum: number];

/** An event's key in the table is its log's key and its number in one integer, so that a log lies together and needs no second index. */
const SEQS_A_LOG = 2 ** 24;
/** With it, keys stay below 2^53, the integers that JavaScript knows exactly. */
const MAX_LOG_KEY = 2 ** 29 - 1;

export class LogTables {
  readonly #rowById: Statement<[string], LogRow>;
  readonly #markOf: Statement<[number], LogMark>;
  readonly #insertRow: Statement<[string, LogStatus, number | null, number]>;
  readonly #updateRow: Statement<[LogStatus, number, number, number | null, number, number]>;
  readonly #deleteRow: Statement<[number]>;
  readonly #rowsOn: Statement<[number], LogRow>;
  readonly #rowsOfIds: Statement<[string, string], LogRow>;
  readonly #insertEvent: Statement<[number, string, number]>;
  readonly #replaceEvent: Statement<[string, number, number]>;
  readonly #events: Statement<[number, number], EventRow>;
  readonly #lastKey: Statement<[number, number], number | null>;
  readonly #deleteEvents: Statement<[number, number]>;

  constructor(connection: Database) {
    this.#rowById = connection.prepare(`SELECT ${ROW} FROM runs WHERE id = ?`);
    this.#markOf = connection.prepare('SELECT status, first_seq AS firstSeq FROM runs WHERE key = ?');
    this.#insertRow = connection.prepare(
      'INSERT INTO runs (id, status, first_seq, facts_seq, stands_on, saved_at) VALUES (?, ?, 0, 0, ?, ?)',
    );
    this.#updateRow = connection.prepare(
      'UPDATE runs SET status = ?, first_seq = ?, facts_seq = ?, stands_on = ?, saved_at = ? WHERE key = ?',
    );
    this.#deleteRow = connection.prepare('DELETE FROM runs WHERE key = ?');
    this.#rowsOn = connection.prepare(`SELECT ${ROW} FROM runs WHERE stands_on = ?`);
    this.#rowsOfIds = connection.prepare(`SELECT ${ROW} FROM runs WHERE id > ? AND id < ? ORDER BY id`);
    this.#insertEvent = connection.prepare(
      'INSERT INTO events (k, data, sum) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    );
    this.#replaceEvent = connection.prepare('UPDATE events SET data = ?, sum = ? WHERE k = ?');
    this.#events = connection
      .prepare<[number, number], EventRow>(
        'SELECT k, data, sum FROM events WHERE k BETWEEN ? AND ? ORDER BY k',
      )
      .raw();
    this.#lastKey = connection
      .prepare<[number, number], number | null>('SELECT max(k) FROM events WHERE k BETWEEN ? AND ?')
      .pluck();
    this.#deleteEvents = connection.prepare('DELETE FROM events WHERE k BETWEEN ? AND ?');
  }

  rowById(id: string): LogRow | undefined {
    return this.#rowById.get(id);
  }

  markOf(key: number): LogMark | undefined {
    return this.#markOf.get(key);
  }

  /** Rows whose id lies between the two, both exclusive. */
  rowsBetween(afterId: string, beforeId: string): LogRow[] {
    return this.#rowsOfIds.all(afterId, beforeId);
  }

  /** Logs whose first base stands on the messages of this one. */
  rowsStandingOn(key: number): LogRow[] {
    return this.#rowsOn.all(key);
  }

  /** The key of the new log. */
  insertRow(id: string, status: LogStatus, standsOn: number | null, savedAtMs: number): number {
    const key = Number(this.#insertRow.run(id, status, standsOn, savedAtMs).lastInsertRowid);
    if (key > MAX_LOG_KEY)
      throw new RangeError(`the database has held ${MAX_LOG_KEY} runs and can take no more`);
    return key;
  }

  updateRow(row: Omit<LogRow, 'id'>): void {
    this.#updateRow.run(row.status, row.firstSeq, row.factsSeq, row.standsOn, row.savedAtMs, row.key);
  }

  deleteRow(key: number): void {
    this.#deleteRow.run(key);
  }

  /** `false` when this number is taken: another writer was first. */
  insertEvent(key: number, seq: number, data: string): boolean {
    if (seq >= SEQS_A_LOG)
      throw new RangeError(`the run has been saved ${SEQS_A_LOG} times and can take no more`);
    const k = eventKey(key, seq);
    return this.#insertEvent.run(k, data, checksum(k, data)).changes === 1;
  }

  replaceEvent(key: number, seq: number, data: string): void {
    const k = eventKey(key, seq);
    this.#replaceEvent.run(data, checksum(k, data), k);
  }

  /** In order. */
  events(key: number, fromSeq: number, toSeq: number = LAST_SEQ): EventRow[] {
    return this.#events.all(eventKey(key, fromSeq), eventKey(key, toSeq));
  }

  lastSeq(key: number): number | undefined {
    const k = this.#lastKey.get(eventKey(key, 0), eventKey(key, LAST_SEQ));
    return k === undefined || k === null ? undefined : k - eventKey(key, 0);
  }

  deleteEvents(key: number, fromSeq: number, toSeq: number = LAST_SEQ): number {
    return this.#deleteEvents.run(eventKey(key, fromSeq), eventKey(key, toSeq)).changes;
  }
}

export const ROW =
  'key, id, status, first_seq AS firstSeq, facts_seq AS factsSeq, stands_on AS standsOn, saved_at AS savedAtMs';

/** The number in SQL of an event of the row `runs`. */
export const EVENT_KEY = `key * ${SEQS_A_LOG}`;
export const LAST_SEQ = SEQS_A_LOG - 1;

export function eventKey(key: number, seq: number): number {
  return key * SEQS_A_LOG + seq;
}

/** Depends on the place too: an event that stands where another one was written does not pass for it. */
export function checksum(k: number, data: string): number {
  // Signed: half of all unsigned ones would take two bytes more.
  return crc32(data, k % 2 ** 32) | 0;
}

export function isIntact([k, data, sum]: EventRow): boolean {
  return checksum(k, data) === sum;
}
