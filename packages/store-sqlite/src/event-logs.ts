/** Saving a state: one event behind the last one, whatever the length of the transcript. */
import { extendsList, nextEvent, isSDKError, type Checkpoint, type LogEvent } from '@lousho/contract';
import type { TransactionObserver } from './commit-queue.ts';
import {
  KnownLogs,
  bytesOf,
  firstSeqOf,
  knownFrom,
  nextCount,
  noteEvent,
  type KnownLog,
} from './known-logs.ts';
import { LogReader, type LogKind, type StoredLog } from './log-reader.ts';
import type { LogMark, LogRow, LogStatus, LogTables } from './log-tables.ts';
import { LogUpkeep } from './log-upkeep.ts';
import { eventText } from './packed-event.ts';
import { StoredPrefixes, type Origin } from './stored-prefixes.ts';

export class EventLogs implements TransactionObserver {
  readonly reader: LogReader;
  readonly #upkeep: LogUpkeep;
  readonly #known = new KnownLogs();
  readonly #prefixes = new StoredPrefixes((id) => this.#upToDate(id));

  constructor(readonly tables: LogTables) {
    this.reader = new LogReader(tables);
    this.#upkeep = new LogUpkeep(tables, this.reader);
  }

  committed(): void {
    this.#known.committed();
  }

  rolledBack(): void {
    this.#known.rolledBack();
  }

  /** Key of the log, if this handle knows it; 0 is no log's. */
  knownKey(id: string): number {
    return this.#known.get(id)?.key ?? 0;
  }

  /**
   * Saves the state. Inside a write transaction. `next` is deeply frozen.
   * @param storedMark of the log with `knownKey`, when the caller has just read it
   * @throws LOUSHO_STORE_VERSION_UNSUPPORTED
   */
  append(id: string, next: Checkpoint, status: LogStatus, kind: LogKind, storedMark?: LogMark): void {
    // Before anything changes: whatever fails from here on, the log is read again after the rollback.
    this.#known.touch(id);
    let known = this.#knownNow(id, storedMark);
    // Another writer may have been first: then its events are read, and what this save adds is computed again.
    if (known !== undefined && !this.#appendTo(known, next, status, kind)) known = undefined;
    if (known === undefined) this.#appendUnknown(id, next, status, kind);
  }

  /** The state of the log now, also when another handle wrote it. `undefined` when there is none. Inside a transaction. */
  current(id: string, kind: LogKind): Checkpoint | undefined {
    const known = this.#knownNow(id);
    if (known !== undefined && this.tables.lastSeq(known.key) === known.lastSeq) return known.checkpoint;
    const row = this.tables.rowById(id);
    return row === undefined || row.status === 'deleted' ? undefined : this.load(row, kind);
  }

  /** Reads the log whole and checks it. @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_VERSION_UNSUPPORTED */
  load(row: LogRow, kind: LogKind): Checkpoint {
    const log = this.reader.readLog(row, kind.record);
    const checkpoint = this.reader.stateOf(log, kind);
    this.remember(log, checkpoint);
    return checkpoint;
  }

  /** Remembers what was read, so that the next save appends to it. */
  remember(log: StoredLog, checkpoint: Checkpoint): void {
    const { id, key } = log.row;
    this.#prefixes.note(checkpoint, { id, key, seq: log.lastSeq });
    const known = this.#known.get(id);
    // A run that executes here grows from the objects it saved, not from a copy that somebody looked at meanwhile.
    if (known?.key === key && known.lastSeq === log.lastSeq) known.loaded = checkpoint;
    else this.#known.keep(knownFrom(log, checkpoint));
  }

  /** Remembers where these messages are stored: a run that begins with them need not store them again. */
  noteOrigin(checkpoint: Checkpoint, origin: Origin): void {
    this.#prefixes.note(checkpoint, origin);
  }

  /** Removes events and row; what stands on it gets the messages first. Inside a write transaction. */
  remove(row: LogRow, { keepHistory }: { readonly keepHistory: boolean }): void {
    this.#known.forget(row.id);
    this.#upkeep.standAlone(row.key, 0);
    if (keepHistory) return this.tables.updateRow({ ...row, status: 'deleted' });
    this.tables.deleteRow(row.key);
    this.tables.deleteEvents(row.key, 0);
  }

  /** Another handle may have deleted the run, and even begun a new one: its row then has another status or is gone. */
  #knownNow(id: string, storedMark?: LogMark): KnownLog | undefined {
    const known = this.#known.get(id);
    if (known === undefined) return undefined;
    const mark = storedMark ?? this.tables.markOf(known.key);
    if (mark?.status === known.status && mark.firstSeq === firstSeqOf(known)) return known;
    this.#known.forget(id);
    return undefined;
  }

