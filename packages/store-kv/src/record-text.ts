/** A record with a transcript as the text that is stored, and back. */
import { SDKError, type Message } from '@lousho/contract';
import { seal, unseal } from './checked-text.ts';
import { bytesOf, MAX_VALUE_BYTES } from './kv-namespace.ts';
import type { Chunk, Transcript } from './transcript-chunks.ts';

/** A part that the record does not name any more. */
export interface DeadChunk {
  readonly name: string;
  /** The save that left it out: history entries of earlier ones may name it. */
  readonly number: number;
  /** Epoch milliseconds. */
  readonly atMs: number;
}

/** As the record has it, its transcript not put together. */
export interface Head<Value> {
  readonly number: number;
  readonly chunks: readonly Chunk[];
  readonly dead: readonly DeadChunk[];
  /** With the newest messages alone when there are parts. */
  readonly value: Value;
}
/** In this order: every save writes one for each part. */
type PackedChunk = readonly [name: string, messageCount: number, inputIdCount: number, writtenAtMs: number];
type PackedDead = readonly [name: string, number: number, atMs: number];

export function recordText(
  record: 'checkpoint' | 'session',
  { number, chunks, dead, value }: Head<object>,
): string {
  return seal({
    number,
    ...(chunks.length === 0 ? {} : { chunks: chunks.map(packChunk) }),
    ...(dead.length === 0 ? {} : { dead: dead.map(packDead) }),
    [record]: value,
  });
}

/** @throws LOUSHO_STORE_VERSION_UNSUPPORTED, and any other error when the text is not what was written */
export function headIn(text: string, record: 'checkpoint' | 'session'): Head<unknown> {
  const opened = unseal(text);
  if (opened.kind === 'plain') return { number: 0, chunks: [], dead: [], value: opened.value };
  const {
    number,
    chunks = [],
    dead = [],
    [record]: value,
  } = opened.fields as {
    readonly number: number;
    readonly chunks?: readonly PackedChunk[];
    readonly dead?: readonly PackedDead[];
    readonly checkpoint?: unknown;
    readonly session?: unknown;
  };
  return { number, chunks: chunks.map(unpackChunk), dead: dead.map(unpackDead), value };
}

export function partText(content: Transcript): string {
  return seal(content);
}

/** @throws when the text is not what was written */
export function partIn(text: string, { messageCount, inputIdCount }: Chunk): Transcript {
  const opened = unseal(text);
  if (opened.kind === 'plain') throw new Error('it was not written by this store');
  const content = opened.fields as Transcript;
  if (content.messages.length === messageCount && content.inputIds.length === inputIdCount) return content;
  throw new Error('it does not hold as much as was written');
}

export function joined(contents: readonly Transcript[], rest: Transcript): Transcript {
  const messages: Message[] = [];
  const inputIds: string[] = [];
  for (const content of [...contents, rest]) {
    messages.push(...content.messages);
    inputIds.push(...content.inputIds);
  }
  return { messages, inputIds };
}

export function refuseTooLarge(id: string, text: string): void {
  // A unit takes three bytes at most: only a text that may be too long is measured.
  const bytes = text.length * 3 <= MAX_VALUE_BYTES ? 0 : bytesOf(text);
  if (bytes > MAX_VALUE_BYTES)
    throw new SDKError('LOUSHO_CHECKPOINT_TOO_LARGE', { id, bytes, maxBytes: MAX_VALUE_BYTES });
}

function packChunk({ name, messageCount, inputIdCount, writtenAtMs }: Chunk): PackedChunk {
  return [name, messageCount, inputIdCount, writtenAtMs];
}

function unpackChunk([name, messageCount, inputIdCount, writtenAtMs]: PackedChunk): Chunk {
  return { name, messageCount, inputIdCount, writtenAtMs };
}

function packDead({ name, number, atMs }: DeadChunk): PackedDead {
  return [name, number, atMs];
}

function unpackDead([name, number, atMs]: PackedDead): DeadChunk {
  return { name, number, atMs };
}
