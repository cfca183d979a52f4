/**
 * Records with a transcript, checkpoints and sessions alike: how they are read, laid out for the next save, and remembered meanwhile.
 *
 * A short transcript is in the record. Of a long one the record holds the header, the names of the parts that are stored apart, and the
 * newest messages. A part is put before the record that names it, under a name that is never used for anything else. So one put of one
 * key makes a save visible, whole, whatever the length of the transcript; and a reader whose view of the record is old still finds the
 * parts that it names.
 */
import { deepFreeze, SDKError, type Clock } from '@lousho/contract';
import { inSlices, type KVClient } from './kv-client.ts';
import { damageError, isDamage, KVCallError, type DamagedRecord } from './kv-errors.ts';
import { chunkKey } from './kv-keys.ts';
import {
  headIn,
  joined,
  partIn,
  partText,
  recordText,
  refuseTooLarge,
  type DeadChunk,
  type Head,
} from './record-text.ts';
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

export interface RecordDeps<Value> {
  readonly record: 'checkpoint' | 'session';
  readonly client: KVClient;
  readonly clock: Clock;
  readonly ttlSeconds: number | undefined;
  readonly keyOf: (id: string) => string;
  readonly parse: (value: unknown, id: string) => Value;
}

const NOTHING: Transcript = deepFreeze({ messages: [], inputIds: [] });
/** A reader at another location may see a record that is a minute old, and more when it is slow to follow its names. */
const DEAD_KEPT_MS = 10 * 60_000;
/** Runs that execute in one handle at one time, with room. */
const MAX_KNOWN = 100;

export class TranscriptRecords<Value extends Transcript> {
  readonly #deps: RecordDeps<Value>;
  /** What was written or loaded last, the oldest first. */
  readonly #known = new Map<string, Base>();

  constructor(deps: RecordDeps<Value>) {
    this.#deps = deps;
  }

