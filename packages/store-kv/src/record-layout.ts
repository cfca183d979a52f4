/** How a record with a transcript is put: what goes into the record, which parts go ahead of it, and which are not needed any more. */
import type { Clock } from '@lousho/contract';
import type { KVClient } from './kv-client.ts';
import { chunkKey } from './kv-keys.ts';
import { partText, recordText, refuseTooLarge, type DeadChunk } from './record-text.ts';
import { cutTranscript, extentOf, keptChunks, type Chunk, type Transcript } from './transcript-chunks.ts';

/** What the next save builds on. */
export interface Base {
  /** Number of the last save. */
  readonly number: number;
  /** Parts that the stored record names. */
  readonly named: readonly Chunk[];
  /** The first of them, whose content is that of `transcript`. */
  readonly known: readonly Chunk[];
  readonly transcript: Transcript;
  readonly dead: readonly DeadChunk[];
}

/** A save that is ready to be put. */
export interface Layout {
  readonly text: string;
  /** Parts to put first. */
  readonly parts: readonly KeyedText[];
  /** Keys of parts that nobody can need any more, to remove last. */
  readonly due: readonly string[];
  /** What the save after it builds on. */
  readonly base: Base;
}
interface KeyedText {
  readonly key: string;
  readonly text: string;
}

export interface LayoutDeps {
  readonly record: 'checkpoint' | 'session';
  readonly client: KVClient;
  readonly clock: Clock;
  readonly ttlSeconds: number | undefined;
  readonly keyOf: (id: string) => string;
}
export interface SaveToLayOut {
  readonly id: string;
  readonly value: Transcript;
  readonly base: Base;
  /** Of the saves that the history keeps. */
  readonly oldestNumber: number;
}

/** A reader at another location may see a record that is a minute old, and more when it is slow to follow its names. */
const DEAD_KEPT_MS = 10 * 60_000;

/** @throws synchronously LOUSHO_CHECKPOINT_TOO_LARGE */
export function layOut(deps: LayoutDeps, { id, value, base, oldestNumber }: SaveToLayOut): Layout {
  const { record, client, clock, keyOf } = deps;
  const nowMs = clock.wallMs();
  const number = base.number + 1;
  const kept = refresh(keptChunks(base.known, base.transcript, value), value, nowMs, deps.ttlSeconds);
  const cut = cutTranscript(value, kept.chunks, { nowMs, newTag: () => client.newTag() });
  const names = new Set(cut.chunks.map(({ name }) => name));
  const left = base.named.filter(({ name }) => !names.has(name));
  const dead = [...base.dead, ...left.map(({ name }): DeadChunk => ({ name, number, atMs: nowMs }))];
  const isDue = (one: DeadChunk): boolean => one.number <= oldestNumber && nowMs - one.atMs >= DEAD_KEPT_MS;
  const waiting = dead.filter((one) => !isDue(one));
  const text = recordText(record, {
    ...{ number, chunks: cut.chunks, dead: waiting },
    value: cut.chunks.length === 0 ? value : { ...value, ...cut.rest },
  });
  const parts = [...kept.again, ...cut.added].map(({ chunk, content }) => {
    return { key: chunkKey(keyOf(id), chunk.name), text: partText(content) };
  });
  for (const one of [{ text }, ...parts]) refuseTooLarge(id, one.text);
  return {
    ...{ text, parts },
    due: dead.filter(isDue).map(({ name }) => chunkKey(keyOf(id), name)),
    base: { number, named: cut.chunks, known: cut.chunks, transcript: value, dead: waiting },
  };
}

export function contentOf(chunks: readonly Chunk[], index: number, transcript: Transcript): Transcript {
  const from = extentOf(chunks.slice(0, index));
  const to = extentOf(chunks.slice(0, index + 1));
  return {
    messages: transcript.messages.slice(from.messages, to.messages),
    inputIds: transcript.inputIds.slice(from.inputIds, to.inputIds),
  };
}

/**
 * With a time to live, a part that was put once would go long before the record, which every save puts again. A part lives twice as
 * long, and is put again by the first save that finds it older than once: so it always outlives the record that names it.
 */
function refresh(
  chunks: readonly Chunk[],
  transcript: Transcript,
  nowMs: number,
  ttlSeconds: number | undefined,
): Refreshed {
  const again: { chunk: Chunk; content: Transcript }[] = [];
  if (ttlSeconds === undefined) return { chunks, again };
  const refreshed = chunks.map((chunk, index) => {
    if (nowMs - chunk.writtenAtMs <= ttlSeconds * 1_000) return chunk;
    const renewed = { ...chunk, writtenAtMs: nowMs };
    again.push({ chunk: renewed, content: contentOf(chunks, index, transcript) });
    return renewed;
  });
  return { chunks: refreshed, again };
}

interface Refreshed {
  readonly chunks: readonly Chunk[];
  readonly again: readonly { readonly chunk: Chunk; readonly content: Transcript }[];
}
