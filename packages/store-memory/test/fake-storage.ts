/** A Web Storage of its own: texts, and a quota over keys and values, as browsers count it. */
import type { WebStorageLike } from '../src/index.ts';

export class FakeStorage implements WebStorageLike {
  readonly items = new Map<string, string>();

  /** @param quota UTF-16 units; a browser has about five million */
  constructor(public quota = 5_000_000) {}

  get length(): number {
    return this.items.size;
  }

  key(index: number): string | null {
    return [...this.items.keys()][index] ?? null;
  }

  getItem(key: string): string | null {
    return this.items.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    const used = this.used() - (this.items.has(key) ? key.length + (this.getItem(key)?.length ?? 0) : 0);
    if (used + key.length + value.length > this.quota)
      throw new DOMException(`Setting the value of '${key}' exceeded the quota.`, 'QuotaExceededError');
    this.items.set(key, value);
  }

  removeItem(key: string): void {
    this.items.delete(key);
  }

  used(): number {
    let units = 0;
    for (const [key, value] of this.items) units += key.length + value.length;
    return units;
  }

  /** Cuts the value in half. */
  damage(key: string): void {
    const value = this.getItem(key);
    if (value === null) throw new Error(`there is no "${key}"`);
    this.items.set(key, value.slice(0, value.length / 2));
  }
}
