/** What the limits around a sub-agent leave to it: what it spends is its lead's, too. */
import { emptyUsage, sumUsage, type ModelUsage, type RunLimits } from '@lousho/contract';
import { knownSpend } from './next-action.ts';
import type { Run } from './run.ts';

const spendOf = {
  maxTotalTokens: ({ totalTokens }: ModelUsage) => totalTokens,
  maxModelCalls: ({ modelCalls }: ModelUsage) => modelCalls,
  maxCostUsd: ({ costUsd }: ModelUsage) => costUsd,
} as const;

/** Of the lead, of its session and of its own lead; each without what the sub-agent itself has spent. */
export function limitsLeft(run: Run, childId: string): RunLimits {
  const { checkpoint, engine, task } = run;
  const { sessionLimits } = engine;
  const { spentBefore = emptyUsage } = checkpoint;
  const beforeRun = sessionLimits === undefined ? undefined : sumUsage(sessionLimits.usage, spentBefore);
  const own = checkpoint.delegatedInFlight.find(({ checkpointId }) => checkpointId === childId)?.usage;
  const spend = knownSpend(checkpoint);
  const left: { -readonly [Name in keyof RunLimits]: number } = {};
  for (const name of Object.keys(spendOf) as (keyof typeof spendOf)[]) {
    const used = spendOf[name](spend);
    // What nobody knows the price of counts to no limit.
    if (used === undefined) continue;
    const others = used - (own === undefined ? 0 : (spendOf[name](own) ?? 0));
    const before = beforeRun === undefined ? undefined : spendOf[name](beforeRun);
    const ofSession = before === undefined ? undefined : minus(sessionLimits?.limits[name], before);
    const max = smallest([engine.limits[name], task?.limitsLeft()[name], ofSession]);
    if (max !== undefined) left[name] = max - others;
  }
  return left;
}

function minus(max: number | undefined, spent: number): number | undefined {
  return max === undefined ? undefined : max - spent;
}

function smallest(limits: readonly (number | undefined)[]): number | undefined {
  const known = limits.filter((limit) => limit !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
