/** One rule in a fresh world: run, judge, clean up. */
import { platformClock } from '@lousho/contract';
import { manualClock } from '../manual-clock.ts';
import { isNamedError } from './expectations.ts';
import { ConformanceFailure, Mismatch, NotApplicable, type Finding } from './failure.ts';
import type { ConformanceRule, Need, Rule } from './rule.ts';
import type { StoreSubject } from './subject.ts';
import { hung, watchdog, type Watchdog } from './watchdog.ts';
import { closeMethodOf, World } from './world.ts';

export interface RuleResult {
  readonly rule: ConformanceRule;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly failure?: ConformanceFailure;
  /** Why it was skipped. */
  readonly reason?: string;
  readonly durationMs: number;
}

/** How long a store may take for one answer, in real time. Slow disks take a second; a call that never settles takes for ever. */
const PATIENCE_MS = 15_000;

/** Never rejects: what the store or the subject throws is a failure. */
export async function runRule(
  subject: StoreSubject,
  rule: Rule,
  patienceMs: number = PATIENCE_MS,
): Promise<RuleResult> {
  return runInWorld(subject, rule, {
    patienceMs,
    async open(dog) {
      const clock = manualClock();
      return new World(subject, await subject.createStorage(clock), clock, dog);
    },
    async close({ opened, storage }) {
      // What close rejects with is a matter of Z5 and Z6, not of this rule.
      await Promise.allSettled([...opened].map(async (store) => closeMethodOf(store)?.()));
      await storage.destroy();
    },
  });
}

/** Why the rule is not asked of a store with these claims. */
export function notClaimed({ claims }: StoreSubject, { needs, claim }: Need): string | undefined {
  return needs(claims) ? undefined : `not claimed: ${claim}`;
}

/** What a rule runs in. */
interface WorldOptions<OneWorld> {
  readonly patienceMs: number;
  open(dog: Watchdog): Promise<OneWorld>;
  close(world: OneWorld): Promise<void>;
}
type RuleIn<OneWorld> = ConformanceRule & Need & { run(world: OneWorld): Promise<void> };
type Verdict = Pick<RuleResult, 'outcome' | 'failure' | 'reason'>;

export async function runInWorld<OneWorld>(
  subject: StoreSubject,
  rule: RuleIn<OneWorld>,
  options: WorldOptions<OneWorld>,
): Promise<RuleResult> {
  const startMs = platformClock.monotonicMs();
  const reason = notClaimed(subject, rule);
  const verdict: Verdict =
    reason === undefined ? await judge(subject, rule, options) : { outcome: 'skipped', reason };
  return { rule, ...verdict, durationMs: platformClock.monotonicMs() - startMs };
}

async function judge<OneWorld>(
  subject: StoreSubject,
  rule: RuleIn<OneWorld>,
  options: WorldOptions<OneWorld>,
): Promise<Verdict> {
  const { patienceMs } = options;
  const dog = watchdog(patienceMs);
  const fail = (finding: Finding): Verdict => ({
    outcome: 'failed',
    failure: new ConformanceFailure(subject.name, rule, finding),
  });
  let world: OneWorld | undefined;
  let verdict: Verdict = { outcome: 'passed' };
  try {
    const opened = await dog.guard(options.open(dog));
    if (opened === hung) return fail(noAnswer('createStorage of the subject', patienceMs));
    world = opened;
    const end = await dog.guard(rule.run(world));
    if (end === hung) verdict = fail(noAnswer('a call of the store', patienceMs));
  } catch (error) {
    if (error instanceof NotApplicable) verdict = { outcome: 'skipped', reason: error.message };
    else verdict = fail(findingOf(error));
  }
  if (world === undefined) return verdict;
  const trouble = await troubleWith(dog.guard(options.close(world)));
  return trouble !== undefined && verdict.outcome !== 'failed' ? fail(trouble) : verdict;
}

async function troubleWith(closing: Promise<unknown>): Promise<Finding | undefined> {
  const expected = 'the storage can be given back: destroy() of the subject resolves';
  try {
    if ((await closing) !== hung) return undefined;
    return { expected, actual: 'it does not', hint: 'Does a handle never close?' };
  } catch (error) {
    const hint =
      'This is the subject, not a promise: storage that is not given back may disturb the next rule.';
    return { expected, actual: error, hint, cause: error };
  }
}

function noAnswer(what: string, patienceMs: number): Finding {
  return {
    expected: `an answer within ${patienceMs / 1_000} s`,
    actual: `${what} did not settle`,
    hint: 'Does it wait for a timer of the manual clock, for a lock, or for an event that has already passed?',
  };
}

function findingOf(error: unknown): Finding {
  if (error instanceof Mismatch) {
    const { expected, actual, hint } = error;
    return { expected, actual, hint };
  }
  return {
    expected: 'the calls of this rule resolve',
    actual: error,
    hint: isNamedError(error)
      ? 'The stack of the cause shows which call was refused.'
      : 'The store threw something that the contract does not name (C3); the stack of the cause shows which call.',
    cause: error,
  };
}
