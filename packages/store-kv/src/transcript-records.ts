/**
 * Records with a transcript, checkpoints and sessions alike: how they are read, laid out for the next save, and remembered meanwhile.
 *
 * A short transcript is in the record. Of a long one the record holds the header, the names of the parts that are stored apart, and the
 * newest messages. A part is put before the record that names it, under a name that is never used for anything else. So one put of one
 * key makes a save visible, whole, whatever the length of the transcript; and a reader whose view of the record is old still finds the
 * parts that it names.
 */
import { deepFreeze, SDKError } from '@lousho/contract';
import { BoundedMap } from './bounded-map.ts';
import { inSlices } from './kv-client.ts';
import { damageError, isDamage, KVCallError, type DamagedRecord } from './kv-errors.ts';
import { chunkKey } from './kv-keys.ts';
import {
  contentOf,
  layOut,
  type Base,
  type Layout,
  type LayoutDeps,
  type SaveToLayOut,
} from './record-layout.ts';
import { headIn, joined, partIn, type Head } from './record-text.ts';
import type { Chunk, Transcript } from './transcript-chunks.ts';

export interface RecordDeps<Value> extends LayoutDeps {
  readonly parse: (value: unknown, id: string) => Value;
}

const NOTHING: Transcript = deepFreeze({ messages: [], inputIds: [] });
/** Runs that execute in one handle at one time, with room. */
const MAX_KNOWN = 100;

export class TranscriptRecords<Value extends Transcript> {
  readonly #deps: RecordDeps<Value>;
  /** What was written or loaded last. */
  readonly #known = new BoundedMap<Base>(MAX_KNOWN);

  constructor(deps: RecordDeps<Value>) {
    this.#deps = deps;
  }

  /** @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_VERSION_UNSUPPORTED */
  async load(id: string): Promise<LoadedRecord<Value> | undefined> {
    const before = this.#known.get(id);
    const opened = await this.#find(id);
    // A save that was made meanwhile knows better.
    if (opened !== undefined && this.#known.get(id) === before) this.remember(id, opened.base);
    return opened === undefined ? undefined : { value: opened.value, number: opened.base.number };
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

  layOut(save: SaveToLayOut): Layout {
    return layOut(this.#deps, save);
  }

  async putParts({ parts }: Layout): Promise<void> {
    const { client, clock, ttlSeconds } = this.#deps;
    const metadata = { t: clock.wallMs() };
    // Twice as long as the record: parts are not put again with each save, see `#refreshed`.
    const options = { metadata, ttlSeconds: ttlSeconds === undefined ? undefined : 2 * ttlSeconds };
    await inSlices(parts, ({ key, text }) => client.put(key, text, options));
  }

  remember(id: string, base: Base): void {
    this.#known.set(id, base);
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
}

/** Parts that one call has read, by name. */
export type PartCache = Map<string, Promise<Transcript>>;

interface LoadedRecord<Value> {
  readonly value: Value;
  /** Of its save. */
  readonly number: number;
}
interface OpenedRecord<Value> {
  readonly value: Value;
  readonly base: Base;
}

function sharedStart(known: readonly Chunk[], stored: readonly Chunk[]): readonly Chunk[] {
  let count = 0;
  while (count < known.length && known[count]?.name === stored[count]?.name) count += 1;
  // As stored: another writer may have put a part again, and its time to live counts from then.
  return stored.slice(0, count);
}
