/** A namespace in memory that every reader sees at once: what a Worker's own location shows, with KV's limits and none of its delays. */
import type { Clock } from '@lousho/contract';
import { bytesOf, type KVListPage, type KVNamespaceLike } from '../../src/kv-namespace.ts';
import { refuseKey, storedValue, type PutOptions, type StoredValue } from './kv-limits.ts';

export interface Call {
  readonly method: 'get' | 'put' | 'delete' | 'list';
  readonly key: string;
  /** Of the value that was put. */
  readonly bytes: number;
  readonly options: PutOptions;
}

export class ExactKV implements KVNamespaceLike {
  readonly values = new Map<string, StoredValue>();
  readonly calls: Call[] = [];
  /** Called before each call takes effect; what it throws is what the call throws. */
  before: (call: Call) => void | Promise<void> = () => undefined;
  readonly #clock: Clock;
  readonly #pageSize: number;

  constructor(clock: Clock, pageSize = 1_000) {
    this.#clock = clock;
    this.#pageSize = pageSize;
  }

  async get(key: string): Promise<string | null> {
    await this.#begin('get', key);
    return this.#visible(key)?.value ?? null;
  }

  async put(key: string, value: string, options: PutOptions = {}): Promise<void> {
    const stored = storedValue(value, options, this.#clock.monotonicMs());
    await this.#begin('put', key, bytesOf(value), options);
    this.values.set(key, stored);
  }

  async delete(key: string): Promise<void> {
    await this.#begin('delete', key);
    this.values.delete(key);
  }

  /** Every second page is empty, as those of KV may be. */
  async list({ prefix = '', cursor }: { prefix?: string; cursor?: string } = {}): Promise<KVListPage> {
    await this.#begin('list', prefix);
    const names = [...this.values.keys()].filter((key) => key.startsWith(prefix) && this.#visible(key));
    names.sort();
    const { start, isEmpty } = JSON.parse(cursor ?? '{"start":0,"isEmpty":false}') as {
      start: number;
      isEmpty: boolean;
    };
    const end = isEmpty ? start : start + this.#pageSize;
    const keys = names.slice(start, end).map((name) => {
      const metadata = this.values.get(name)?.metadata;
      return metadata === undefined ? { name } : { name, metadata: structuredClone(metadata) };
    });
    if (end >= names.length) return { keys, list_complete: true };
    return { keys, list_complete: false, cursor: JSON.stringify({ start: end, isEmpty: !isEmpty }) };
  }

  keys(): string[] {
    return [...this.values.keys()].filter((key) => this.#visible(key)).sort();
  }

  count(method: Call['method'], part = ''): number {
    return this.calls.filter((call) => call.method === method && call.key.includes(part)).length;
  }

  /** Cuts the value in half. */
  damage(key: string): void {
    const stored = this.values.get(key);
    if (stored === undefined) throw new Error(`there is no "${key}"`);
    this.values.set(key, { ...stored, value: stored.value.slice(0, stored.value.length / 2) });
  }

  #visible(key: string): StoredValue | undefined {
    const stored = this.values.get(key);
    return stored !== undefined && this.#clock.monotonicMs() < stored.expiresAtMs ? stored : undefined;
  }

  async #begin(method: Call['method'], key: string, bytes = 0, options: PutOptions = {}): Promise<void> {
    if (method !== 'list') refuseKey(method.toUpperCase(), key);
    const call = { method, key, bytes, options };
    this.calls.push(call);
    // The answer of another machine: nothing else of the caller runs in between.
    await Promise.resolve();
    await this.before(call);
  }
}
