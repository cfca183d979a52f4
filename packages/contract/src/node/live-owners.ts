/** Which leases are held by runs of this copy of the module: one that is not among them belongs to a run that has ended. */
import type { LeaseRecord } from '../lease.ts';

/** One for all stores of the module: a run may be started through one of them and resumed through another. */
const liveFences = new Map<string, number>();

export class LiveOwners {
  /** Of this store, so that closing it ends them. */
  readonly #keys = new Set<string>();

  constructor(readonly fileKey: string) {}

  add({ id, owner, fence }: LeaseRecord): void {
    const key = this.#keyOf(id, owner);
    liveFences.set(key, fence);
    this.#keys.add(key);
  }

  /** The run of this owner has ended, or has lost its lease. */
  remove(id: string, owner: string, fence?: number): void {
    const key = this.#keyOf(id, owner);
    if (fence !== undefined && liveFences.get(key) !== fence) return;
    liveFences.delete(key);
    this.#keys.delete(key);
  }

  has({ id, owner, fence }: LeaseRecord): boolean {
    return liveFences.get(this.#keyOf(id, owner)) === fence;
  }

  /** A closed store refuses every save, so its runs are over. */
  clear(): void {
    for (const key of this.#keys) liveFences.delete(key);
    this.#keys.clear();
  }

  #keyOf(id: string, owner: string): string {
    return `${this.fileKey}\n${id}\n${owner}`;
  }
}
