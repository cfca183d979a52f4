/** A log as a whole: its events, the state that they make, its history, and what of it goes on in the next generation. */
import {
  ConfigurationError,
  freezeStored,
  foldEvents,
  historyOf,
  nextEvent,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type LogEvent,
  type Message,
} from '@lousho/contract';
import type { Disk } from './disk.ts';
import { damageError, isDamage, type DamagedRecord } from './file-errors.ts';
import { LogFile } from './log-file.ts';
import type { LogFolder } from './log-folder.ts';
import { FILE_FORMAT, encodeHeader, encodeSave, type LogHeader } from './log-lines.ts';
import { LogScan, type ScannedSave } from './log-scan.ts';

/** How one kind of log is read and how much of its past is kept. */
export interface LogKind {
  readonly kind: LogHeader['kind'];
  readonly record: DamagedRecord;
  /** Entries of history, at least 1: the newest is the state itself. */
  readonly keptEntries: number;
  readonly keptBytes: number;
  /** Refuses a state of the wrong shape. */
  parse(state: unknown, id: string): Checkpoint;
}

export interface StoredLog {
  readonly id: string;
  readonly number: number;
  readonly file: LogFile;
  readonly events: readonly LogEvent[];
  /** Bytes of each event. */
  readonly sizes: readonly number[];
  /** Messages of other logs that events stand on. */
  readonly messagesOf: (of: string) => readonly Message[] | undefined;
}

/** `undefined` when there is none. @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_VERSION_UNSUPPORTED, the file system's errors */
export async function readLog(
  disk: Disk,
  folder: LogFolder,
  { id, number, kind }: { readonly id: string; readonly number: number; readonly kind: LogKind },
): Promise<StoredLog | undefined> {
  const path = folder.pathOf(number, 'jsonl');
  const read = await LogFile.read(disk, path);
  if (read === undefined) return undefined;
  const { file, saves } = read;
  assertIntact(file.scan, { id, number, kind });
  const events = parseSaves(saves);
  const sizes = saves.map(({ length }) => length);
  const base = events.find((event) => typeof event.b === 'object')?.b;
  if (typeof base !== 'object') return { id, number, file, events, sizes, messagesOf: () => undefined };
  const messages = await readBase(disk, folder.pathOf(number, 'base'), Number(base.of));
  // A base goes after its log.
  if (messages === undefined && (await disk.statIfThere(path)) === undefined) return undefined;
  if (messages === undefined)
    throw damageError(new Error('the messages that it begins with are not beside it'), kind.record, id);
  return { id, number, file, events, sizes, messagesOf: (of) => (of === base.of ? messages : undefined) };
}

function assertIntact(
  { header, damage }: LogScan,
  { id, number, kind }: { readonly id: string; readonly number: number; readonly kind: LogKind },
): void {
  if (header !== undefined && header.format > FILE_FORMAT)
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', {
      found: header.format,
      supported: FILE_FORMAT,
    });
  if (damage !== undefined || header === undefined) throw damageError(new Error(damage), kind.record, id);
  if (header.id !== id || header.generation !== number || header.kind !== kind.kind)
    throw damageError(
      new Error(`it is generation ${header.generation} of the ${header.kind} "${header.id}"`),
      kind.record,
      id,
    );
}

/** Texts of this length together are parsed at once, which is faster than one by one. */
const PARSED_AT_ONCE = 32 * 1024 * 1024;

function parseSaves(saves: readonly ScannedSave[]): LogEvent[] {
  const events: LogEvent[] = [];
  let texts: string[] = [];
  let length = 0;
  const parse = (): void => {
    // Not spread into a call: there may be more events than arguments.
    for (const event of JSON.parse(`[${texts.join(',')}]`) as LogEvent[]) events.push(event);
    texts = [];
    length = 0;
  };
  for (const { json } of saves) {
    if (length + json.length > PARSED_AT_ONCE) parse();
    texts.push(json);
    length += json.length;
  }
  parse();
  return events;
}

/** What another log held after so many saves: this one begins with that. `undefined` when it does not hold them. */
async function readBase(disk: Disk, path: string, saves: number): Promise<readonly Message[] | undefined> {
  const read = await LogFile.read(disk, path);
  if (read === undefined || read.saves.length < saves) return undefined;
  const state = foldEvents(parseSaves(read.saves.slice(0, saves))) as Pick<Checkpoint, 'messages'>;
  return state.messages;
}

/** Whether the log needs another one, which lies beside it under its number. */
export function standsOnBase(events: readonly LogEvent[]): boolean {
  return events.some(({ b }) => typeof b === 'object');
}

/** The state after the last event, frozen. @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_VERSION_UNSUPPORTED */
export function stateOf(log: StoredLog, kind: LogKind): Checkpoint {
  return orDamage(log, kind.record, () =>
    freezeStored(kind.parse(foldEvents(log.events, log.messagesOf), log.id)),
  );
}

/** The newest states, newest first. @throws as `stateOf` */
export function entriesOf(log: StoredLog, count: number, kind: LogKind): CheckpointHistoryEntry[] {
  const parse = (state: unknown): Checkpoint => freezeStored(kind.parse(state, log.id));
  return orDamage(log, 'history', () => historyOf(log.events, count, parse, log.messagesOf));
}

function orDamage<Result>({ id }: StoredLog, record: DamagedRecord, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    // A newer version is no damage.
    if (error instanceof ConfigurationError || isDamage(error)) throw error;
    throw damageError(error, record, id);
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

/** What the next generation begins with: the events that are still history, the first of them as a base. */
export function carriedEvents(log: StoredLog, kind: LogKind): readonly LogEvent[] {
  const { events } = log;
  const dropped = events.length - keptCount(log.sizes, kind);
  if (dropped === 0) return events;
  const oldest = foldEvents(events.slice(0, dropped + 1), log.messagesOf) as Checkpoint;
  const base = nextEvent(undefined, oldest);
  const shared = sharedBase(events.slice(0, dropped + 1));
  const first: LogEvent =
    shared === undefined ? base : { ...base, b: shared, ...(base.m && { m: base.m.slice(shared.n) }) };
  return [first, ...events.slice(dropped + 1)];
}

/** What the events stand on, unless they have changed some of it. */
function sharedBase(events: readonly LogEvent[]): { readonly of: string; readonly n: number } | undefined {
  let shared: { readonly of: string; readonly n: number } | undefined;
  for (const { b, k } of events) {
    if (b !== undefined) shared = b === 1 ? undefined : b;
    if (shared !== undefined && k !== undefined && k < shared.n) shared = undefined;
  }
  return shared;
}

export interface EncodedLog {
  readonly bytes: Buffer;
  /** Bytes of each event. */
  readonly sizes: readonly number[];
  /** Checksum of the last line. */
  readonly sum: number;
}

/** A whole log, to be published under its number. */
export function encodeLog(
  events: readonly LogEvent[],
  header: Omit<LogHeader, 'format' | 'saves'>,
): EncodedLog {
  const first = encodeHeader({ format: FILE_FORMAT, ...header, saves: events.length });
  const parts = [first.bytes];
  const sizes: number[] = [];
  let end = { count: 0, sum: first.sum, factsAt: 0 };
  let at = first.bytes.length;
  for (const event of events) {
    const line = encodeSave(event, end, { id: header.id, at, writer: undefined });
    end = { count: end.count + 1, sum: line.sum, factsAt: line.factsAt };
    at += line.bytes.length;
    parts.push(line.bytes);
    sizes.push(line.bytes.length);
  }
  return { bytes: Buffer.concat(parts), sizes, sum: end.sum };
}
