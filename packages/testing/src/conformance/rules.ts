/** All rules, in the order of the contract. */
import type { ConformanceRule, Rule } from './rule.ts';
import { approvalRules } from './rules/approvals.ts';
import { checkpointRules } from './rules/checkpoints.ts';
import { fencingRules } from './rules/fencing.ts';
import { historyRules } from './rules/history.ts';
import { idRules } from './rules/ids.ts';
import { leaseEndRules } from './rules/lease-ends.ts';
import { leaseRules } from './rules/leases.ts';
import { lifecycleRules } from './rules/lifecycle.ts';
import { listRules } from './rules/list.ts';
import { modelRules } from './rules/models.ts';
import { pruningRules } from './rules/pruning.ts';
import { recordRules } from './rules/records.ts';
import { sessionRules } from './rules/sessions.ts';
import { weakerRules } from './rules/weaker.ts';

export const allRules: readonly Rule[] = Object.freeze(
  [
    [...idRules, ...recordRules, ...checkpointRules],
    [...leaseRules, ...leaseEndRules],
    fencingRules,
    historyRules,
    listRules,
    approvalRules,
    sessionRules,
    [...lifecycleRules, ...pruningRules],
    weakerRules,
    modelRules,
  ].flatMap((group) => [...group].sort((a, b) => numberOf(a) - numberOf(b))),
);

/** `L3` → 3. The models have none, and stay as they are. */
function numberOf({ id }: ConformanceRule): number {
  return Number(/^[A-Z](\d+)$/.exec(id)?.[1] ?? 0);
}
