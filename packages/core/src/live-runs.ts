/** What an agent, or one loop of it, executes right now, so that a shutdown can end it and wait for it. */
import { SDKError, type Clock } from '@lousho/contract';
import type { RunStop } from '@lousho/executor/wiring';

/** For code that does not end when it is told to: a hook that hangs, a store that never answers. */
const GIVE_UP_AFTER_MS = 1_000;

export class LiveRuns {
  readonly #stops = new Set<RunStop>();
  #underWayCount = 0;
  readonly #closing = new AbortController();
  #whenIdle: (() => void)[] = [];
  readonly #loops = new Set<LiveRuns>();

  /** @param agent What else the agent executes, when this is a loop of it: its runs are the agent's, too. */
  constructor(
    readonly clock: Clock,
    readonly agent?: LiveRuns,
  ) {
    if (agent !== undefined) agent.#loops.add(this);
  }

  /** Aborts when nothing new may start. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** @throws LOUSHO_SHUTDOWN */
  requireOpen(): void {
    if (this.closing.aborted) throw new SDKError('LOUSHO_SHUTDOWN', {});
  }

  /** The returned function says that the run has ended. */
  add(stop: RunStop): () => void {
    this.#stops.add(stop);
    if (this.closing.aborted) stop.shutDown(0);
    const end = this.#begin();
    return () => {
      this.#stops.delete(stop);
      end();
    };
  }

  /** A call that may take several runs: a shutdown reaches it between them, too. */
  async while<Value>(stop: RunStop, work: () => Promise<Value>): Promise<Value> {
    const end = this.add(stop);
    try {
      return await work();
    } finally {
      end();
    }
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
    this.#closing.abort();
    if (this.agent !== undefined) this.agent.#loops.delete(this);
    for (const loop of this.#loops) void loop.shutDown(timeoutMs);
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

  /** Resolves when nothing is under way, however long that takes. */
  async idle(): Promise<void> {
    if (this.#underWayCount > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #begin(): () => void {
    this.#underWayCount += 1;
    const end = this.agent === undefined ? undefined : this.agent.#begin();
    return () => {
      end?.();
      this.#underWayCount -= 1;
      if (this.#underWayCount === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    };
  }
}
