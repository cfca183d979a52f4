/** What a prune is about to remove, and the batches in which it does: each a transaction, so that saves and heartbeats come in between. */
import {
  ConfigurationError,
  type CheckpointStatus,
  type Clock,
  type PruneOptions,
  type PruneResult,
} from '@lousho/contract';
import type { QueuedWrite } from './commit-queue.ts';

export interface PrunePlan {
  readonly cutoffMs: number;
  readonly statuses: ReadonlySet<CheckpointStatus>;
  /** `runs`: what a retention asks for. `all`: also approvals and sessions. */
  readonly scope: 'runs' | 'all';
}

/** Counts of one batch, and where the next one begins; `undefined` after the last. */
export interface PruneBatch {
  readonly counts: PruneResult;
  readonly nextKey: number | undefined;
}

/** What does the removing. */
export interface PruneSteps {
  batch(plan: PrunePlan, afterKey: number, dryRun: boolean): PruneBatch;
  leftovers(plan: PrunePlan, dryRun: boolean): PruneResult;
}

export const nothingPruned: PruneResult = { checkpoints: 0, historyEntries: 0, approvals: 0, sessions: 0 };

export function resolvePlan({ olderThanMs, statuses = ['finished'] }: PruneOptions, clock: Clock): PrunePlan {
  if (!(olderThanMs >= 0)) {
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'olderThanMs',
      got: olderThanMs,
      want: 'a number of milliseconds, 0 or more',
    });
  }
  return { cutoffMs: clock.wallMs() - olderThanMs, statuses: new Set(statuses), scope: 'all' };
}

/** All batches, one after the other. `commit` queues a write and resolves with its result. */
export async function pruneAll(
  pruning: PruneSteps,
  plan: PrunePlan,
  dryRun: boolean,
  commit: <Result>(write: QueuedWrite<Result>) => Promise<Result>,
): Promise<PruneResult> {
  const step = <Result>(apply: () => Result): Promise<Result> =>
    commit({ operation: 'prune', level: 'synced', apply });
  let total = nothingPruned;
  let afterKey: number | undefined = 0;
  while (afterKey !== undefined) {
    const fromKey: number = afterKey;
    const batch: PruneBatch = await step(() => pruning.batch(plan, fromKey, dryRun));
    total = sum(total, batch.counts);
    afterKey = batch.nextKey;
  }
  return sum(total, await step(() => pruning.leftovers(plan, dryRun)));
}

function sum(a: PruneResult, b: PruneResult): PruneResult {
  return {
    checkpoints: a.checkpoints + b.checkpoints,
    historyEntries: a.historyEntries + b.historyEntries,
    approvals: a.approvals + b.approvals,
    sessions: a.sessions + b.sessions,
  };
}
