/** Prunes finished runs by themselves while the store is used. */
import type { Clock } from '@lousho/contract';
import type { Pruning } from './file-prune.ts';
import { resolvePlan } from './prune-decisions.ts';

/** Often enough that nothing stays a tenth longer than it should, and not more often than a look at every run is worth. */
const LONGEST_INTERVAL_MS = 60 * 60 * 1_000;

export interface RetentionDeps {
  readonly retentionMs: number;
  readonly clock: Clock;
  readonly pruning: Pruning;
  readonly warn: (message: string) => void;
}

/** To be called after each save: removes what is due. */
export function keepRetention({ retentionMs, clock, pruning, warn }: RetentionDeps): () => Promise<void> {
  const intervalMs = Math.min(retentionMs / 10, LONGEST_INTERVAL_MS);
  let nextAtMs = -Infinity;
  let isPruning = false;
  return async () => {
    const nowMs = clock.wallMs();
    if (isPruning || nowMs < nextAtMs) return;
    nextAtMs = nowMs + intervalMs;
    isPruning = true;
    try {
      const plan = resolvePlan({ olderThanMs: retentionMs }, clock);
      await pruning.prune({ ...plan, scope: 'runs' }, false);
    } catch (error) {
      // Whoever saved is not concerned; the next interval tries again.
      warn(`Lousho could not remove old runs: ${String(error)}`);
    } finally {
      isPruning = false;
    }
  };
}