  /** @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_VERSION_UNSUPPORTED */
  async load(id: string): Promise<Value | undefined> {
    const before = this.#known.get(id);
    const opened = await this.#find(id);
    // A save that was made meanwhile knows better.
    if (opened !== undefined && this.#known.get(id) === before) this.remember(id, opened.base);
    return opened?.value;
  }

  /** `load` for one that looks at many: what executes keeps its place in memory. */
  async look(id: string): Promise<Value | undefined> {
    return (await this.#find(id))?.value;
  }

  /** A record's text as a value. @param record what it is called when it is damaged */
  async read(id: string, text: string, record: DamagedRecord, parts?: PartCache): Promise<Value> {
    return (await this.#open(id, text, record, parts)).value;
  }

  /** What the next save of this id builds on. One get, or none where nothing stored can matter. */
  async baseOf(id: string): Promise<Base> {
    const known = this.#known.get(id);
    // A whole record is replaced whole: what is stored makes no difference.
    if (known !== undefined && known.named.length === 0) return known;
    const head = await this.#headToReplace(id);
    if (head === undefined)
      return { number: known?.number ?? 0, named: [], known: [], transcript: NOTHING, dead: [] };
    const { number, chunks, dead } = head;
    // What both we and the stored record name is still there. After a delete by another handle that is nothing.
    const shared = sharedStart(known?.known ?? [], chunks);
    return { number, named: chunks, known: shared, transcript: known?.transcript ?? NOTHING, dead };
  }

  /** The record without the parts of its transcript. One get. @throws as `load` does */
  async headOf(id: string): Promise<Head<Value> | undefined> {
    const { client, keyOf, record, parse } = this.#deps;
    const text = await client.get(keyOf(id));
    if (text === undefined) return undefined;
    try {
      const head = headIn(text, record);
      return { ...head, value: parse(head.value, id) };
    } catch (error) {
      throw error instanceof SDKError ? error : damageError(error, record, id);
    }
  }

  /** @param oldestNumber of the saves that the history keeps. @throws LOUSHO_CHECKPOINT_TOO_LARGE */
  layOut(id: string, value: Value, base: Base, oldestNumber: number): Layout {
    const { record, client, clock, keyOf } = this.#deps;
    const nowMs = clock.wallMs();
    const number = base.number + 1;
    const kept = this.#refreshed(keptChunks(base.known, base.transcript, value), value, nowMs);
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

  async putParts({ parts }: Layout): Promise<void> {
    const { client, clock, ttlSeconds } = this.#deps;
    const metadata = { t: clock.wallMs() };
    // Twice as long as the record: parts are not put again with each save, see `#refreshed`.
    const options = { metadata, ttlSeconds: ttlSeconds === undefined ? undefined : 2 * ttlSeconds };
    await inSlices(parts, ({ key, text }) => client.put(key, text, options));
  }

  remember(id: string, base: Base): void {
    this.#known.delete(id);
    this.#known.set(id, base);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  /** A record that is damaged is replaced by the next save. One of a newer format stays as it is. */
  async #headToReplace(id: string): Promise<Head<Value> | undefined> {
    try {
      return await this.headOf(id);
    } catch (error) {
      if (isDamage(error)) return undefined;
      throw error;
    }
  }

  async #find(id: string): Promise<OpenedRecord<Value> | undefined> {
    const { client, keyOf } = this.#deps;
    const text = await client.get(keyOf(id));
    if (text === undefined) return undefined;
    try {
      return await this.#open(id, text);
    } catch (error) {
      // A save or a delete may have come between the get of the record and those of its parts.
      const again = await client.get(keyOf(id));
      if (again === text) throw error;
      return again === undefined ? undefined : this.#open(id, again);
    }
  }

  async #open(
    id: string,
    text: string,
    as: DamagedRecord = this.#deps.record,
    parts: PartCache = new Map(),
  ): Promise<OpenedRecord<Value>> {
    const { record, parse } = this.#deps;
    try {
      const { number, chunks, dead, value } = headIn(text, record);
      const contents = await inSlices(chunks, (chunk) => this.#part(id, chunk, as, parts));
      const whole =
        chunks.length === 0 ? value : { ...(value as Transcript), ...joined(contents, value as Transcript) };
      const parsed = deepFreeze(parse(whole, id));
      return { value: parsed, base: { number, named: chunks, known: chunks, transcript: parsed, dead } };
    } catch (error) {
      // Ours say it already; a namespace that does not answer is no damage.
      if (error instanceof SDKError || error instanceof KVCallError) throw error;
      throw damageError(error, as, id);
    }
  }

  /** A part never changes: what this handle knows of it, or a reader of many records has read of it, is what is stored. */
  async #part(id: string, chunk: Chunk, as: DamagedRecord, parts: PartCache): Promise<Transcript> {
    const inMemory = this.#knownPart(id, chunk);
    if (inMemory !== undefined) return inMemory;
    const cached = parts.get(chunk.name) ?? this.#readPart(id, chunk, as);
    parts.set(chunk.name, cached);
    return cached;
  }

  #knownPart(id: string, { name }: Chunk): Transcript | undefined {
    const base = this.#known.get(id);
    const index = base?.known.findIndex((chunk) => chunk.name === name) ?? -1;
    return base === undefined || index < 0 ? undefined : contentOf(base.known, index, base.transcript);
  }

  async #readPart(id: string, chunk: Chunk, as: DamagedRecord): Promise<Transcript> {
    const { client, keyOf } = this.#deps;
    const key = chunkKey(keyOf(id), chunk.name);
    const text = await client.get(key);
    if (text === undefined)
      throw damageError(
        undefined,
        as,
        id,
        `KV has no value at "${key}". (What another location wrote or deleted within the last minute may look so here; then try again)`,
      );
    try {
      return partIn(text, chunk);
    } catch (error) {
      throw damageError(error, as, id, `the value at "${key}" is not what was written`);
    }
  }

  /**
   * With a time to live, a part that was put once would go long before the record, which every save puts again. A part lives twice as
   * long, and is put again by the first save that finds it older than once: so it always outlives the record that names it.
   */
  #refreshed(chunks: readonly Chunk[], transcript: Transcript, nowMs: number): Refreshed {
    const { ttlSeconds } = this.#deps;
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
}

/** Parts that one call has read, by name. */
export type PartCache = Map<string, Promise<Transcript>>;

interface OpenedRecord<Value> {
  readonly value: Value;
  readonly base: Base;
}
interface Refreshed {
  readonly chunks: readonly Chunk[];
  readonly again: readonly { readonly chunk: Chunk; readonly content: Transcript }[];
}

function contentOf(chunks: readonly Chunk[], index: number, transcript: Transcript): Transcript {
  const from = extentOf(chunks.slice(0, index));
  const to = extentOf(chunks.slice(0, index + 1));
  return {
    messages: transcript.messages.slice(from.messages, to.messages),
    inputIds: transcript.inputIds.slice(from.inputIds, to.inputIds),
  };
}

function sharedStart(known: readonly Chunk[], stored: readonly Chunk[]): readonly Chunk[] {
  let count = 0;
  while (count < known.length && known[count]?.name === stored[count]?.name) count += 1;
  // As stored: another writer may have put a part again, and its time to live counts from then.
  return stored.slice(0, count);
}
