/**
 * What the holder of a lease saved last, written beside its lease. Whoever takes the lease over, at another location, may be shown an
 * older state for a minute; going on from it would repeat what is recorded. With this it is noticed.
 */
import { SDKError, type Clock } from '@lousho/contract';
import { BoundedMap } from './bounded-map.ts';

export interface LastSave {
  readonly runId: string;
  /** Of the record. */
  readonly number: number;
  /** Epoch milliseconds. */
  readonly atMs: number;
}

/** Longer than a write takes to every location. Behind it, what is shown is what there is. */
const VISIBLE_WITHIN_MS = 90_000;
/** Runs that one handle executes at one time, with room. */
const MAX_RUNS = 1_000;

export class LastSaves {
  readonly #saved = new BoundedMap<LastSave>(MAX_RUNS);
  readonly #told = new BoundedMap<LastSave>(MAX_RUNS);

  constructor(private readonly clock: Clock) {}

  /** This handle saved it. */
  noteSaved(id: string, runId: string, number: number): void {
    this.#saved.set(id, { runId, number, atMs: this.clock.wallMs() });
  }

  /** The lease that this handle took over says it. */
  noteTold(id: string, save: LastSave | undefined): void {
    if (save === undefined) this.#told.delete(id);
    else this.#told.set(id, save);
  }

  savedHere(id: string): LastSave | undefined {
    return this.#saved.get(id);
  }

  forget(id: string): void {
    this.#saved.delete(id);
    this.#told.delete(id);
  }

  /** @throws synchronously LOUSHO_STORE_READ_FAILED when a later save of this run must be there. */
  assertNewest(id: string, runId: string, number: number): void {
    const told = this.#told.get(id);
    if (told === undefined || told.runId !== runId || number >= told.number) return;
    if (this.clock.wallMs() - told.atMs >= VISIBLE_WITHIN_MS) return;
    throw new SDKError(
      'LOUSHO_STORE_READ_FAILED',
      { operation: 'load', id },
      {
        message: `The newest save of "${id}" was made at another location and is not visible here yet. It is within about a minute; then try again.`,
      },
    );
  }
}
