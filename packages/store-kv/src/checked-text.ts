/** A stored value as text that a person can read, with a checksum, so that damage is never taken for data. */
import { ConfigurationError } from '@lousho/contract';

/** Format of the values that this release writes. */
const FORMAT = 1;
/** Ahead of the fields, which the checksum is of. */
const START = /^\{"format":(\d{1,9}),"sum":"([0-9a-f]{8})",/;

/** `fields` as JSON, never empty. */
export function seal(fields: object): string {
  const body = JSON.stringify(fields).slice(1);
  return `{"format":${FORMAT},"sum":"${checksumOf(body)}",${body}`;
}

export type Opened =
  | { readonly kind: 'sealed'; readonly fields: unknown }
  /** Written before values had a checksum: the record itself. */
  | { readonly kind: 'plain'; readonly value: unknown };

/** @throws LOUSHO_STORE_VERSION_UNSUPPORTED, and any other error when the text is not what was written */
export function unseal(text: string): Opened {
  const start = START.exec(text);
  if (start === null) return { kind: 'plain', value: JSON.parse(text) };
  const format = Number(start[1]);
  if (format > FORMAT)
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', { found: format, supported: FORMAT });
  const body = text.slice(start[0].length);
  if (checksumOf(body) !== start[2]) throw new Error('the value does not match its checksum');
  return { kind: 'sealed', fields: JSON.parse(`{${body}`) };
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}

const TABLE = Uint32Array.from({ length: 256 }, (_none, byte) => {
  let entry = byte;
  for (let bit = 0; bit < 8; bit += 1) entry = entry & 1 ? (entry >>> 1) ^ 0xedb88320 : entry >>> 1;
  return entry;
});

/** CRC-32 over the UTF-16 units, low byte first: no runtime of a Worker has one of its own. */
export function crc32(text: string): number {
  let sum = 0xffffffff;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    sum = (TABLE[(sum ^ unit) & 0xff] as number) ^ (sum >>> 8);
    sum = (TABLE[(sum ^ (unit >>> 8)) & 0xff] as number) ^ (sum >>> 8);
  }
  return (sum ^ 0xffffffff) >>> 0;
}
