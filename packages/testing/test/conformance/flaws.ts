/** Stores with one flaw each: what the suite is tested on. */
import { checkpointFlaws } from './flaws/checkpoint-flaws.ts';
import type { Flaw } from './flaws/flaw.ts';
import { historyFlaws, listFlaws } from './flaws/history-list-flaws.ts';
import { fencingFlaws, leaseFlaws } from './flaws/lease-flaws.ts';
import { lifecycleFlaws } from './flaws/lifecycle-flaws.ts';
import { approvalFlaws, sessionFlaws } from './flaws/record-flaws.ts';

export const flaws: readonly Flaw[] = [
  ...checkpointFlaws,
  ...leaseFlaws,
  ...fencingFlaws,
  ...historyFlaws,
  ...listFlaws,
  ...approvalFlaws,
  ...sessionFlaws,
  ...lifecycleFlaws,
];

export { weakFlaws } from './flaws/weaker-flaws.ts';
