/** Lists of runs: unfinished ones through their own index, headers from two events a run, and damage as one entry. */
import type { Database, Statement } from 'better-sqlite3';
import {
  compareSaves,
  headerFromEvent,
  listCheckpoints,
  matchesStatus,
  parseCheckpoint,
  storedError,
  SDKError,
  type CheckpointHeader,
  type CheckpointHeaderEntry,
  type CheckpointListEntry,
  type ListOptions,
  type LogEvent,
} from '@lousho/contract';
import type { DatabaseReader } from './database-reader.ts';
import type { EventLogs } from './event-logs.ts';
import { KnownHeaders, type HeaderRow } from './known-headers.ts';
import type { LogKind } from './log-reader.ts';
import { EVENT_KEY, LAST_SEQ, checksum } from './log-tables.ts';
import { parseEvent } from './packed-event.ts';
import { damageError, isSqliteError } from './sqlite-errors.ts';
import { nextTurn } from './turn-clock.ts';

/** Word for word the condition of the index. */
const UNFINISHED = "status IN ('in-progress', 'awaiting-approval')";
const EVERY_STATUS = "status IN ('in-progress', 'awaiting-approval', 'finished')";
/** What is read before others get their turn. */
const LOADS_A_TURN = 20;
const HEADERS_A_TURN = 500;

interface Statements {
  readonly ids: Statement<[], string>;
  readonly headers: Statement<[], HeaderRow>;
}

export class CheckpointLists {
  readonly #reader: DatabaseReader;
  readonly #logs: EventLogs;
  readonly #knownHeaders = new KnownHeaders();
  readonly #unfinished: Statements;
  readonly #all: Statements;

  constructor(connection: Database, reader: DatabaseReader, logs: EventLogs) {
    this.#reader = reader;
    this.#logs = logs;
    this.#unfinished = statementsFor(connection, UNFINISHED);
    this.#all = statementsFor(connection, EVERY_STATUS);
  }

  /** Oldest save first, then by id. A run that goes while the list is made is left out. */
  async list(options: ListOptions, kind: LogKind): Promise<readonly CheckpointListEntry[]> {
    const ids = await this.#reader.read({
      operation: 'list',
      read: () => this.#statementsFor(options).ids.all(),
    });
    const entries: CheckpointListEntry[] = [];
    for (const [index, id] of ids.entries()) {
      if (index % LOADS_A_TURN === LOADS_A_TURN - 1) await nextTurn();
      const entry = await this.#reader.read({ operation: 'list', read: () => this.#entryOf(id, kind) });
      if (entry !== undefined) entries.push(entry);
    }
    return listCheckpoints(entries, options);
  }

  async listHeaders(options: ListOptions): Promise<readonly CheckpointHeaderEntry[]> {
    const statements = this.#statementsFor(options);
    const rows = await this.#reader.read({ operation: 'listHeaders', read: () => statements.headers.all() });
    const entries: CheckpointHeaderEntry[] = [];
    for (const [index, row] of rows.entries()) {
      if (index % HEADERS_A_TURN === HEADERS_A_TURN - 1) await nextTurn();
      const entry = this.#knownHeaders.entryOf(row, headerEntryOf);
      if (matchesStatus(entry.status, options)) entries.push(entry);
    }
    return entries.sort((a, b) =>
      compareSaves(a.header?.savedAt, a.sessionId, b.header?.savedAt, b.sessionId),
    );
  }

  #entryOf(id: string, kind: LogKind): CheckpointListEntry | undefined {
    const row = this.#logs.tables.rowById(id);
    if (row === undefined || row.status === 'deleted') return undefined;
    try {
      const log = this.#logs.reader.readLog(row, kind.record);
      const checkpoint = this.#logs.reader.stateOf(log, kind);
      return { sessionId: id, status: checkpoint.status, checkpoint };
    } catch (error) {
      // A database that does not answer is no damage of this run.
      if (isSqliteError(error)) throw error;
      return { sessionId: id, status: 'in-progress', checkpoint: null, error: damage(error, id) };
    }
  }

  #statementsFor({ status }: ListOptions): Statements {
    return matchesStatus('finished', { status }) ? this.#all : this.#unfinished;
  }
}

function statementsFor(connection: Database, condition: string): Statements {
  return {
    ids: connection.prepare<[], string>(`SELECT id FROM runs WHERE ${condition}`).pluck(),
    headers: connection
      .prepare<[], HeaderRow>(
        `SELECT id, status, facts.k, facts.data, facts.sum, last.k, last.data, last.sum FROM runs
         LEFT JOIN events AS facts ON facts.k = ${EVENT_KEY} + facts_seq
         LEFT JOIN events AS last
           ON last.k = (SELECT max(k) FROM events WHERE k BETWEEN ${EVENT_KEY} AND ${EVENT_KEY} + ${LAST_SEQ})
         WHERE ${condition}`,
      )
      .raw(),
  };
}

function headerEntryOf(row: HeaderRow): CheckpointHeaderEntry {
  const [id, status] = row;
  try {
    const facts = intactEvent(row[2], row[3], row[4]).f;
    if (facts === undefined) throw new Error('the event that should hold the facts of the run does not');
    return {
      sessionId: id,
      status,
      header: checkedHeader(headerFromEvent(facts, intactEvent(row[5], row[6], row[7])), id),
    };
  } catch (error) {
    return { sessionId: id, status: 'in-progress', header: null, error: damage(error, id) };
  }
}

function intactEvent(k: number | null, data: string | null, sum: number | null): LogEvent {
  if (k === null || data === null) throw new Error('an event is missing');
  if (checksum(k, data) !== sum) throw new Error('an event does not match its checksum');
  return parseEvent(data);
}

/** A header is a checkpoint without its content, so it is checked as one with none. */
function checkedHeader(header: CheckpointHeader, id: string): CheckpointHeader {
  parseCheckpoint({ ...header, messages: [], heldInput: [], inputIds: [], settledResults: [] }, id);
  return header;
}

function damage(error: unknown, id: string): CheckpointListEntry['error'] & object {
  return storedError(error instanceof SDKError ? error : damageError(error, 'checkpoint', id));
}
