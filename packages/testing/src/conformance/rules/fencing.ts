/** What a store with leases promises about saves under them: the stalled owner of a lost lease writes nothing. */
import type { Checkpoint } from '@lousho/contract';
import { assertEqual, awaitedLater, fenceOf } from '../expectations.ts';
import { Mismatch, NotApplicable } from '../failure.ts';
import { ofAtomicLeases, ofLeases, type Rule } from '../rule.ts';
import { growingRun } from '../sample-runs.ts';
import type { LeasingStore, World } from '../world.ts';

const FREE = 'A free lease must be given.';

export const fencingRules: readonly Rule[] = [
  {
    id: 'F1',
    name: 'fencing/holder-saves',
    rule: '`saveIfLeased` saves as `save` does, and gives `true`, while `owner` (and `fence`) holds the lease, expired or not.',
    ...ofLeases,
    async run(world) {
      const [holder, reader] = [await world.leases(), await world.leases()];
      const states = growingRun(world.now(), 4);
      const lease = await world.expectGranted(
        () => holder.acquireLease('order-1', 'holder', world.periodMs),
        FREE,
      );
      const fences = [fenceOf(lease), undefined, fenceOf(lease), undefined];
      for (const [index, state] of states.entries()) {
        if (index === 2) await world.elapse(world.periodMs * 3);
        await world.expectTrue(
          () => holder.saveIfLeased('order-1', state, 'holder', fences[index]),
          index < 2
            ? 'It holds the lease.'
            : 'The lease expired, but nobody took it over: nobody else can have written.',
        );
        await world.expectLoads([holder, reader], 'order-1', state, 'It gave true, so it must have saved.');
      }
      await expectTraces(world, reader, 'order-1', states);
    },
  },
  {
    id: 'F2',
    name: 'fencing/others-leave-no-trace',
    rule: '`saveIfLeased` of any other owner gives `false` and leaves no trace: not in the checkpoint, not in the history, not in the list.',
    ...ofLeases,
    run: saveAsOthers,
  },
  {
    id: 'F3',
    name: 'fencing/check-and-write-are-one-step',
    rule: '`saveIfLeased` checks and writes in one atomic step: once a take-over has resolved, no save of the former holder becomes visible, also none that had begun.',
    ...ofAtomicLeases,
    run: raceStalledHolder,
  },
  {
    id: 'F4',
    name: 'fencing/same-owner-other-fence',
    rule: 'The same owner under another fence is another owner to `saveIfLeased`.',
    ...ofLeases,
    async run(world) {
      const [a, b] = [await world.leases(), await world.leases()];
      const [first, second, third] = growingRun(world.now(), 3) as [Checkpoint, Checkpoint, Checkpoint];
      const old = await world.expectGranted(
        () => a.acquireLease('order-1', 'owner', world.longPeriodMs),
        FREE,
      );
      if (fenceOf(old) === undefined) throw new NotApplicable('acquireLease gives no fence (L7)');
      await world.expectTrue(
        () => a.saveIfLeased('order-1', first, 'owner', fenceOf(old)),
        'It holds the lease.',
      );
      await a.releaseLease('order-1', 'owner', fenceOf(old));
      await world.settle();
      const lease = await world.expectGranted(
        () => b.acquireLease('order-1', 'owner', world.longPeriodMs),
        FREE,
      );
      await world.settle();
      await world.expectFalse(
        () => a.saveIfLeased('order-1', third, 'owner', fenceOf(old)),
        'Compare the fence too: this is an earlier execution under the same name.',
      );
      await expectTraces(world, b, 'order-1', [first]);
      await world.expectTrue(
        () => b.saveIfLeased('order-1', second, 'owner', fenceOf(lease)),
        'It holds the lease.',
      );
      await world.expectLoads([a, b], 'order-1', second, 'The save of the holder counts.');
    },
  },
];

/** The checkpoint, the history and the list tell of these saves, and of nothing else. */
export async function expectTraces(
  world: World,
  store: LeasingStore,
  id: string,
  saves: readonly Checkpoint[],
): Promise<void> {
  const hint = 'Check first, and write nothing at all when the owner does not hold the lease.';
  const latest = saves.at(-1);
  if (latest === undefined) await world.expectGone([store], id, hint);
  else await world.expectLoads([store], id, latest, hint);
  await world.expectSaves([store], id, saves, hint);
  if (world.claims.list && store.list !== undefined) {
    const listed = async (): Promise<unknown> =>
      (await store.list?.())?.filter(({ sessionId }) => sessionId === id).map(({ checkpoint }) => checkpoint);
    await world.expectEqual(listed, latest === undefined ? [] : [latest], hint);
  }
}

