/** Reading a log whole: every event is there, is what was written, and folds to a state. */
import {
  freezeStored,
  foldEvents,
  historyOf,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type LogEvent,
  type Message,
} from '@lousho/contract';
import { eventKey, isIntact, type LogRow, type LogTables } from './log-tables.ts';
import { parseEvents } from './packed-event.ts';
import { damageError, isDamage, isSqliteError, type DamagedRecord } from './sqlite-errors.ts';

/** How one kind of log is read and how much of its past is kept. */
export interface LogKind {
  readonly record: DamagedRecord;
  /** Entries of history, at least 1: the newest is the state itself. */
  readonly keptEntries: number;
  readonly keptBytes: number;
  /** Refuses a state of the wrong shape. */
  parse(state: unknown, id: string): Checkpoint;
}

export interface StoredLog {
  readonly row: LogRow;
  readonly events: readonly LogEvent[];
  /** Length of each event's text. */
  readonly sizes: readonly number[];
  readonly lastSeq: number;
}

export class LogReader {
  constructor(readonly tables: LogTables) {}

  /** @throws LOUSHO_CHECKPOINT_CORRUPT when an event is missing or not what was written */
  readLog(row: LogRow, record: DamagedRecord): StoredLog {
    return this.#orDamage(row, record, () => this.#readIntact(row));
  }

  /** The state after the last event, frozen. @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_VERSION_UNSUPPORTED */
  stateOf(log: StoredLog, kind: LogKind): Checkpoint {
    return this.#orDamage(log.row, kind.record, () => {
      return freezeStored(kind.parse(foldEvents(log.events, this.messagesOf), nameOf(log.row)));
    });
  }

  /** The newest states, newest first. @throws as `stateOf` */
  entriesOf(log: StoredLog, count: number, kind: LogKind): CheckpointHistoryEntry[] {
    const parse = (state: unknown): Checkpoint => freezeStored(kind.parse(state, nameOf(log.row)));
    return this.#orDamage(log.row, 'history', () => historyOf(log.events, count, parse, this.messagesOf));
  }

  /** What a base that stands on another log begins with. */
  readonly messagesOf = (of: string): readonly Message[] | undefined => {
    const row = this.tables.rowById(of);
    if (row === undefined) return undefined;
    const state = foldEvents(this.#readIntact(row).events, this.messagesOf);
    return (state as { readonly messages: readonly Message[] }).messages;
  };

  /** The same, or `undefined` when that log is damaged. */
  intactMessagesOf(of: string): readonly Message[] | undefined {
    try {
      return this.messagesOf(of);
    } catch (error) {
      if (isSqliteError(error) && !isDamage(error)) throw error;
      return undefined;
    }
  }

  #readIntact(row: LogRow): StoredLog {
    const rows = this.tables.events(row.key, row.firstSeq);
    if (rows.length === 0) throw new Error('every event is missing');
    const texts: string[] = [];
    const sizes: number[] = [];
    let expected = eventKey(row.key, row.firstSeq);
    for (const event of rows) {
      if (event[0] !== expected) throw new Error(`event ${row.firstSeq + texts.length} is missing`);
      if (!isIntact(event))
        throw new Error(`event ${row.firstSeq + texts.length} does not match its checksum`);
      texts.push(event[1]);
      sizes.push(event[1].length);
      expected += 1;
    }
    return { row, events: parseEvents(texts), sizes, lastSeq: row.firstSeq + rows.length - 1 };
  }

  #orDamage<Result>(row: LogRow, record: DamagedRecord, read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      // A disk that does not answer, or a lock, says nothing about the record.
      if (isSqliteError(error) && !isDamage(error)) throw error;
      throw damageError(error, record, nameOf(row));
    }
  }
}

/** How many of the newest events are history: by count and by bytes, the newest in any case. */
export function keptCount(sizes: readonly number[], kind: LogKind): number {
  let count = 0;
  let bytes = 0;
  while (count < sizes.length && count < kind.keptEntries) {
    bytes += sizes[sizes.length - 1 - count] ?? 0;
    if (bytes > kind.keptBytes && count > 0) break;
    count += 1;
  }
  return count;
}

/** Logs of sessions lie beside those of runs; the colon keeps their ids apart from every checkpoint id. */
const SESSION_PREFIX = 'session:';

export function sessionLogId(sessionId: string): string {
  return SESSION_PREFIX + sessionId;
}

/** The id as callers know it. */
export function nameOf(row: LogRow): string {
  return row.id.startsWith(SESSION_PREFIX) ? row.id.slice(SESSION_PREFIX.length) : row.id;
}

/** Every session log id lies between these two. */
export const SESSION_LOG_IDS = { after: SESSION_PREFIX, before: 'session;' } as const;
