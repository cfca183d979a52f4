/**
 * How long leases of others have looked the same to this process. A holder whose clock is far ahead writes an expiry that never comes; that
 * its lease does not move is then the proof that nobody renews it.
 */
import type { LeaseRecord } from '../lease.ts';
import type { Clock } from '../ports.ts';

interface Sighting {
  readonly fence: number;
  readonly renewCount: number;
  /** Monotonic: this process's own time, whatever the wall clocks say. */
  readonly sinceMs: number;
}

/** Contended leases that are watched at one time; beyond them the one seen first is seen anew. */
const MAX_SIGHTINGS = 1_000;

export class LeaseSightings {
  readonly #sightings = new Map<string, Sighting>();

  constructor(readonly clock: Clock) {}

  unchangedForMs({ id, fence, renewCount }: LeaseRecord): number {
    const nowMs = this.clock.monotonicMs();
    const seen = this.#sightings.get(id);
    if (seen?.fence === fence && seen.renewCount === renewCount) return nowMs - seen.sinceMs;
    this.#sightings.delete(id);
    this.#sightings.set(id, { fence, renewCount, sinceMs: nowMs });
    if (this.#sightings.size > MAX_SIGHTINGS) this.#forgetFirst();
    return 0;
  }

  forget(id: string): void {
    this.#sightings.delete(id);
  }

  #forgetFirst(): void {
    for (const id of this.#sightings.keys()) return this.forget(id);
  }
}
