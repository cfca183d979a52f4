/**
 * A store as text: one JSON object a line. Pure, both ways.
 *
 * Each line ends with a CRC-32 over itself and all lines before it, so that one which was changed, lost, exchanged or cut off is noticed.
 * A run is a line that names it and one line a save, as the events of a log: each holds what its save adds.
 */
import {
  ConfigurationError,
  SDKError,
  type ApprovalRecord,
  type LogEvent,
  type SessionRecord,
} from '@lousho/contract';
import { crc32 } from './crc32.ts';

export const EXPORT_FORMAT = 1;

export type ExportLine =
  | { readonly lousho: 'export'; readonly format: number }
  /** Its saves stand in the next so many lines, oldest first. */
  | { readonly run: string; readonly saves: number }
  | { readonly save: LogEvent }
  | { readonly approval: ApprovalRecord }
  | { readonly session: SessionRecord }
  /** The last line: without it the text was cut off. */
  | { readonly end: ExportCounts };

export interface ExportCounts {
  readonly runs: number;
  readonly saves: number;
  readonly approvals: number;
  readonly sessions: number;
}

const CHECKSUM = /,"c":"([0-9a-f]{8})"\}$/;

export class LineWriter {
  #sum = 0;

  /** With its line feed. */
  line(line: ExportLine): string {
    const text = JSON.stringify(line);
    this.#sum = crc32(text, this.#sum);
    return `${text.slice(0, -1)},"c":"${hex(this.#sum)}"}\n`;
  }
}

export interface ReadLine {
  /** From 1. */
  readonly number: number;
  readonly line: ExportLine;
}

/**
 * The lines of a text that comes in pieces of any length, each checked.
 * @throws LOUSHO_EXPORT_DAMAGED, LOUSHO_CONFIG_INVALID (no export), LOUSHO_STORE_VERSION_UNSUPPORTED
 */
export async function* readLines(
  pieces: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<ReadLine, void> {
  let [number, sum] = [0, 0];
  for await (const text of splitLines(pieces)) {
    number += 1;
    const found = CHECKSUM.exec(text);
    const body = found === null ? text : `${text.slice(0, found.index)}}`;
    if (number === 1) requireExport(body);
    sum = crc32(body, sum);
    if (found?.[1] !== hex(sum))
      throw damagedAt(
        number,
        found === null ? 'it is cut off, or no line of an export' : 'its checksum does not fit',
      );
    yield { number, line: JSON.parse(body) as ExportLine };
  }
  if (number === 0) throw noExport();
}

export function damagedAt(line: number, reason: string, cause?: unknown): SDKError {
  return new SDKError('LOUSHO_EXPORT_DAMAGED', { line, reason }, { cause });
}

async function* splitLines(pieces: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string, void> {
  let open: string[] = [];
  for await (const piece of pieces) {
    const [first = '', ...others] = piece.split('\n');
    open.push(first);
    for (const next of others) {
      yield withoutReturn(open.join(''));
      open = [next];
    }
  }
  const rest = open.join('');
  if (rest !== '') yield withoutReturn(rest);
}

/** A text that went through another system may have its line ends. */
function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

function requireExport(body: string): void {
  const format = /^\{"lousho":"export","format":(\d{1,9})\}$/.exec(body)?.[1];
  if (format === undefined) throw noExport();
  if (Number(format) > EXPORT_FORMAT)
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', {
      found: Number(format),
      supported: EXPORT_FORMAT,
    });
}

function noExport(): ConfigurationError {
  return new ConfigurationError('LOUSHO_CONFIG_INVALID', {
    option: 'text',
    want: 'the text that exportStore gave',
  });
}

function hex(sum: number): string {
  return sum.toString(16).padStart(8, '0');
}
