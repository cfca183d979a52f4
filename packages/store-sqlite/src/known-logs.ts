/** What the store remembers of the logs it wrote or read last, so that a save needs no look at what is stored. */
import type { Checkpoint, LogEvent } from '@lousho/contract';
import type { StoredLog } from './log-reader.ts';
import type { LogStatus } from './log-tables.ts';

/** A base and the events behind it, up to the next base. */
interface Segment {
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
  /** Its size while nobody adds to it; `undefined` while its run is in progress. */
  idleBytes: number | undefined;
  usedAt: number;
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
  readonly #logs = new Map<string, KnownLog>();
  #activeCount = 0;
  #idleBytes = 0;
  #useCount = 0;
  /** Changed by the transaction that is under way. */
  #touched: string[] = [];

  get(id: string): KnownLog | undefined {
    return this.#logs.get(id);
  }

  /** Keeps the log as the one used last. */
  keep(log: KnownLog): void {
    log.usedAt = this.#useCount += 1;
    const idleBytes = log.status === 'in-progress' ? undefined : bytesOf(log);
    if (this.#logs.get(log.id) === log && log.idleBytes === idleBytes) return;
    this.forget(log.id);
    this.#logs.set(log.id, log);
    log.idleBytes = idleBytes;
    if (idleBytes === undefined) this.#activeCount += 1;
    else this.#idleBytes += idleBytes;
    if (this.#activeCount > MAX_ACTIVE || this.#idleBytes > MAX_IDLE_BYTES) this.#makeRoom();
  }

  touch(id: string): void {
    this.#touched.push(id);
  }

  forget(id: string): void {
    const log = this.#logs.get(id);
    if (log === undefined) return;
    this.#logs.delete(id);
    if (log.idleBytes === undefined) this.#activeCount -= 1;
    else this.#idleBytes -= log.idleBytes;
  }

  committed(): void {
    this.#touched = [];
  }

  /** What the transaction made us believe is not true: it is read again when it is needed. */
  rolledBack(): void {
    for (const id of this.#touched) this.forget(id);
    this.#touched = [];
  }

  /** Forgets what was used longest ago, a tenth more than it must: sorting is not worth it for one. The newest stays. */
  #makeRoom(): void {
    const oldestFirst = [...this.#logs.values()].sort((a, b) => a.usedAt - b.usedAt).slice(0, -1);
    for (const { id, idleBytes } of oldestFirst) {
      const isTooMany =
        idleBytes === undefined
          ? this.#activeCount > 0.9 * MAX_ACTIVE
          : this.#idleBytes > 0.9 * MAX_IDLE_BYTES;
      if (isTooMany) this.forget(id);
    }
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
    idleBytes: undefined,
    usedAt: 0,
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
