/** Whatever people decide, in whatever order, and whatever crashes and deploys come between: what was agreed to runs at most once, as agreed. */
import type { CrashPoint } from '@lousho/testing/crash';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ApprovalLife, type Deed, type Deploy } from './support/approval-life.ts';
import type { CallKind } from './support/approval-log.ts';
import { onEveryStore, type StoreName } from './support/world.ts';

/** A failure prints its seed; `LOUSHO_SEED=<number>` replays it, `LOUSHO_CASES=<number>` tries more. */
const { LOUSHO_SEED: given, LOUSHO_CASES: cases } = process.env;
const seed = given === undefined ? Math.floor(Math.random() * 0x7fff_ffff) : Number(given);

/** A disk takes its time. */
const usualCases: { readonly [Name in StoreName]: number } = { memory: 300, sqlite: 60, file: 20 };

/** One to four calls that wait, with free ones in front, between and behind. */
const step: fc.Arbitrary<readonly CallKind[]> = fc
  .array(
    fc.tuple(
      fc.nat({ max: 1 }),
      fc.constantFrom<CallKind>('pay', 'pay', 'mail', 'ask_question', 'handoff'),
      fc.nat({ max: 1 }),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((calls) => calls.flatMap(([before, kind, after]) => [...looks(before), kind, ...looks(after)]));

function looks(count: number): CallKind[] {
  return Array.from({ length: count }, () => 'look');
}

/** Most of what can go wrong lies around the saves of the decision, of the start and of the results. */
const storeCall = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.constant('saveIfLeased'), fc.integer({ min: 1, max: 5 })) },
  {
    weight: 1,
    arbitrary: fc.tuple(
      fc.constantFrom('approvals.load', 'approvals.save', 'approvals.delete'),
      fc.integer({ min: 1, max: 4 }),
    ),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('acquireLease', 'load', 'releaseLease'), fc.constant(1)) },
);
const crash: fc.Arbitrary<CrashPoint> = fc
  .tuple(storeCall, fc.boolean())
  .map(([[name, count], isBefore]) => ({ call: `${name}#${count}`, when: isBefore ? 'before' : 'after' }));

const where = fc.record({
  deploy: fc.constantFrom<Deploy>(
    'same',
    'same',
    'same',
    'same',
    'drifted',
    'strict',
    'unequipped',
    'unstaffed',
  ),
  dies: fc.option(crash, { nil: undefined, freq: 2 }),
});
const pick = fc.nat({ max: 3 });
const verdict = fc.constantFrom('yes' as const, 'yes' as const, 'no' as const, 'changed' as const);
const decide = fc.record({ type: fc.constant('decide' as const), pick, verdict, where });
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 6, arbitrary: decide },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('resume' as const), isSend: fc.boolean(), where }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('wrong' as const),
      pick,
      way: fc.constantFrom('unknown', 'malformed', 'decided', 'args', 'answer', 'word'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('race' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('together' as const), pick, verdict }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('wait' as const) }) },
);
const life = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 2 }),
  expires: fc.boolean(),
  toolConcurrency: fc.constantFrom(1 as const, 'unbounded' as const),
  gatesHandoffs: fc.boolean(),
  start: fc.option(crash, { nil: undefined, freq: 3 }),
  deeds: fc.array(deed, { maxLength: 12 }),
});

onEveryStore('what people decide', (world, store) => {
  const numRuns = cases === undefined ? usualCases[store] : Number(cases);

  it(`is what runs, at most once, whatever comes between (LOUSHO_SEED=${seed})`, async () => {
    console.log(`Approval lives: LOUSHO_SEED=${seed} LOUSHO_CASES=${numRuns}`);
    const other = world.otherProcess();
    let count = 0;
    await fc.assert(
      fc.asyncProperty(life, async ({ start, deeds, ...plan }) => {
        count += 1;
        const lived = new ApprovalLife({ world, other }, `life-${count}`, plan);
        await lived.live({ type: 'resume', isSend: true, where: { deploy: 'same', dies: start } });
        for (const each of deeds) await lived.live(each);
        expect(await lived.end()).toEqual([]);
      }),
      { numRuns, seed },
    );
  }, 120_000);
});
