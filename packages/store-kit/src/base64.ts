/** Bytes as text, in the one form that each has: a text that differs in any character is refused or means other bytes. */

export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  // In chunks: `String.fromCharCode` takes as many arguments as the stack holds.
  for (let start = 0; start < bytes.length; start += 8_192)
    binary += String.fromCharCode(...bytes.subarray(start, start + 8_192));
  return btoa(binary);
}

/** `undefined` for a text that `toBase64` does not give. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  // The last characters have bits that mean nothing; `atob` takes any for them.
  const end = text.slice(-4);
  if (btoa(atob(end)) !== end) return undefined;
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}
