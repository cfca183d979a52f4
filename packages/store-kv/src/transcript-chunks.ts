/** How a long transcript is cut: parts that never change again, and a rest that stays in the record itself. Pure. */
import { extendsList, jsonEqual, type JsonValue, type Message } from '@lousho/contract';
import { bytesOf } from './kv-namespace.ts';

/** What grows with a conversation, in a checkpoint and in a session. */
export interface Transcript {
  readonly messages: readonly Message[];
  readonly inputIds: readonly string[];
}
/** A part that is stored under a key of its own. The name is never used for another content. */
export interface Chunk {
  readonly name: string;
  readonly messageCount: number;
  readonly inputIdCount: number;
  /** When it was put, epoch milliseconds: KV counts its time to live from then. */
  readonly writtenAtMs: number;
}
export interface Cut {
  /** In the order of the transcript; those that were kept come first. */
  readonly chunks: readonly Chunk[];
  /** To put before the record names them. */
  readonly added: readonly { readonly chunk: Chunk; readonly content: Transcript }[];
  /** What the record holds itself. */
  readonly rest: Transcript;
}
export interface Naming {
  readonly nowMs: number;
  readonly newTag: () => string;
}

/** Up to here a transcript stays whole in its record. */
export const WHOLE_BYTES = 64 * 1024;
/** A longer one is cut into parts of about this size. A save puts half of it on average, and a load of 1 MB takes 33 gets. */
export const CHUNK_BYTES = 32 * 1024;

/** @param kept parts that are stored already, and that `transcript` begins with */
export function cutTranscript(transcript: Transcript, kept: readonly Chunk[], naming: Naming): Cut {
  const start = extentOf(kept);
  const messages = transcript.messages.slice(start.messages);
  let inputIds = transcript.inputIds.slice(start.inputIds);
  const sizes = messages.map((message) => bytesOf(JSON.stringify(message)));
  let restBytes = sum(sizes) + bytesOf(JSON.stringify(inputIds));
  const added: { chunk: Chunk; content: Transcript }[] = [];
  let first = 0;
  if (kept.length > 0 || restBytes > WHOLE_BYTES) {
    while (restBytes >= CHUNK_BYTES && first < messages.length) {
      const count = countThatFills(sizes, first);
      const content = { messages: messages.slice(first, first + count), inputIds };
      const name = `${start.messages + first}.${naming.newTag()}`;
      const chunk: Chunk = {
        ...{ name, messageCount: count, inputIdCount: inputIds.length },
        writtenAtMs: naming.nowMs,
      };
      added.push({ chunk, content });
      // The first part takes all ids: they are few, and none is left to be put again and again.
      inputIds = [];
      first += count;
      restBytes = sum(sizes.slice(first));
    }
  }
  return {
    chunks: [...kept, ...added.map(({ chunk }) => chunk)],
    added,
    rest: { messages: messages.slice(first), inputIds },
  };
}

/** The parts, from the first on, whose content the new transcript begins with too. */
export function keptChunks(chunks: readonly Chunk[], before: Transcript, next: Transcript): readonly Chunk[] {
  if (chunks.length === 0) return [];
  const messages = commonLength(before.messages, next.messages);
  const inputIds = commonLength(before.inputIds, next.inputIds);
  const isContained = (count: number): boolean => {
    const end = extentOf(chunks.slice(0, count));
    return end.messages <= messages && end.inputIds <= inputIds;
  };
  let count = chunks.length;
  while (!isContained(count)) count -= 1;
  return chunks.slice(0, count);
}

/** How much of a transcript the parts hold. */
export function extentOf(chunks: readonly Chunk[]): { readonly messages: number; readonly inputIds: number } {
  return {
    messages: sum(chunks.map(({ messageCount }) => messageCount)),
    inputIds: sum(chunks.map(({ inputIdCount }) => inputIdCount)),
  };
}

/** The parts of a list that both begin with: by origin where that is known, else by content. */
function commonLength<Item extends Message | string>(before: readonly Item[], next: readonly Item[]): number {
  if (extendsList(before, next)) return before.length;
  const most = Math.min(before.length, next.length);
  let length = 0;
  while (length < most && isEqual(before[length], next[length])) length += 1;
  return length;
}

function isEqual(a: Message | string | undefined, b: Message | string | undefined): boolean {
  return a === b || jsonEqual(a as JsonValue | undefined, b as JsonValue | undefined);
}

/** So many messages that a part is full; at least one, however large. */
function countThatFills(sizes: readonly number[], first: number): number {
  let bytes = 0;
  let count = 0;
  while (bytes < CHUNK_BYTES && first + count < sizes.length) {
    bytes += sizes[first + count] ?? 0;
    count += 1;
  }
  return count;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
