/** The weaker sentences, for stores that claim less: what is promised once the others can see it. */
import type { Checkpoint } from '@lousho/contract';
import { fenceOf } from '../expectations.ts';
import { Mismatch } from '../failure.ts';
import { ofBestEffortLeases, ofEventual, type Rule } from '../rule.ts';
import { beginRun, growingRun } from '../sample-runs.ts';
import type { World } from '../world.ts';
import { expectTraces } from './fencing.ts';

const FREE = 'A free lease must be given.';

export const weakerRules: readonly Rule[] = [
  {
    id: 'W1',
    name: 'weaker/visible-lease-excludes',
    rule: "With `best-effort` leases, an owner that asks after another's lease became visible is refused.",
    ...ofBestEffortLeases,
    async run(world) {
      const [a, b] = [await world.leases(), await world.leases()];
      await world.expectGranted(() => a.acquireLease('order-1', 'holder', world.longPeriodMs), FREE);
      await world.settle();
      for (const handle of [a, b, await world.leases()])
        await world.expectFalse(
          () => handle.acquireLease('order-1', 'other', world.longPeriodMs),
          'Its lease was visible to every handle by then, and had not expired.',
        );
      await world.expectTrue(
        () => a.renewLease('order-1', 'holder', world.longPeriodMs),
        'Those who were refused must change nothing.',
      );
    },
  },
  {
    id: 'W2',
    name: 'weaker/visible-take-over-fences',
    rule: 'With `best-effort` leases, `saveIfLeased` refuses an owner once the take-over became visible.',
    ...ofBestEffortLeases,
    async run(world) {
      const [stalled, taker] = [await world.leases(), await world.leases()];
      const [mine, theirs, late] = growingRun(world.now(), 3) as [Checkpoint, Checkpoint, Checkpoint];
      const lost = await world.expectGranted(
        () => stalled.acquireLease('order-1', 'stalled', world.periodMs),
        FREE,
      );
      await world.expectTrue(
        () => stalled.saveIfLeased('order-1', mine, 'stalled', fenceOf(lost)),
        'It holds the lease.',
      );
      await world.settle();
      await world.elapseUntilFree();
      const taken = await world.expectGranted(
        () => taker.acquireLease('order-1', 'taker', world.longPeriodMs),
        FREE,
      );
      await world.expectTrue(
        () => taker.saveIfLeased('order-1', theirs, 'taker', fenceOf(taken)),
        'It holds the lease.',
      );
      await world.settle();
      await world.expectFalse(
        () => stalled.saveIfLeased('order-1', late, 'stalled', fenceOf(lost)),
        'Read the lease again before each save, and compare owner and fence.',
      );
      await expectTraces(world, taker, 'order-1', [mine, theirs]);
    },
  },
  {
    id: 'W3',
    name: 'weaker/visible-in-the-end-and-in-order',
    rule: 'With `eventual` consistency, each write becomes visible to every handle in the end, and writes of one id in their order.',
    ...ofEventual,
    run: watchWritesArrive,
  },
];

const SAVES = 6;

async function watchWritesArrive(world: World): Promise<void> {
  const [writer, reader] = [await world.checkpoints(), await world.checkpoints()];
  const states = growingRun(world.now(), SAVES).map((state, index) => ({
    ...state,
    traceparent: String(index + 1),
  }));
  const seen: number[] = [0];
  const look = async (): Promise<void> => {
    const loaded = await world.done(reader.load('order-1'));
    const { traceparent = 0 } = loaded ?? {};
    seen.push(Number(traceparent));
  };
  for (const state of states) {
    await writer.save('order-1', state);
    await look();
    await world.elapse(world.hasOwnClock ? 50 : 7_000);
    await look();
  }
  const hint = 'A handle that has seen a save must not go back to an earlier one.';
  await world.expectLoads(
    [reader, writer, await world.checkpoints()],
    'order-1',
    states.at(-1) as Checkpoint,
    'The last save must become visible.',
  );
  await look();
  const isOrdered = seen.every((save, index) => index === 0 || save >= (seen[index - 1] ?? 0));
  if (!isOrdered) throw new Mismatch('saves in their order', seen, hint);
  await writer.delete('order-1');
  await world.expectGone([reader, writer], 'order-1', 'A delete must become visible too.');
  const anew = beginRun(world.now());
  await writer.save('order-1', anew);
  await world.expectLoads([reader], 'order-1', anew, 'A save behind a delete must become visible.');
}
