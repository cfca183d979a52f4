/** Prunes finished runs by themselves while the store is used. */
import type { Clock } from '@lousho/contract';
import type { CommitQueue } from './commit-queue.ts';
import { pruneAll, resolvePlan, type PruneSteps } from './prune-plan.ts';

/** Often enough that nothing stays a tenth longer than it should, and not more often than it is worth. */
const LONGEST_INTERVAL_MS = 60 * 60 * 1_000;

export interface RetentionDeps {
  readonly retentionMs: number;
  readonly clock: Clock;
  readonly queue: CommitQueue;
  readonly pruning: PruneSteps;
  readonly warn: (message: string) => void;
}

/** To be called before each commit: what is due is removed in the same one. */
export function keepRetention(deps: RetentionDeps): () => void {
  const intervalMs = Math.min(deps.retentionMs / 10, LONGEST_INTERVAL_MS);
  let nextAtMs = -Infinity;
  let isPruning = false;
  return () => {
    const nowMs = deps.clock.wallMs();
    if (isPruning || nowMs < nextAtMs) return;
    nextAtMs = nowMs + intervalMs;
    isPruning = true;
    void pruneOnce(deps).finally(() => {
      isPruning = false;
    });
  };
}

async function pruneOnce({ retentionMs, clock, queue, pruning, warn }: RetentionDeps): Promise<void> {
  try {
    const plan = resolvePlan({ olderThanMs: retentionMs }, clock);
    await pruneAll(pruning, { ...plan, scope: 'runs' }, false, (write) => queue.add(write));
  } catch (error) {
    // Whoever saved meanwhile is not concerned; the next interval tries again.
    warn(`Lousho could not remove old runs: ${String(error)}`);
  }
}
