/** Whatever happens to a run, in whatever order: it can be finished, and then every promise about it holds. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Life, type Deed, type ToolName } from './support/life.ts';
import { onEveryStore } from './support/world.ts';

/** A failure prints its seed; `LOUSHO_SEED=<number>` replays it, `LOUSHO_CASES=<number>` tries more. */
const { LOUSHO_SEED: seed, LOUSHO_CASES: cases = '25' } = process.env;

const tool = fc.constantFrom<ToolName>('free', 'free', 'gated', 'flaky', 'broken');
const steps = fc.array(fc.array(tool, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 });
const atEvent = fc.integer({ min: 1, max: 24 });
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ type: fc.constant('send' as const), isNew: fc.boolean() }),
  fc.record({ type: fc.constant('resume' as const) }),
  fc.record({ type: fc.constant('decide' as const), index: fc.nat(3), approved: fc.boolean() }),
  fc.record({ type: fc.constant('abort' as const), atEvent }),
  fc.record({ type: fc.constant('die' as const), atEvent }),
);

onEveryStore('a run', (world) => {
  it('survives sends, resumes, aborts, deaths and decisions in any order', async () => {
    let count = 0;
    await fc.assert(
      fc.asyncProperty(steps, fc.array(deed, { maxLength: 8 }), async (plan, deeds) => {
        count += 1;
        const life = new Life(world, `life-${count}`, plan);
        for (const each of deeds) await life.live(each);
        await life.end();
        expect(await life.problems()).toEqual([]);
      }),
      { numRuns: Number(cases), ...(seed === undefined ? undefined : { seed: Number(seed) }) },
    );
  }, 60_000);
});
