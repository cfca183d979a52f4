/** What is to be known of a run without its transcript, from the first and the last bytes of its log. */
import {
  SDKError,
  checkpointHeader,
  headerFromEvent,
  isCheckpointId,
  parseCheckpoint,
  type CheckpointHeader,
  type LeaseRecord,
  type LogEvent,
} from '@lousho/contract';
import { decodeRecord } from './checked-record.ts';
import type { Disk } from './disk.ts';
import { fileNameOf, idOfFileName } from './file-names.ts';
import type { Generations } from './generations.ts';
import type { FolderListing, LogFolder } from './log-folder.ts';
import type { LogHeader } from './log-lines.ts';
import { SAVE_PLACE, SAVE_START, checkLine, type CheckedLine } from './log-scan.ts';

export type RunSummary =
  /** Leased, or deleted with all that it had. */
  | { readonly state: 'none'; readonly id: string }
  /** `gone`: only the history is left. */
  | {
      readonly state: 'whole' | 'gone';
      readonly id: string;
      /** Of the log. */
      readonly number: number;
      readonly saves: number;
      readonly header: CheckpointHeader;
    }
  | { readonly state: 'damaged'; readonly id: string; readonly error: SDKError };

/** A header line has at most 500 bytes, and most runs end in a line of less than 1,000. */
const HEAD_LENGTH = 1_024;
const TAIL_LENGTH = 8_192;
/** Read whole: that is one read too. */
const SMALL_LENGTH = 16_384;

/** `undefined` when there is no run, or it went meanwhile. @throws the file system's errors */
export async function readSummary(
  disk: Disk,
  folder: LogFolder,
  generations: Generations,
): Promise<RunSummary | undefined> {
  const listing = await listIfFolder(folder);
  const id = listing && (await ownIdOf(disk, folder, listing));
  if (listing === undefined || id === undefined) return undefined;
  try {
    const ends = await readEnds(disk, folder, generations, { id, listing });
    if (ends === undefined) return { state: 'none', id };
    const { header, number, saves, facts, last } = ends;
    const isGone = header.gone === true && saves === header.saves;
    return {
      state: isGone ? 'gone' : 'whole',
      ...{ id, number, saves },
      header: checkedHeader(headerFromEvent(facts, last), id),
    };
  } catch (error) {
    if (error instanceof SDKError) return { state: 'damaged', id, error };
    throw error;
  }
}

/** When a session was saved last. `undefined` when there is none, or nobody can tell. */
export async function readSavedAt(
  disk: Disk,
  folder: LogFolder,
  generations: Generations,
): Promise<LogEvent['t'] | undefined> {
  const listing = await listIfFolder(folder);
  const id = listing && (await ownIdOf(disk, folder, listing));
  if (listing === undefined || id === undefined) return undefined;
  try {
    return (await readEnds(disk, folder, generations, { id, listing }))?.last.t;
  } catch (error) {
    if (error instanceof SDKError) return undefined;
    throw error;
  }
}

/** The id of the run in this folder, as well as it can be told. `undefined` when it is none of ours. */
export async function ownIdOf(
  disk: Disk,
  folder: LogFolder,
  listing: FolderListing,
): Promise<string | undefined> {
  const plain = idOfFileName(folder.name);
  if (plain !== undefined)
    return isCheckpointId(plain) && fileNameOf(plain) === folder.name ? plain : undefined;
  const inside =
    (await idInLog(disk, folder.pathOf(listing.topLog, 'jsonl'))) ??
    (await idInLease(disk, folder.pathOf(listing.topLease, 'lease')));
  // Damaged: the name is all that is known of it.
  return inside !== undefined && fileNameOf(inside) === folder.name ? inside : folder.name;
}

async function idInLog(disk: Disk, path: string): Promise<string | undefined> {
  return (await readHead(disk, path))?.id;
}

async function idInLease(disk: Disk, path: string): Promise<string | undefined> {
  const bytes = await disk.readIfThere(path);
  try {
    return bytes && (decodeRecord(bytes) as LeaseRecord).id;
  } catch {
    return undefined;
  }
}

