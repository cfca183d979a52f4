/** Every call of the namespace goes through here: its limits are kept, what it refuses for a second is tried again, its errors get a kind. */
import type { Clock, Ids } from '@lousho/contract';
import { crc32 } from './checked-text.ts';
import { isThrottled, KVCallError } from './kv-errors.ts';
import { bytesOf, MAX_METADATA_BYTES, type KVListedKey, type KVNamespaceLike } from './kv-namespace.ts';

export interface PutOptions {
  readonly ttlSeconds: number | undefined;
  readonly metadata?: object | undefined;
}

/** The window of KV's limit on writes of one key. */
const THROTTLE_MS = 1_000;
/** Together about half a minute: a key that is still refused then has more writers than KV can take. */
const MAX_TRIES = 10;
/** Gets that are under way at one time. KV itself runs six; more only wait in the runtime. */
const GETS_AT_ONCE = 32;

export class KVClient {
  readonly #kv: KVNamespaceLike;
  readonly #clock: Clock;
  readonly #ids: Ids;

  constructor(kv: KVNamespaceLike, clock: Clock, ids: Ids) {
    this.#kv = kv;
    this.#clock = clock;
    this.#ids = ids;
  }

  get canList(): boolean {
    return typeof this.#kv.list === 'function';
  }

  async get(key: string): Promise<string | undefined> {
    return this.retryThrottled(async () => (await call('read', () => this.#kv.get(key))) ?? undefined);
  }

  /** Tried again while KV refuses it for a second: for values that may land whatever happened meanwhile. */
  async put(key: string, value: string, options: PutOptions): Promise<void> {
    await this.retryThrottled(() => this.putOnce(key, value, options));
  }

  /** For values that were decided on what was read: whoever calls this decides anew when KV refuses it. */
  async putOnce(key: string, value: string, { ttlSeconds, metadata }: PutOptions): Promise<void> {
    // It only helps those who list: what does not fit is left out, and the value is read instead.
    const fits = metadata !== undefined && bytesOf(JSON.stringify(metadata)) <= MAX_METADATA_BYTES;
    const options = {
      ...(ttlSeconds === undefined ? {} : { expirationTtl: ttlSeconds }),
      ...(fits ? { metadata } : {}),
    };
    await call('write', () => this.#kv.put(key, value, options));
  }

  async delete(key: string): Promise<void> {
    await this.retryThrottled(() => call('write', () => this.#kv.delete(key)));
  }

  async deleteAll(keys: Iterable<string>): Promise<void> {
    await inSlices([...keys], (key) => this.delete(key));
  }

  /** All keys that begin with the prefix. A page may be empty and still not the last. */
  async keys(prefix: string): Promise<KVListedKey[]> {
    const keys: KVListedKey[] = [];
    let cursor: string | undefined;
    for (;;) {
      const page = await this.retryThrottled(() =>
        call('read', async () => {
          if (this.#kv.list === undefined) throw new Error('This KV binding has no list.');
          return this.#kv.list(cursor === undefined ? { prefix } : { prefix, cursor });
        }),
      );
      keys.push(...page.keys);
      if (page.list_complete) return keys;
      if (page.cursor === undefined || page.cursor === cursor)
        throw new KVCallError('read', new Error('The list is not complete, and it does not go on.'));
      cursor = page.cursor;
    }
  }

  /** Runs the task anew, a second or more later, as long as KV refuses a write of it. */
  async retryThrottled<Value>(task: () => Promise<Value>): Promise<Value> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await task();
      } catch (error) {
        if (tries >= MAX_TRIES || !isThrottled(error)) throw error;
        await this.waitForSlot(tries);
      }
    }
  }

  /** The more often a key was busy, the further apart its writers try again. */
  async waitForSlot(tries: number): Promise<void> {
    await this.pause(THROTTLE_MS + Math.ceil(this.#chance() * THROTTLE_MS * Math.min(tries, 5)));
  }

  async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.#clock.setTimer(resolve, ms));
  }

  /** Enough of a random id that two writers never choose one name for different things. */
  newTag(): string {
    return this.#ids.random().replaceAll('-', '').slice(0, 16);
  }

  /** 0 up to 1. */
  #chance(): number {
    return crc32(this.#ids.random()) / 2 ** 32;
  }
}

/** Some at a time, in order. */
export async function inSlices<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += GETS_AT_ONCE)
    results.push(...(await Promise.all(items.slice(start, start + GETS_AT_ONCE).map(work))));
  return results;
}

async function call<Value>(kind: 'read' | 'write', perform: () => Promise<Value>): Promise<Value> {
  try {
    return await perform();
  } catch (error) {
    throw new KVCallError(kind, error);
  }
}
