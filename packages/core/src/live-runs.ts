/** What an agent executes right now, so that a shutdown can end it and wait for it. */
import { SDKError, type Clock } from '@lousho/contract';
import type { RunStop } from '@lousho/executor/wiring';

/** For code that does not end when it is told to: a hook that hangs, a store that never answers. */
const GIVE_UP_AFTER_MS = 1_000;

export class LiveRuns {
  readonly #stops = new Set<RunStop>();
  #underWayCount = 0;
  #isClosed = false;
  #whenIdle: (() => void)[] = [];

  constructor(readonly clock: Clock) {}

  /** @throws LOUSHO_SHUTDOWN */
  requireOpen(): void {
    if (this.#isClosed) throw new SDKError('LOUSHO_SHUTDOWN', {});
  }

  /** The returned function says that the run has ended. */
  add(stop: RunStop): () => void {
    this.#stops.add(stop);
    if (this.#isClosed) stop.shutDown(0);
    const end = this.#begin();
    return () => {
      this.#stops.delete(stop);
      end();
    };
  }

  /** Work that leads to a run counts as under way, too: what it looks up comes from the store. */
  async during<Value>(work: Promise<Value>): Promise<Value> {
    const end = this.#begin();
    try {
      return await work;
    } finally {
      end();
    }
  }

  /** Starts nothing new; resolves when everything has ended, at the latest a moment after `timeoutMs`. */
  async shutDown(timeoutMs: number): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#stops) stop.shutDown(timeoutMs);
    if (this.#underWayCount === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.clock.setTimer(resolve, timeoutMs + GIVE_UP_AFTER_MS);
      this.#whenIdle.push(() => {
        cancel();
        resolve();
      });
    });
  }

  #begin(): () => void {
    this.#underWayCount += 1;
    return () => {
      this.#underWayCount -= 1;
      if (this.#underWayCount === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    };
  }
}
