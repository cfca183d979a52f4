/** Three processes decide the calls of one step at random, killed and stopped at random: what was approved runs at most once. */
import { expect, it } from 'vitest';
import { describeViolations, findViolations } from '../src/checker.ts';
import { seededRandom } from '../src/random.ts';
import { Rig } from '../src/rig.ts';
import { call, summarize, torture, type Script } from '../src/torture.ts';

const ROUNDS = 500;

/** Two to five calls that a person decides, and free ones in between; each step is a run of its own. */
const steps: Script = [
  [call('refund', 5), call('work', 3), call('refund', 5)],
  [],
  [call('work', 3), call('refund', 2), call('refund', 8), call('work', 2), call('refund', 4)],
  [],
  [call('refund', 1), call('refund', 6), call('work', 4), call('refund', 3), call('refund', 2)],
  [],
  [
    call('refund', 3),
    call('refund', 2),
    call('refund', 5),
    call('work', 1),
    call('refund', 2),
    call('refund', 4),
  ],
  [],
];

it(
  'runs each approved call at most once, gives each call one result, and ends every run',
  { timeout: 900_000 },
  async () => {
    const rig = new Rig('deciders');
    const evidence = await torture(rig, {
      durationMs: 600_000,
      calmMs: 500,
      finishedRuns: ROUNDS,
      random: seededRandom('deciders'),
      script: steps,
      chances: { send: 20, resume: 8 },
    });
    const summary = summarize(evidence);
    console.log('deciders:', JSON.stringify(summary));
    expect(describeViolations(findViolations(evidence))).toBe('');
    for (const [session, checkpoint] of evidence.finals) expect(checkpoint?.status, session).toBe('finished');
    expect(summary.finished).toBeGreaterThanOrEqual(ROUNDS);
    const { kills, stops, busy, decidedBefore } = summary;
    for (const count of [kills, stops, busy, decidedBefore]) expect(count).toBeGreaterThan(0);
  },
);
