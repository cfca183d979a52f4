/** The first and the last bytes of an output of any length: how it began, and how it ended. */

export interface KeptOutput {
  add(bytes: Buffer): void;
  result(): { readonly output: string; readonly omittedBytes?: number };
}

export function keepEnds(maxBytes: number): KeptOutput {
  const maxHead = Math.ceil(maxBytes / 2);
  const maxTail = maxBytes - maxHead;
  const head: Buffer[] = [];
  let headBytes = 0;
  let tail = Buffer.alloc(0);
  let omittedBytes = 0;

  return {
    add(bytes) {
      const toHead = bytes.subarray(0, maxHead - headBytes);
      if (toHead.length > 0) head.push(Buffer.from(toHead));
      headBytes += toHead.length;
      const joined = Buffer.concat([tail, bytes.subarray(toHead.length)]);
      const over = Math.max(0, joined.length - maxTail);
      omittedBytes += over;
      tail = Buffer.from(joined.subarray(over));
    },
    result() {
      const first = Buffer.concat(head);
      if (omittedBytes === 0) return { output: Buffer.concat([first, tail]).toString() };
      return {
        output: `${first.toString()}\n[... ${omittedBytes} bytes left out ...]\n${tail.toString()}`,
        omittedBytes,
      };
    },
  };
}
