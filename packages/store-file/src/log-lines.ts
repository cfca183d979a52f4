/**
 * How a log is written: a header, then one save a line, each a JSON object that ends in two checksums, that of the line before it and its
 * own. So a line counts only behind the one that it was written for, and a log in which one is missing or changed shows it.
 */
import { crc32 } from 'node:zlib';
import { SDKError, type LogEvent } from '@lousho/contract';

/** Of the files of this release. */
export const FILE_FORMAT = 1;

export interface LogHeader {
  readonly format: number;
  readonly kind: 'run' | 'session';
  readonly id: string;
  readonly generation: number;
  /** It began with so many saves, written before anybody could see it. With none it never takes one. */
  readonly saves: number;
  /** The checkpoint was deleted: those saves are history. */
  readonly gone?: true;
}

/** Where the next line has to fit. */
export interface ChainEnd {
  /** Saves so far. */
  readonly count: number;
  /** Checksum of the last line that counts. */
  readonly sum: number;
  /** Offset of the line with the newest facts of the run. */
  readonly factsAt: number;
}

export interface EncodedLine {
  readonly bytes: Buffer;
  readonly sum: number;
  readonly factsAt: number;
}

/** `,"c":"` + 8 + 8 digits + `"}` */
export const CHECKSUM_LENGTH = 24;
export const CHECKSUM_START = ',"c":"';
/** Of a seal that stands behind damage: nothing can be chained to that. */
export const NO_SUM = 0;

/** A longer save has its content in a line before its own, so that a list of runs need not read it. */
const LONG_CONTENT = 4_096;
/** Longer texts do not fit into one string of every supported Node. */
const MAX_SAVE_LENGTH = 256 * 1024 * 1024;

export function encodeHeader(header: LogHeader): EncodedLine {
  return encodeLine(JSON.stringify(header), NO_SUM, 0);
}

/**
 * One save. `at` is where its bytes will begin. `writer` tells apart what several writers without a lease save at one moment.
 * @throws LOUSHO_CHECKPOINT_TOO_LARGE
 */
export function encodeSave(
  event: LogEvent,
  end: ChainEnd,
  { id, at, writer }: { readonly id: string; readonly at: number; readonly writer: string | undefined },
): EncodedLine {
  const { m, r, R, h, i, I, w, ...head } = event;
  const content = membersOf(JSON.stringify({ m, r, R, h, i, I, w }));
  if (content.length > MAX_SAVE_LENGTH)
    throw new SDKError('LOUSHO_CHECKPOINT_TOO_LARGE', {
      id,
      bytes: content.length,
      maxBytes: MAX_SAVE_LENGTH,
    });
  const number = end.count + 1;
  const isLong = content.length > LONG_CONTENT;
  const contentLine = isLong ? encodeLine(`{"d":${number},${content}}`, end.sum, 0) : undefined;
  const lineAt = at + (contentLine?.bytes.length ?? 0);
  const factsAt = event.f === undefined ? end.factsAt : lineAt;
  const place = `{"q":${number},"@":${factsAt},${writer === undefined ? '' : `"by":"${writer}",`}`;
  const inLine = isLong || content === '' ? '' : `,${content}`;
  const text = `${place}${membersOf(JSON.stringify(head))}${inLine}}`;
  const line = encodeLine(text, contentLine?.sum ?? end.sum, factsAt);
  if (contentLine === undefined) return line;
  return { ...line, bytes: Buffer.concat([contentLine.bytes, line.bytes]) };
}

/** Nothing behind it counts. */
export function encodeSeal(end: ChainEnd): EncodedLine {
  return encodeLine(`{"sealed":${end.count}}`, end.sum, end.factsAt);
}

/** The same behind damage. */
export function encodeForcedSeal(): EncodedLine {
  return encodeLine('{"sealed":-1}', NO_SUM, 0);
}

function encodeLine(object: string, before: number, factsAt: number): EncodedLine {
  const bytes = Buffer.from(`${object.slice(0, -1)}${CHECKSUM_START}${hex(before)}00000000"}\n`);
  const own = crc32(bytes.subarray(0, bytes.length - CHECKSUM_LENGTH - 1), before);
  bytes.write(hex(own), bytes.length - 11, 'latin1');
  return { bytes, sum: own, factsAt };
}

function hex(sum: number): string {
  return sum.toString(16).padStart(8, '0');
}

/** What stands between the braces. */
function membersOf(object: string): string {
  return object.slice(1, -1);
}
