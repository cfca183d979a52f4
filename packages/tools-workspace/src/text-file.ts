/** Bytes as text, when they are text. */
import { WorkspaceError } from './workspace-error.ts';

/** A byte order mark stays part of the text, so that writing it back changes nothing. Gives `undefined` for what is no UTF-8 text. */
export function textOfBytes(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** @throws WorkspaceError NOT_TEXT */
export function requireText(bytes: Uint8Array, path: string): string {
  const text = textOfBytes(bytes);
  if (text !== undefined) return text;
  const sentence = `${JSON.stringify(path)} is not UTF-8 text, and only text can be read or edited. Use a command that knows its format.`;
  throw new WorkspaceError('NOT_TEXT', path, sentence);
}

/** At most so many bytes of UTF-8, and no half character. */
export function cutBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  // A byte 10xxxxxx goes on with a character that began before it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}