async function saveAsOthers(world: World): Promise<void> {
  const [a, b] = [await world.leases(), await world.leases()];
  const [mine, next, foreign] = growingRun(world.now(), 3) as [Checkpoint, Checkpoint, Checkpoint];
  const expectRefused = async (
    handle: LeasingStore,
    id: string,
    owner: string,
    fence?: number,
  ): Promise<void> =>
    world.expectFalse(
      () => handle.saveIfLeased(id, foreign, owner, fence),
      `"${owner}" does not hold the lease of "${id}".`,
    );
  await expectRefused(a, 'never-leased', 'other');
  await expectTraces(world, b, 'never-leased', []);

  const lost = await world.expectGranted(() => a.acquireLease('order-1', 'owner-1', world.periodMs), FREE);
  await world.expectTrue(
    () => a.saveIfLeased('order-1', mine, 'owner-1', fenceOf(lost)),
    'It holds the lease.',
  );
  await world.elapseUntilFree();
  const taken = await world.expectGranted(
    () => b.acquireLease('order-1', 'owner-2', world.longPeriodMs),
    FREE,
  );
  await world.settle();
  for (const handle of [a, b]) {
    await expectRefused(handle, 'order-1', 'owner-1', fenceOf(lost));
    await expectRefused(handle, 'order-1', 'owner-1');
    await expectRefused(handle, 'order-1', 'owner-1', fenceOf(taken));
    await expectRefused(handle, 'order-1', 'owner-3', fenceOf(taken));
    await expectTraces(world, handle, 'order-1', [mine]);
  }
  await world.expectTrue(
    () => b.saveIfLeased('order-1', next, 'owner-2', fenceOf(taken)),
    'It holds the lease.',
  );
  await b.releaseLease('order-1', 'owner-2', fenceOf(taken));
  await world.settle();
  await expectRefused(a, 'order-1', 'owner-2', fenceOf(taken));
  await expectRefused(b, 'order-1', 'owner-2');
  await expectTraces(world, a, 'order-1', [mine, next]);
}

const ROUNDS = 12;
/** Where each round really waits for a lease to expire. */
const REAL_ROUNDS = 4;

/** A holder that stalled wakes up and saves again and again, while another takes its lease over. */
async function raceStalledHolder(world: World): Promise<void> {
  const handles = {
    stalled: await world.leases(),
    taker: await world.leases(),
    reader: await world.leases(),
  };
  for (let round = 0; round < (world.hasOwnClock ? REAL_ROUNDS : ROUNDS); round += 1)
    await raceOnce(world, handles, round);
}

async function raceOnce(
  world: World,
  { stalled, taker, reader }: { readonly [Handle in 'stalled' | 'taker' | 'reader']: LeasingStore },
  round: number,
): Promise<void> {
  const id = `race-${round}`;
  const run = growingRun(world.now(), 8) as [Checkpoint, ...Checkpoint[]];
  const lost = await world.expectGranted(() => stalled.acquireLease(id, 'stalled', world.periodMs), FREE);
  const save = async (state: Checkpoint): Promise<boolean> =>
    stalled.saveIfLeased(id, state, 'stalled', fenceOf(lost));
  await world.expectTrue(() => save(run[0]), 'It holds the lease.');
  await world.elapseUntilFree();

  const holder = new StalledHolder(world, save, run.slice(1));
  const saving = awaitedLater(holder.saveOn());
  let atTakeOver: Checkpoint | null | undefined;
  try {
    await world.turns(round % 6);
    const taken = await taker.acquireLease(id, 'taker', world.longPeriodMs);
    holder.isTakenOver = true;
    if (taken === false)
      throw new Mismatch('a lease', taken, 'It had expired long ago (L3), and saves do not renew it.');
    atTakeOver = await reader.load(id);
    // Who lost must have tried after the take-over too.
    await world.turns(2);
  } finally {
    holder.isStopped = true;
    await saving;
  }
  const hint = 'Compare owner and fence in the transaction, or the condition, of the write itself.';
  if (holder.begunBefore === 0 || holder.begunAfter === 0)
    throw new Error('Invariant: the former holder saves before and after the take-over.');
  assertEqual(
    holder.savedAfter,
    0,
    `So many saves of the former holder succeeded that began after the take-over. ${hint}`,
  );
  await world.turns(5);
  assertEqual(
    await world.done(reader.load(id)),
    atTakeOver,
    `A save of the former holder became visible after the take-over had resolved (round ${round + 1}). ${hint}`,
  );
}

/** Begins a save each turn and waits for none, until it is stopped. */
class StalledHolder {
  isTakenOver = false;
  isStopped = false;
  begunBefore = 0;
  begunAfter = 0;
  /** Of those that began after the take-over. */
  savedAfter = 0;

  constructor(
    readonly world: World,
    readonly save: (state: Checkpoint) => Promise<boolean>,
    readonly states: readonly Checkpoint[],
  ) {}

  async saveOn(): Promise<void> {
    const saves: Promise<void>[] = [];
    for (let turn = 0; !this.isStopped; turn += 1) {
      const state = this.states[turn % this.states.length] as Checkpoint;
      saves.push(awaitedLater(this.#begin(state)));
      await this.world.turns(1);
    }
    await this.world.done(Promise.all(saves));
  }

  async #begin(state: Checkpoint): Promise<void> {
    const { isTakenOver } = this;
    if (isTakenOver) this.begunAfter += 1;
    else this.begunBefore += 1;
    const saved = await this.save(state);
    if (isTakenOver && saved) this.savedAfter += 1;
  }
}
