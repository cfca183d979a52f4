/** A record that stands alone in its file, with a checksum. */
import { crc32 } from 'node:zlib';

const START = '{"record":';
const CHECKSUM_START = ',"c":"';
/** With the digits and what closes the object. */
const END_LENGTH = CHECKSUM_START.length + 8 + 2;

/** One line, filled up with spaces to at least `length` bytes, so that it can be written over in one piece. */
export function encodeRecord(record: unknown, length = 0): Buffer {
  const text = `${START}${JSON.stringify(record)}`;
  const sum = crc32(text).toString(16).padStart(8, '0');
  const line = Buffer.from(`${text}${CHECKSUM_START}${sum}"}`);
  return Buffer.concat([line, Buffer.alloc(Math.max(0, length - line.length - 1), ' '), Buffer.from('\n')]);
}

/** @throws when the bytes are not what was written */
export function decodeRecord(bytes: Buffer): unknown {
  const text = bytes.toString('utf8').trimEnd();
  const body = text.slice(0, -END_LENGTH);
  const end = /^,"c":"([0-9a-f]{8})"\}$/.exec(text.slice(-END_LENGTH));
  if (!body.startsWith(START) || end === null) throw new Error('the file is not whole');
  if (crc32(body) !== Number.parseInt(end[1] ?? '', 16))
    throw new Error('the file does not match its checksum');
  return JSON.parse(body.slice(START.length));
}