/** A file that somebody put there is no run. */
export async function listIfFolder(folder: LogFolder): Promise<FolderListing | undefined> {
  try {
    return await folder.list();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Never takes a save: what it was the log of is deleted. */
export async function isEmptyLog(disk: Disk, folder: LogFolder, number: number): Promise<boolean> {
  return (await readHead(disk, folder.pathOf(number, 'jsonl')))?.saves === 0;
}

interface LogEnds {
  readonly header: LogHeader;
  readonly number: number;
  readonly saves: number;
  readonly facts: NonNullable<LogEvent['f']>;
  readonly last: LogEvent;
}

/** `undefined` when there is no save. */
async function readEnds(
  disk: Disk,
  folder: LogFolder,
  generations: Generations,
  { id, listing }: { readonly id: string; readonly listing: FolderListing },
): Promise<LogEnds | undefined> {
  // A take-over is under way: only the whole log shows what counts.
  const isMoving = listing.topLease > listing.topLog;
  const ends = isMoving ? undefined : await readEndsOnly(disk, folder.pathOf(listing.topLog, 'jsonl'));
  if (ends !== undefined) return { ...ends, number: listing.topLog };
  const log = await generations.readNewest(folder, id, listing);
  const last = log?.events.at(-1);
  const facts = log?.events.findLast((event) => event.f !== undefined)?.f;
  const header = log?.file.scan.header;
  if (log === undefined || last === undefined || facts === undefined || header === undefined)
    return undefined;
  return { header, number: log.number, saves: log.events.length, facts, last };
}

/** A header is a checkpoint without its content, so it is checked, and an older one upgraded, as one with none. */
function checkedHeader(header: CheckpointHeader, id: string): CheckpointHeader {
  const checkpoint = parseCheckpoint(
    { ...header, messages: [], heldInput: [], inputIds: [], settledResults: [] },
    id,
  );
  return { ...checkpointHeader(checkpoint), messageCount: header.messageCount };
}

async function readHead(disk: Disk, path: string): Promise<LogHeader | undefined> {
  return disk.useIfThere(path, 'read', async (fd) => headerIn(await disk.readRange(fd, 0, HEAD_LENGTH)));
}

function headerIn(head: Buffer): LogHeader | undefined {
  const end = head.indexOf('\n');
  const line = end === -1 ? undefined : checkLine(head.subarray(0, end));
  return line === undefined ? undefined : (JSON.parse(`${line.text}}`) as LogHeader);
}

/** `undefined` when they do not tell: then the log has to be read whole. */
async function readEndsOnly(disk: Disk, path: string): Promise<Omit<LogEnds, 'number'> | undefined> {
  return disk.useIfThere(path, 'read', async (fd) => {
    const { size } = await disk.fs.stat(fd);
    if (size <= SMALL_LENGTH) return undefined;
    const header = headerIn(await disk.readRange(fd, 0, HEAD_LENGTH));
    const last = lastSave(await disk.readRange(fd, size - TAIL_LENGTH, size));
    if (header === undefined || last === undefined) return undefined;
    const { saves, factsAt, event } = last;
    const facts = event.f ?? factsIn(await disk.readRange(fd, factsAt, factsAt + TAIL_LENGTH));
    return facts === undefined ? undefined : { header, saves, facts, last: event };
  });
}

interface LastSave {
  readonly saves: number;
  readonly factsAt: number;
  /** Its content may stand in a line before it. */
  readonly event: LogEvent;
}

/** The last save in the end of a log, when it is sure that it counts. */
function lastSave(tail: Buffer): LastSave | undefined {
  if (tail.at(-1) !== NEWLINE) return undefined;
  const lines = wholeLines(tail);
  const last = lines.pop();
  if (last === undefined) return undefined;
  if (last.text.startsWith(SAVE_START)) {
    // A writer without a lease may have lost a race: then its line stands behind the one that won.
    const isSure = !last.text.includes(',"by":"') || lines.at(-1)?.sum === last.before;
    return isSure ? saveIn(last) : undefined;
  }
  const sealed = lines.at(-1);
  return last.text.startsWith('{"sealed":') && sealed?.sum === last.before ? saveIn(sealed) : undefined;
}

const NEWLINE = 10;

/** Those behind the first line break, up to one that is not what was written. */
function wholeLines(tail: Buffer): CheckedLine[] {
  const lines: CheckedLine[] = [];
  let start = tail.indexOf(NEWLINE) + 1;
  for (let end = tail.indexOf(NEWLINE, start); end !== -1; end = tail.indexOf(NEWLINE, start)) {
    if (end > start) {
      const line = checkLine(tail.subarray(start, end));
      if (line === undefined) return [];
      lines.push(line);
    }
    start = end + 1;
  }
  return lines;
}

function saveIn({ text }: CheckedLine): LastSave | undefined {
  const place = SAVE_PLACE.exec(text);
  if (place === null) return undefined;
  const event = JSON.parse(`{${text.slice(place[0].length)}}`) as LogEvent;
  return { saves: Number(place[1]), factsAt: Number(place[2]), event };
}

function factsIn(bytes: Buffer): LogEvent['f'] {
  const end = bytes.indexOf(NEWLINE);
  const line = end === -1 ? undefined : checkLine(bytes.subarray(0, end));
  return line === undefined ? undefined : saveIn(line)?.event.f;
}
