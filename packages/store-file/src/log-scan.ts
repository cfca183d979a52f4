/** Reading a log from its first byte on: which saves count, where the next one fits, and whether anything is damaged. */
import { crc32 } from 'node:zlib';
import { CHECKSUM_LENGTH, CHECKSUM_START, NO_SUM, type ChainEnd, type LogHeader } from './log-lines.ts';

/** A save that counts. */
export interface ScannedSave {
  readonly sum: number;
  readonly length: number;
  /** The event as JSON. */
  readonly json: string;
}

/** The content of a long save, waiting for its line. */
interface Content {
  readonly number: number;
  readonly sum: number;
  readonly members: string;
  readonly length: number;
}

const NEWLINE = 10;
export const SAVE_START = '{"q":';
/** Number of the save, offset of the facts, then what the save says. */
export const SAVE_PLACE = /^\{"q":(\d+),"@":(\d+),(?:"by":"[^"]*",)?/;
const CONTENT_PLACE = /^\{"d":(\d+),/;
const SEAL = /^\{"sealed":(-?\d+)$/;

export class LogScan implements ChainEnd {
  header: LogHeader | undefined;
  count = 0;
  sum = NO_SUM;
  /** Checksum of the last save that counts. */
  lastSave = NO_SUM;
  factsAt = 0;
  isSealed = false;
  /** Bytes seen. */
  size = 0;
  /** End of the last whole line. */
  linesEnd = 0;
  #content: Content | undefined;
  /** A line behind the last save cannot be read. */
  #isSuspect = false;
  #end: Buffer = Buffer.alloc(0);
  #damage: string | undefined;

  /** Takes the file's bytes from `linesEnd` on, and gives the saves in them. */
  feed(bytes: Buffer): ScannedSave[] {
    const saves: ScannedSave[] = [];
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      if (end > start && !this.isSealed) this.#readLine(bytes.subarray(start, end), saves);
      start = end + 1;
    }
    this.linesEnd += start;
    // A copy, so that the rest of the bytes can go.
    this.#end = Buffer.from(bytes.subarray(start));
    this.size = this.linesEnd + this.#end.length;
    return saves;
  }

  /** A line that we wrote ourselves directly behind what was seen. */
  noteSave(line: ChainEnd, length: number): void {
    this.count = line.count;
    this.sum = line.sum;
    this.lastSave = line.sum;
    this.factsAt = line.factsAt;
    this.size += length;
    this.linesEnd = this.size;
    this.#content = undefined;
    this.#isSuspect = false;
    this.#end = Buffer.alloc(0);
  }

  /** There is history, but no checkpoint. */
  get isGone(): boolean {
    return this.header?.gone === true && this.count === this.header.saves;
  }

  /** The last write was cut off, and nobody was told that it was stored. */
  get hasTornEnd(): boolean {
    return this.#end.length > 0;
  }

  /** What is wrong with the log, now that all of it was seen. */
  get damage(): string | undefined {
    if (this.header === undefined) return 'its first line is not what was written';
    if (this.#damage !== undefined) return this.#damage;
    if (this.#isSuspect) return 'a line does not match its checksum';
    if (this.count < this.header.saves) return `save ${this.count + 1} is missing`;
    if (!this.isSealed && this.#end.length > 1 && checkLine(this.#end.subarray(0, -1)) !== undefined)
      return 'its last line does not end as it was written';
    return undefined;
  }

  #readLine(bytes: Buffer, saves: ScannedSave[]): void {
    const line = checkLine(bytes);
    if (this.header === undefined) {
      if (line === undefined || line.before !== NO_SUM || !line.text.startsWith('{"format":'))
        this.#damage ??= 'its first line is not what was written';
      else {
        this.header = JSON.parse(`${line.text}}`) as LogHeader;
        this.sum = line.sum;
        this.isSealed = this.header.saves === 0;
      }
      return;
    }
    // A power cut leaves zeros where a write did not arrive; nobody was told that it is stored.
    if (line === undefined) this.#isSuspect ||= !bytes.includes(0);
    else if (line.text.startsWith(SAVE_START)) this.#readSave(line, bytes.length + 1, saves);
    else if (line.text.startsWith('{"d":')) this.#readContent(line, bytes.length + 1);
    else this.#readSeal(line);
  }

  #readContent({ before, sum, text }: CheckedLine, length: number): void {
    const place = CONTENT_PLACE.exec(text);
    if (place === null || before !== this.sum) return;
    this.#content = { number: Number(place[1]), sum, members: text.slice(place[0].length), length };
  }

  #readSave({ before, sum, text }: CheckedLine, length: number, saves: ScannedSave[]): void {
    const place = SAVE_PLACE.exec(text);
    if (place === null) {
      this.#damage ??= 'a line is not what was written';
      return;
    }
    const number = Number(place[1]);
    const content =
      this.#content?.sum === before && this.#content.number === number ? this.#content : undefined;
    if (number !== this.count + 1 || (content === undefined && before !== this.sum)) {
      // Another writer was faster: this one has noticed and has written its save again, or was not told that it is stored.
      if (number <= this.count) return;
      this.#damage ??= `save ${this.count + 1} is missing`;
      return;
    }
    this.count = number;
    this.sum = sum;
    this.lastSave = sum;
    this.factsAt = Number(place[2]);
    this.#content = undefined;
    // It stood in front of a save that was written for the one before: nobody was told that it is stored.
    this.#isSuspect = false;
    const head = `{${text.slice(place[0].length)}`;
    saves.push({
      sum,
      length: length + (content?.length ?? 0),
      json: content === undefined ? `${head}}` : `${head},${content.members}}`,
    });
  }

  #readSeal({ before, sum, text }: CheckedLine): void {
    const number = Number(SEAL.exec(text)?.[1] ?? Infinity);
    if (number === -1) {
      this.isSealed = true;
      this.#damage ??= 'it was damaged when it was replaced';
      return;
    }
    // A save was faster than the seal, which was then written again.
    if (number < this.count) return;
    if (number > this.count || before !== this.sum) {
      this.#damage ??= `save ${this.count + 1} is missing`;
      return;
    }
    this.sum = sum;
    this.isSealed = true;
    this.#isSuspect = false;
  }
}

export interface CheckedLine {
  /** Checksum of the line that it was written for. */
  readonly before: number;
  readonly sum: number;
  /** Without the checksums and the brace behind them. */
  readonly text: string;
}

/** `undefined` when the line is not what was written. */
export function checkLine(bytes: Buffer): CheckedLine | undefined {
  const textLength = bytes.length - CHECKSUM_LENGTH;
  if (textLength < 1) return undefined;
  const end = bytes.toString('latin1', textLength);
  const sums = /^([0-9a-f]{8})([0-9a-f]{8})"\}$/.exec(end.slice(CHECKSUM_START.length));
  if (sums === null || !end.startsWith(CHECKSUM_START)) return undefined;
  const [before, sum] = [Number.parseInt(sums[1] ?? '', 16), Number.parseInt(sums[2] ?? '', 16)];
  if (crc32(bytes.subarray(0, textLength), before) !== sum) return undefined;
  return { before, sum, text: bytes.toString('utf8', 0, textLength) };
}
