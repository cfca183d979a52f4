/** What the store remembers of the logs it wrote or read last, so that a save needs no look at what is stored. */
import type { Checkpoint, LogEvent } from '@lousho/contract';
import type { Descriptors } from './descriptors.ts';
import type { LogFile } from './log-file.ts';
import { standsOnBase, type StoredLog } from './log-reader.ts';
import type { LogPlace } from './unfinished-runs.ts';

export interface KnownLog {
  readonly id: string;
  readonly number: number;
  readonly file: LogFile;
  /** The state after the last save; `undefined` when it was deleted and only its history is left. */
  checkpoint: Checkpoint | undefined;
  /** The same state as somebody loaded it later: other objects with the same content, which the next save may have grown from. */
  loaded: Checkpoint | undefined;
  eventCount: number;
  bytes: number;
  /** Whether events replace what earlier ones said: else nothing in the log is superseded but headers. */
  hasDeadContent: boolean;
  /** When the log reaches this size it is worth finding out how much of it is superseded. */
  compactAtBytes: number;
  /** Its name survives a power cut. */
  isNameSynced: boolean;
  /** There may be older generations beside it. */
  hasOlder: boolean;
  /** Where this handle marked it as unfinished. */
  begunAt: LogPlace | undefined;
  /** It begins with messages of another log. */
  readonly hasBase: boolean;
}

/** Finding out costs as much as reading the log once. */
const FIRST_COMPACTION_AT_BYTES = 64 * 1024;
/** Runs that execute at one time in one process, with room. */
const MAX_LOGS = 1_000;
/** Enough that the next turn of a busy conversation finds its transcript. */
const MAX_BYTES = 64 * 1024 * 1024;

/** A log that is not known any more is not written to soon, so its file is closed. */
export class KnownLogs {
  /** The one used last is last. */
  readonly #logs = new Map<string, KnownLog>();
  #bytes = 0;

  constructor(readonly descriptors: Descriptors) {}

  get(id: string): KnownLog | undefined {
    return this.#logs.get(id);
  }

  /** Keeps the log as the one used last. Others may have to make room for it. */
  async keep(log: KnownLog): Promise<KnownLog> {
    this.#drop(log.id);
    this.#logs.set(log.id, log);
    this.#bytes += log.bytes;
    const dropped: KnownLog[] = [];
    for (const oldest of this.#logs.values()) {
      if (oldest === log || (this.#logs.size <= MAX_LOGS && this.#bytes <= MAX_BYTES)) break;
      this.#drop(oldest.id);
      dropped.push(oldest);
    }
    for (const { file } of dropped) await this.descriptors.close(file);
    return log;
  }

  /** Keeps what was read, so that the next save appends to it. */
  async remember(log: StoredLog, checkpoint: Checkpoint): Promise<void> {
    const known = this.#logs.get(log.id);
    const { scan, identity } = log.file;
    // A run that executes here grows from the objects it saved, not from a copy that somebody looked at meanwhile.
    if (known?.file.identity === identity && known.file.scan.sum === scan.sum) known.loaded = checkpoint;
    else if (!scan.isSealed) await this.keep(knownFrom(log, checkpoint));
  }

  async forget(id: string): Promise<void> {
    const dropped = this.#drop(id);
    if (dropped !== undefined) await this.descriptors.close(dropped.file);
  }

  /** A save was added to it. */
  note(log: KnownLog, event: LogEvent, bytes: number, checkpoint: Checkpoint): void {
    log.checkpoint = checkpoint;
    log.loaded = undefined;
    log.eventCount += 1;
    log.bytes += bytes;
    log.hasDeadContent ||= replacesContent(event);
    if (this.#logs.get(log.id) === log) this.#bytes += bytes;
  }

  #drop(id: string): KnownLog | undefined {
    const log = this.#logs.get(id);
    if (log === undefined) return undefined;
    this.#logs.delete(id);
    this.#bytes -= log.bytes;
    return log;
  }
}

export function knownFrom(log: StoredLog, checkpoint: Checkpoint | undefined): KnownLog {
  const { id, number, file, events } = log;
  const bytes = log.sizes.reduce((sum, size) => sum + size, 0);
  return {
    ...{ id, number, file, checkpoint, bytes },
    loaded: undefined,
    eventCount: events.length,
    hasDeadContent: events.some(
      (event, index) => (index > 0 && event.b !== undefined) || replacesContent(event),
    ),
    compactAtBytes: nextCompaction(bytes),
    isNameSynced: false,
    begunAt: undefined,
    hasOlder: true,
    hasBase: standsOnBase(events),
  };
}

export function nextCompaction(bytes: number): number {
  return Math.max(FIRST_COMPACTION_AT_BYTES, 2 * bytes);
}

function replacesContent({ b, k, R, h, I, w }: LogEvent): boolean {
  if (b !== undefined) return false;
  return k !== undefined || R !== undefined || h !== undefined || I !== undefined || w !== undefined;
}
