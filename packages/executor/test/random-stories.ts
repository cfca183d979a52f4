/** Random stories of a conversation: what its model says, what its tools do, what people decide, and where its processes die. */
import type { CrashPoint } from '@lousho/testing/crash';
import { fc } from './properties.ts';

export type ToolKind =
  | 'free'
  | 'fails'
  | 'picky'
  | 'nobody'
  | 'gated'
  | 'never'
  | 'ask'
  /** Rejects the run the first time. */
  | 'rejects'
  /** Aborts the run while it executes, the first time. */
  | 'aborts'
  /** Puts words into the run while it executes, the first time. */
  | 'enqueues';

interface PlannedCall {
  readonly kind: ToolKind;
  /** How long it takes, in microtasks: shorter or longer than a save. */
  readonly delay: number;
  /** The id that the provider gives it; often used before. */
  readonly id: number;
}
/** The calls of one response. */
type PlannedStep = readonly PlannedCall[];
interface PlannedDecision {
  readonly approved: boolean;
  readonly changes: boolean;
}
/** What one process is asked, and when it dies. */
export interface PlannedProcess {
  readonly asks: 'same' | 'same without id' | 'resume' | 'new';
  readonly dies: CrashPoint | undefined;
  /** Its model fails at this call. */
  readonly modelFailsAt: number | undefined;
  /** A person stops it during this model call. */
  readonly abortsInModelCall: number | undefined;
  readonly isStreamed: boolean;
}
export interface Story {
  /** The responses of the whole conversation, one after the other; behind them it only says "done". */
  readonly steps: readonly PlannedStep[];
  readonly decisions: readonly PlannedDecision[];
  readonly processes: readonly PlannedProcess[];
  readonly toolConcurrency: number | 'unbounded';
  readonly maxSteps: number;
}

const kinds: readonly ToolKind[] = [
  'free',
  'free',
  'fails',
  'picky',
  'nobody',
  'gated',
  'gated',
  'gated',
  'gated',
  'never',
  'ask',
  'rejects',
  'aborts',
  'enqueues',
];
const storeCalls = [
  'acquireLease',
  'load',
  // Most of what can go wrong lies around a save.
  ...Array.from({ length: 8 }, () => 'saveIfLeased'),
  'approvals.save',
  'approvals.delete',
  'releaseLease',
];

const call: fc.Arbitrary<PlannedCall> = fc.record({
  kind: fc.constantFrom(...kinds),
  delay: fc.constantFrom(0, 0, 3, 40),
  id: fc.nat({ max: 2 }),
});
const crash: fc.Arbitrary<CrashPoint> = fc
  .tuple(fc.constantFrom(...storeCalls), fc.integer({ min: 1, max: 7 }), fc.boolean())
  .map(([name, count, isBefore]) => ({ call: `${name}#${count}`, when: isBefore ? 'before' : 'after' }));

const process: fc.Arbitrary<PlannedProcess> = fc.record({
  asks: fc.constantFrom('same', 'same', 'same without id', 'resume', 'new'),
  dies: fc.option(crash, { nil: undefined, freq: 4 }),
  modelFailsAt: fc.option(fc.nat({ max: 2 }), { nil: undefined, freq: 2 }),
  abortsInModelCall: fc.option(fc.nat({ max: 2 }), { nil: undefined, freq: 2 }),
  isStreamed: fc.boolean(),
});

export function story(): fc.Arbitrary<Story> {
  return fc.record({
    steps: fc.array(fc.array(call, { minLength: 1, maxLength: 4 }), { maxLength: 4 }),
    decisions: fc.array(fc.record({ approved: fc.constantFrom(true, true, false), changes: fc.boolean() }), {
      minLength: 1,
      maxLength: 4,
    }),
    processes: fc.array(process, { maxLength: 4 }),
    toolConcurrency: fc.constantFrom(1, 2, 'unbounded' as const),
    maxSteps: fc.integer({ min: 1, max: 6 }),
  });
}
