/** What the store remembers of the logs it wrote or read last, so that a save needs no look at what is stored. */
import type { Checkpoint, LogEvent } from '@lousho/contract';
import type { StoredLog } from './log-reader.ts';
import type { LogStatus } from './log-tables.ts';

/** A base and the events behind it, up to the next base. */
export interface Segment {
  readonly seq: number;
  bytes: number;
}

export interface KnownLog {
  readonly id: string;
  readonly key: number;
  status: LogStatus;
  savedAtMs: number;
  lastSeq: number;
  factsSeq: number;
  standsOn: number | null;
  /** The state after `lastSeq`. */
  checkpoint: Checkpoint;
  /** The same state as somebody loaded it later: other objects with the same content, which the next save may have grown from. */
  loaded: Checkpoint | undefined;
  /** Never empty; the first begins the log. */
  segments: Segment[];
  /** The last event that changed messages instead of adding some. */
  lastRewriteSeq: number;
  /** Whether events replace what earlier ones said: else nothing in the log is superseded but headers. */
  hasDeadContent: boolean;
  /** Its size when it became idle. */
  idleBytes: number;
  /** When the log reaches this size it is worth counting how much of it is superseded. */
  countAtBytes: number;
}

/** Counting costs as much as writing the state once. */
const FIRST_COUNT_AT_BYTES = 64 * 1024;
/** Runs that execute at one time in one process, with room. */
const MAX_ACTIVE = 1_000;
/** Of logs that nobody adds to right now: enough that the next turn of a busy conversation finds its transcript. */
const MAX_IDLE_BYTES = 32 * 1024 * 1024;

export class KnownLogs {
  /** Of runs in progress, the one used last at the end. */
  readonly #active = new Map<string, KnownLog>();
  /** Of all others, likewise. */
  readonly #idle = new Map<string, KnownLog>();
  #idleBytes = 0;
  /** Changed by the transaction that is under way. */
  readonly #touched = new Set<string>();

  get(id: string): KnownLog | undefined {
    return this.#active.get(id) ?? this.#idle.get(id);
  }

  /** Keeps the log as the one used last. */
  keep(log: KnownLog): void {
    this.forget(log.id);
    if (log.status === 'in-progress') {
      this.#active.set(log.id, log);
      if (this.#active.size > MAX_ACTIVE) this.#forgetOldest(this.#active);
      return;
    }
    log.idleBytes = bytesOf(log);
    this.#idle.set(log.id, log);
    this.#idleBytes += log.idleBytes;
    while (this.#idleBytes > MAX_IDLE_BYTES && this.#idle.size > 1) this.#forgetOldest(this.#idle);
  }

  touch(id: string): void {
    this.#touched.add(id);
  }

  forget(id: string): void {
    if (this.#active.delete(id)) return;
    this.#idleBytes -= this.#idle.get(id)?.idleBytes ?? 0;
    this.#idle.delete(id);
  }

  committed(): void {
    this.#touched.clear();
  }

  /** What the transaction made us believe is not true: it is read again when it is needed. */
  rolledBack(): void {
    for (const id of this.#touched) this.forget(id);
    this.#touched.clear();
  }

  #forgetOldest(logs: ReadonlyMap<string, KnownLog>): void {
    for (const [oldest] of logs) return this.forget(oldest);
  }
}

export function bytesOf(log: KnownLog): number {
  return log.segments.reduce((bytes, segment) => bytes + segment.bytes, 0);
}

export function firstSeqOf(log: KnownLog): number {
  return log.segments[0]?.seq ?? log.lastSeq;
}

/** An event was added behind the last one. */
export function noteEvent(log: KnownLog, event: LogEvent, bytes: number): void {
  const seq = log.lastSeq + 1;
  log.lastSeq = seq;
  noteContent(log, event, seq, bytes);
}

export function nextCount(bytes: number): number {
  return Math.max(FIRST_COUNT_AT_BYTES, 2 * bytes);
}

export function knownFrom({ row, events, sizes, lastSeq }: StoredLog, checkpoint: Checkpoint): KnownLog {
  const { id, key, status, savedAtMs, factsSeq, standsOn } = row;
  const log: KnownLog = {
    ...{ id, key, status, savedAtMs, lastSeq, factsSeq, standsOn, checkpoint },
    loaded: undefined,
    segments: [],
    lastRewriteSeq: row.firstSeq,
    hasDeadContent: false,
    idleBytes: 0,
    countAtBytes: FIRST_COUNT_AT_BYTES,
  };
  events.forEach((event, index) => noteContent(log, event, row.firstSeq + index, sizes[index] ?? 0));
  return log;
}

function noteContent(log: KnownLog, event: LogEvent, seq: number, bytes: number): void {
  const current = log.segments.at(-1);
  if (event.b !== undefined || current === undefined) log.segments.push({ seq, bytes });
  else current.bytes += bytes;
  if (event.b !== undefined || event.k !== undefined) log.lastRewriteSeq = seq;
  if (event.b === undefined && replacesContent(event)) log.hasDeadContent = true;
}

function replacesContent({ k, R, h, I, w }: LogEvent): boolean {
  return k !== undefined || R !== undefined || h !== undefined || I !== undefined || w !== undefined;
}
