/** A run that has begun, and goes on whoever listens. One that was turned away says why before anything is answered. */
import type { AgentEvent, AgentRun } from '@lousho/contract';

export interface BegunRun {
  /** `run.start`; absent when nothing was left to execute. */
  readonly first: AgentEvent | undefined;
  /** What comes behind it. To be read to its end: leaving early would stop the run. */
  readonly others: AsyncIterator<AgentEvent, void>;
}

/** @throws what the run rejects with before it begins */
export async function begunRun(run: AgentRun): Promise<BegunRun> {
  const others = run[Symbol.asyncIterator]();
  for (;;) {
    const next = await others.next();
    if (next.done === true) return { first: undefined, others };
    if (next.value.type === 'run.start') return { first: next.value, others };
  }
}
