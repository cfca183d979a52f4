/** The suite in a test runner: one test a rule, whatever the runner. */
import { groupOf, type ConformanceRule, type Need } from './rule.ts';
import { notClaimed, runRule, type RuleResult } from './run-rule.ts';
import { allRules } from './rules.ts';
import type { StoreSubject, TestRunner } from './subject.ts';

/**
 * Vitest, Jest and Bun give a test 5 seconds unless it says otherwise, which a model on a slow disk may need. A rule that hangs is
 * reported long before: its store gets a bounded time for each answer.
 */
const TEST_TIMEOUT_MS = 180_000;

/** One test a rule. Rules that the claims leave out are skipped. */
export function registerConformance(subject: StoreSubject, runner: TestRunner): void {
  const clock = subject.clock === 'store' ? ' (by its own clock: rules about time really wait)' : '';
  const title = `${subject.name} keeps the store contract${clock}`;
  registerRules(title, subject, allRules, (rule) => runRule(subject, rule), runner);
}

/** The rules by their groups. Also used for the rules that need processes. */
export function registerRules<OneRule extends ConformanceRule & Need>(
  title: string,
  subject: StoreSubject,
  rules: readonly OneRule[],
  run: (rule: OneRule) => Promise<RuleResult>,
  { describe, it }: TestRunner,
): void {
  const register = (rule: OneRule): void => {
    const testTitle = `${rule.id === rule.name ? '' : `${rule.id} `}${rule.name}: ${rule.rule}`;
    const reason = notClaimed(subject, rule);
    if (reason !== undefined) {
      // Jest wants a body also for what it skips.
      it.skip(`${testTitle} [${reason}]`, async () => undefined);
      return;
    }
    // The third argument is the timeout of vitest, jest and bun; mocha and node:test do not look at it.
    const itWithin = it as (name: string, body: TestBody, timeoutMs: number) => unknown;
    itWithin(
      testTitle,
      bodyOf(() => run(rule)),
      TEST_TIMEOUT_MS,
    );
  };
  describe(title, () => {
    for (const group of new Set(rules.map(groupOf))) {
      describe(group, () => {
        for (const rule of rules) if (groupOf(rule) === group) register(rule);
      });
    }
  });
}

type TestBody = (this: unknown, ...args: readonly unknown[]) => Promise<void>;

function bodyOf(run: () => Promise<RuleResult>): TestBody {
  // With rest arguments its `length` is 0: mocha and jest would take a named one for a callback.
  return async function (...args) {
    const { failure, outcome, reason } = await run();
    if (failure !== undefined) throw failure;
    if (outcome === 'skipped') skipNow([this, ...args], reason ?? '');
  };
}

/** What a store lacks is only known once it is open. Runners that can still skip then (vitest, mocha, node:test) show it; elsewhere it passes. */
function skipNow(contexts: readonly unknown[], reason: string): void {
  for (const context of contexts) {
    const skip = (context as { readonly skip?: unknown } | null | undefined)?.skip;
    if (typeof skip !== 'function') continue;
    Reflect.apply(skip, context, [reason]);
    return;
  }
}
