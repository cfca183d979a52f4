/** One rule that needs processes, on fresh storage. */
import { runInWorld, type RuleResult } from '../conformance/run-rule.ts';
import type { StoreSubject } from '../conformance/subject.ts';
import { manualClock } from '../manual-clock.ts';
import { ProcessWorld, type ProcessRule } from './process-world.ts';

/** A process takes a second to start on a busy machine, and a take-over takes two lease periods. */
const PATIENCE_MS = 30_000;

/** Never rejects: what the store or the subject throws is a failure. */
export async function runProcessRule(
  subject: StoreSubject,
  rule: ProcessRule,
  patienceMs: number = PATIENCE_MS,
): Promise<RuleResult> {
  return runInWorld(subject, rule, {
    patienceMs,
    // The children have the clock of the machine. Nothing is opened in this process, so nobody looks at the manual one.
    open: async (dog) => new ProcessWorld(subject, await subject.createStorage(manualClock()), dog),
    close: (world) => world.end(),
  });
}
