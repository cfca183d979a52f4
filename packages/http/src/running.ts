/** What this process executes for requests, by session: so that somebody can stop it. */
import type { ExecutionResult } from '@lousho/contract';

interface Work {
  readonly stop: AbortController;
  readonly result: Promise<unknown>;
}

export class Running {
  readonly #works = new Map<string, Set<Work>>();

  /** Does the work with a signal that aborts when somebody stops the session. A request that names none stops for nobody. */
  async during<Result>(
    sessionId: string | undefined,
    perform: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const stop = new AbortController();
    const result = perform(stop.signal);
    if (sessionId === undefined) return result;
    const works = this.#works.get(sessionId) ?? new Set();
    this.#works.set(sessionId, works);
    const work = { stop, result };
    works.add(work);
    try {
      return await result;
    } finally {
      works.delete(work);
      if (works.size === 0) this.#works.delete(sessionId);
    }
  }

  /** What was stopped; `undefined` when nothing was: it was over, or another process has it. */
  async stop(sessionId: string): Promise<ExecutionResult | undefined> {
    const works = [...(this.#works.get(sessionId) ?? [])];
    for (const { stop } of works) stop.abort(new Error('Somebody stopped the session.'));
    const ends = await Promise.allSettled(works.map(({ result }) => result));
    return ends
      .map((end) => (end.status === 'fulfilled' ? (end.value as ExecutionResult | null) : null))
      .find((result): result is ExecutionResult => result?.finishReason === 'aborted');
  }
}
