/** What the store remembers of the logs it wrote or read last, so that a save needs no look at what is stored. */
import { extendsList, type Checkpoint, type LogEvent, type Message } from '@lousho/contract';
import type { LogFile } from './log-file.ts';
import { standsOnBase, type StoredLog } from './log-reader.ts';

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
  /** It begins with messages of another log. */
  readonly hasBase: boolean;
}

/** Messages that are stored in a log, which another log may begin with. */
export interface SharedMessages {
  readonly path: string;
  readonly identity: string;
  /** So many saves of that log hold them. */
  readonly of: string;
  readonly messages: readonly Message[];
}

/** A copy of fewer costs less than a second name for the file they are in. */
const FEWEST_SHARED = 4;

/** What the log holds of this state, if that begins with the very objects that were written or read there. */
export function sharedFrom(known: KnownLog | undefined, state: Checkpoint): SharedMessages | undefined {
  if (known === undefined || known.hasBase) return undefined;
  for (const stored of [known.checkpoint, known.loaded]) {
    if (stored === undefined || stored.messages.length < FEWEST_SHARED) continue;
    if (extendsList(stored.messages, state.messages))
      return sharedOf(known.file, known.eventCount, stored.messages);
  }
  return undefined;
}

export function sharedOf(
  { path, identity }: LogFile,
  saves: number,
  messages: readonly Message[],
): SharedMessages {
  return { path, identity, of: String(saves), messages };
}

/** Finding out costs as much as reading the log once. */
const FIRST_COMPACTION_AT_BYTES = 64 * 1024;
/** Runs that execute at one time in one process, with room. */
const MAX_LOGS = 1_000;
/** Enough that the next turn of a busy conversation finds its transcript. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Below this size an event is mostly its header. */
const SMALL_EVENT_BYTES = 400;

export class KnownLogs {
  /** The one used last is last. */
  readonly #logs = new Map<string, KnownLog>();
  #bytes = 0;

  get(id: string): KnownLog | undefined {
    return this.#logs.get(id);
  }

  /** Keeps the log as the one used last. Those that had to make room for it. */
  keep(log: KnownLog): readonly KnownLog[] {
    this.forget(log.id);
    this.#logs.set(log.id, log);
    this.#bytes += log.bytes;
    const dropped: KnownLog[] = [];
    for (const oldest of this.#logs.values()) {
      if (oldest === log || (this.#logs.size <= MAX_LOGS && this.#bytes <= MAX_BYTES)) break;
      this.forget(oldest.id);
      dropped.push(oldest);
    }
    return dropped;
  }

  forget(id: string): void {
    const log = this.#logs.get(id);
    if (log === undefined) return;
    this.#logs.delete(id);
    this.#bytes -= log.bytes;
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
    hasOlder: true,
    hasBase: standsOnBase(events),
  };
}

/** Whether the log may be most of what it need not be. */
export function mayBeCompacted(log: KnownLog, keptEntries: number): boolean {
  const isMostlyHeaders = log.eventCount > keptEntries && log.bytes < log.eventCount * SMALL_EVENT_BYTES;
  return log.hasDeadContent || isMostlyHeaders;
}

export function nextCompaction(bytes: number): number {
  return Math.max(FIRST_COMPACTION_AT_BYTES, 2 * bytes);
}

function replacesContent({ b, k, R, h, I, w }: LogEvent): boolean {
  if (b !== undefined) return false;
  return k !== undefined || R !== undefined || h !== undefined || I !== undefined || w !== undefined;
}
