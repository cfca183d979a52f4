/**
 * Workers KV as its documentation describes it, seen from several locations, with time moved by hand and chance from a seed:
 * a location sees its own writes at once; those of others when they have travelled and what it keeps of the key, for a minute, has run
 * out, "no such key" included; a list is older still, and has empty pages; a key that is written twice in a second is refused (429).
 */
import type { Clock } from '@lousho/contract';
import type { KVListPage, KVNamespaceLike } from '../../src/kv-namespace.ts';
import { refuseKey, storedValue, type StoredValue } from './kv-limits.ts';

export interface SimOptions {
  readonly clock: Clock;
  /** 0 up to 1. */
  readonly random: () => number;
  /** How long a read is kept at a location. */
  readonly cacheMs?: number;
  /** The longest way of a write to another location. */
  readonly travelMs?: number;
  readonly listLagMs?: number;
  readonly pageSize?: number;
}
interface Write {
  readonly location: number;
  readonly key: string;
  /** `undefined`: deleted. */
  value: StoredValue | undefined;
  readonly atMs: number;
  /** At all other locations. */
  readonly visibleAtMs: number;
}

export class SimKV {
  readonly writes: Write[] = [];
  /** Writes that the account has left for today. */
  quota = Infinity;
  refusals = 0;
  readonly options: Required<SimOptions>;
  readonly #caches = new Map<string, { readonly value: StoredValue | undefined; readonly untilMs: number }>();
  readonly #writtenAtMs = new Map<string, number>();
  #lastVisibleAtMs = 0;

  constructor(options: SimOptions) {
    this.options = { cacheMs: 60_000, travelMs: 8_000, listLagMs: 15_000, pageSize: 7, ...options };
  }

  at(location: number): KVNamespaceLike {
    return {
      get: async (key) => {
        refuseKey('GET', key);
        await Promise.resolve();
        return this.#alive(this.#read(location, key))?.value ?? null;
      },
      put: async (key, value, options = {}) => {
        const stored = storedValue(value, options, this.#nowMs);
        await this.#write('PUT', location, key, stored);
      },
      delete: async (key) => this.#write('DELETE', location, key, undefined),
      list: async (options = {}) => this.#list(location, options),
    };
  }

  /** Changes what is stored, everywhere. */
  damage(key: string): void {
    const write = this.writes.findLast((one) => one.key === key);
    if (write?.value === undefined) throw new Error(`there is no "${key}"`);
    const { value } = write.value;
    write.value = { ...write.value, value: value.slice(0, value.length / 2) };
    for (const place of [...this.#caches.keys()]) if (place.endsWith(` ${key}`)) this.#caches.delete(place);
  }

  get #nowMs(): number {
    return this.options.clock.monotonicMs();
  }

  async #write(method: string, location: number, key: string, value: StoredValue | undefined): Promise<void> {
    refuseKey(method, key);
    await Promise.resolve();
    const nowMs = this.#nowMs;
    if (nowMs - (this.#writtenAtMs.get(key) ?? -Infinity) < 1_000) {
      this.refusals += 1;
      throw new Error(`KV ${method} failed: 429 Too Many Requests`);
    }
    if (this.quota <= 0) throw new Error(`KV ${method.toLowerCase()}() limit exceeded for the day.`);
    this.quota -= 1;
    this.#writtenAtMs.set(key, nowMs);
    // What is written later never arrives earlier.
    const arrivesAtMs = nowMs + Math.floor(this.options.random() * this.options.travelMs);
    this.#lastVisibleAtMs = Math.max(this.#lastVisibleAtMs, arrivesAtMs);
    this.writes.push({ location, key, value, atMs: nowMs, visibleAtMs: this.#lastVisibleAtMs });
    this.#caches.set(`${location} ${key}`, { value, untilMs: nowMs + this.options.cacheMs });
  }

  #read(location: number, key: string): StoredValue | undefined {
    const place = `${location} ${key}`;
    const cached = this.#caches.get(place);
    if (cached !== undefined && this.#nowMs < cached.untilMs) return cached.value;
    const arrived = this.writes.findLast(
      (write) => write.key === key && (write.location === location || write.visibleAtMs <= this.#nowMs),
    );
    this.#caches.set(place, { value: arrived?.value, untilMs: this.#nowMs + this.options.cacheMs });
    return arrived?.value;
  }

  async #list(
    location: number,
    { prefix = '', cursor }: { prefix?: string; cursor?: string },
  ): Promise<KVListPage> {
    await Promise.resolve();
    const beforeMs = this.#nowMs - this.options.listLagMs;
    const found = new Map<string, StoredValue>();
    for (const { key, value, atMs, visibleAtMs, location: from } of this.writes) {
      if (!key.startsWith(prefix) || (from === location ? atMs : visibleAtMs) > beforeMs) continue;
      const alive = this.#alive(value);
      if (alive === undefined) found.delete(key);
      else found.set(key, alive);
    }
    const names = [...found.keys()].sort();
    const [start, isEmpty] = JSON.parse(cursor ?? '[0,false]') as [number, boolean];
    const end = isEmpty ? start : start + this.options.pageSize;
    const keys = names.slice(start, end).map((name) => ({ name, metadata: found.get(name)?.metadata }));
    if (end >= names.length) return { keys, list_complete: true };
    return { keys, list_complete: false, cursor: JSON.stringify([end, !isEmpty]) };
  }

  #alive(stored: StoredValue | undefined): StoredValue | undefined {
    return stored !== undefined && this.#nowMs < stored.expiresAtMs ? stored : undefined;
  }
}
