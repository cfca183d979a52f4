/** Three processes that all run `recover()`, killed and stopped at random: every run comes to its end, once, and poison is given up. */
import { expect, it } from 'vitest';
import { describeViolations, findViolations } from '../src/checker.ts';
import { seededRandom } from '../src/random.ts';
import { POISON, recoveryTorture, summarizeRecovery } from '../src/recovery-torture.ts';
import { Rig } from '../src/rig.ts';
import type { StoreKind } from '../workers/open-store.mjs';

/** `LOUSHO_SECONDS` makes it longer. */
const durationMs = 1_000 * Number(process.env['LOUSHO_SECONDS'] ?? 20);

it.each<StoreKind>(['sqlite', 'file'])(
  'finishes every run, runs nothing again that is recorded, and parks what kills its processes (%s)',
  { timeout: durationMs + 120_000 },
  async (storeKind) => {
    const rig = new Rig('recovery', { storeKind });
    const evidence = await recoveryTorture(rig, {
      durationMs,
      random: seededRandom(`recovery (${storeKind})`),
    });
    const summary = summarizeRecovery(evidence);
    console.log(`recovery (${storeKind}):`, JSON.stringify(summary));
    expect(describeViolations(findViolations(evidence))).toBe('');
    // Ten starts without progress behind the one that it was sent with, a few of them cut before the tool; one replica tells of it.
    expect(summary.poisonStarts).toBeLessThanOrEqual(11);
    expect(summary.parked).toBe(1);
    expect(await rig.load(POISON)).toMatchObject({ status: 'in-progress', startsWithoutProgress: 10 });
    // It was one: holders died and stalled in the middle of calls, and others went on, also while the poison went round.
    const { kills, stops, runs, recovered, callsAgain, finishedBesidePoison } = summary;
    for (const count of [kills, stops, runs, recovered, callsAgain, finishedBesidePoison])
      expect(count).toBeGreaterThan(0);
    // On a busy machine, too, far less than what poison has to wait.
    expect(summary.waitedMs.median).toBeLessThan(5_000);
  },
);
