/** CRC-32 as zlib and gzip have it: finds damage by accident, not by intent. */

const encoder = new TextEncoder();
const table = Uint32Array.from({ length: 256 }, (_none, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = (sum & 1) === 0 ? sum >>> 1 : (sum >>> 1) ^ 0xedb88320;
  return sum;
});

/** Of the UTF-8 bytes of `text`, behind what `before` is the sum of. */
export function crc32(text: string, before = 0): number {
  let sum = ~before;
  for (const byte of encoder.encode(text)) sum = (sum >>> 8) ^ (table[(sum ^ byte) & 0xff] ?? 0);
  return ~sum >>> 0;
}
