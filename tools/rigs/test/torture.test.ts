/** Three processes at a pool of sessions, killed and stopped at random: every promise holds, and a store that breaks one is caught. */
import { expect, it } from 'vitest';
import { describeViolations, findViolations } from '../src/checker.ts';
import { seededRandom } from '../src/random.ts';
import { Rig } from '../src/rig.ts';
import { summarize, torture } from '../src/torture.ts';
import type { StoreKind } from '../workers/open-store.mjs';

it.each<StoreKind>(['sqlite', 'file'])(
  'holds every promise while processes are killed and stopped (%s)',
  async (storeKind) => {
    const rig = new Rig('torture', { storeKind });
    const random = seededRandom(`torture (${storeKind})`);
    const evidence = await torture(rig, { durationMs: 30_000, random });
    const summary = summarize(evidence);
    console.log(`torture (${storeKind}):`, JSON.stringify(summary));
    expect(describeViolations(findViolations(evidence))).toBe('');
    // It was one: holders died and stalled in the middle of calls, and others wanted the same sessions.
    const { kills, stops, succeeded, busy, callsAgain, takenFromStopped } = summary;
    for (const count of [kills, stops, succeeded, busy, callsAgain + takenFromStopped])
      expect(count).toBeGreaterThan(0);
  },
);

it('catches a store that ignores the fence', async () => {
  const rig = new Rig('torture-unfenced');
  const random = seededRandom('torture without a fence');
  const evidence = await torture(rig, { durationMs: 5_000, random, storeFault: 'no-fence' });
  const broken = new Set(findViolations(evidence).map(({ rule }) => rule));
  console.log('torture without a fence broke:', [...broken].join(', '));
  expect(broken).toContain('G13 G14: only the holder acts');
  expect(broken).toContain('G15: what is acknowledged is kept');
});