  #appendUnknown(id: string, next: Checkpoint, status: LogStatus, kind: LogKind): void {
    const row = this.tables.rowById(id);
    if (row === undefined) return this.#begin(id, next, status);
    if (row.status === 'deleted') return this.#beginAnew(row, next, status, kind);
    let known: KnownLog;
    try {
      const log = this.reader.readLog(row, kind.record);
      known = knownFrom(log, this.reader.stateOf(log, kind));
    } catch (error) {
      if (!isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT')) throw error;
      return this.#replaceDamaged(row, next, status, kind);
    }
    if (!this.#appendTo(known, next, status, kind))
      throw new Error(`event ${known.lastSeq + 1} of "${id}" is there and was not read`);
  }

  /** A save replaces the state whole, so it also heals a damaged one; what was left of its history goes. */
  #replaceDamaged(row: LogRow, next: Checkpoint, status: LogStatus, kind: LogKind): void {
    this.#upkeep.standAlone(row.key, 0);
    // Numbers are not used again, so that a handle that knows the log as it was before notices.
    const firstSeq = (this.tables.lastSeq(row.key) ?? row.firstSeq) + 1;
    this.tables.deleteEvents(row.key, 0);
    this.#beginAnew({ ...row, firstSeq, standsOn: null }, next, status, kind);
  }

  #begin(id: string, next: Checkpoint, status: LogStatus): void {
    const prefix = status === 'session' ? undefined : this.#prefixes.find(id, next);
    const event = nextEvent(undefined, next, prefix?.shared);
    const standsOn = typeof event.b === 'object' ? (prefix?.key ?? null) : null;
    const data = eventText(id, event);
    const key = this.tables.insertRow(id, status, standsOn, savedAtMs(next));
    this.tables.insertEvent(key, 0, data);
    const row: LogRow = { id, key, status, standsOn, savedAtMs: savedAtMs(next), firstSeq: 0, factsSeq: 0 };
    this.#known.keep(knownFrom({ row, events: [event], sizes: [data.length], lastSeq: 0 }, next));
  }

  /** Behind the history that a deleted run left. */
  #beginAnew(row: LogRow, next: Checkpoint, status: LogStatus, kind: LogKind): void {
    const seq = (this.tables.lastSeq(row.key) ?? row.firstSeq - 1) + 1;
    const event = nextEvent(undefined, next);
    const data = eventText(row.id, event);
    this.tables.insertEvent(row.key, seq, data);
    const begun: LogRow = { ...row, status, savedAtMs: savedAtMs(next), factsSeq: seq };
    this.tables.updateRow(begun);
    const known = knownFrom(
      { row: { ...begun, firstSeq: seq }, events: [event], sizes: [data.length], lastSeq: seq },
      next,
    );
    if (row.firstSeq < seq) known.segments.unshift({ seq: row.firstSeq, bytes: 0 });
    this.#upkeep.trim(known, kind);
    this.#known.keep(known);
  }

  /** `false` when another writer was first; nothing is written then. */
  #appendTo(known: KnownLog, next: Checkpoint, status: LogStatus, kind: LogKind): boolean {
    const { loaded } = known;
    const before =
      loaded !== undefined && extendsList(loaded.messages, next.messages) ? loaded : known.checkpoint;
    const added = nextEvent(before, next);
    const event = isWorthBase(known, before, next, added) ? nextEvent(undefined, next) : added;
    if (event.b !== undefined || event.k !== undefined) this.#upkeep.standAlone(known.key, event.k ?? 0);
    const data = eventText(known.id, event);
    if (!this.tables.insertEvent(known.key, known.lastSeq + 1, data)) return false;
    noteEvent(known, event, data.length);
    known.checkpoint = next;
    known.loaded = undefined;
    const hasEnded = status === 'finished' && known.status !== 'finished';
    if (status !== known.status || event.f !== undefined) {
      known.status = status;
      known.savedAtMs = savedAtMs(next);
      if (event.f !== undefined) known.factsSeq = known.lastSeq;
      this.#upkeep.writeRow(known);
    }
    if (known.segments.length > 1) this.#upkeep.trim(known, kind);
    if (hasEnded) this.#upkeep.compactEnded(known, kind);
    this.#known.keep(known);
    return true;
  }

  /** What is known of the log, if that is still all there is. */
  #upToDate(id: string): KnownLog | undefined {
    const known = this.#knownNow(id);
    return known !== undefined && this.tables.lastSeq(known.key) === known.lastSeq ? known : undefined;
  }
}

/** Whether to write the whole state: then, some saves later, everything before it can go. */
function isWorthBase(known: KnownLog, before: Checkpoint, next: Checkpoint, event: LogEvent): boolean {
  // Most messages are replaced, so the state is about as long as the event.
  if (event.k !== undefined && event.k * 2 < before.messages.length) return true;
  if (!known.hasDeadContent) return false;
  const bytes = bytesOf(known);
  if (bytes < known.countAtBytes) return false;
  known.countAtBytes = nextCount(bytes);
  return bytes > 2 * JSON.stringify(next).length;
}

function savedAtMs(checkpoint: Checkpoint): number {
  const epochMs = Date.parse(checkpoint.savedAt);
  return Number.isNaN(epochMs) ? 0 : epochMs;
}
