/** The runs that an agent executes right now, so that a shutdown can end them and wait for them. */
import { SDKError, type Clock } from '@lousho/contract';
import type { RunStop } from '@lousho/executor/wiring';

export class LiveRuns {
  readonly #stops = new Set<RunStop>();
  #isClosed = false;
  #whenEmpty: (() => void)[] = [];

  constructor(readonly clock: Clock) {}

  /** @throws LOUSHO_SHUTDOWN */
  requireOpen(): void {
    if (this.#isClosed) throw new SDKError('LOUSHO_SHUTDOWN', {});
  }

  /** The returned function says that the run has ended. */
  add(stop: RunStop): () => void {
    this.#stops.add(stop);
    if (this.#isClosed) stop.shutDown(0);
    return () => {
      this.#stops.delete(stop);
      if (this.#stops.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
    };
  }

  /** Starts nothing new; resolves when every run has ended, at the latest a moment after `timeoutMs`. */
  async shutDown(timeoutMs: number): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#stops) stop.shutDown(timeoutMs);
    if (this.#stops.size > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }
}
