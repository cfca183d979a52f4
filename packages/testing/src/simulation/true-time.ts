/** The one time that really passes in a simulated world: what happens next, and nothing else. No clock of the machine is looked at. */
import { nextTurn } from '../settle-clock.ts';
import type { HashOrder } from './hash-order.ts';

interface Happening {
  readonly atMs: number;
  readonly run: () => void;
}

export class TrueTime {
  #nowMs = 0;
  /** The next one last. */
  readonly #ahead: Happening[] = [];
  readonly #hashes: HashOrder;

  constructor(hashes: HashOrder) {
    this.#hashes = hashes;
  }

  /** Milliseconds since the world began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** What comes at one moment comes in the order in which it was planned. Returns what cancels it. */
  in(delayMs: number, run: () => void): () => void {
    const happening: Happening = { atMs: this.#nowMs + Math.max(0, delayMs), run };
    let index = this.#ahead.length;
    while (index > 0 && (this.#ahead[index - 1] as Happening).atMs <= happening.atMs) index -= 1;
    this.#ahead.splice(index, 0, happening);
    return () => {
      const at = this.#ahead.indexOf(happening);
      if (at >= 0) this.#ahead.splice(at, 1);
    };
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.in(delayMs, resolve));
  }

  /** The next happening, and all that it leads to without time passing. `false`: nothing is ahead. */
  async step(): Promise<boolean> {
    const next = this.#ahead.pop();
    if (next === undefined) return false;
    this.#nowMs = next.atMs;
    next.run();
    // All microtasks run in a turn, however many.
    do await nextTurn();
    while (await this.#hashes.release());
    return true;
  }
}
