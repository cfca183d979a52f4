/** What a store with leases promises about who may execute a run. Renewing and releasing: `lease-ends.ts`. */
import type { Lease } from '@lousho/contract';
import { fenceOf } from '../expectations.ts';
import { Mismatch, NotApplicable } from '../failure.ts';
import { ofAtomicLeases, ofDurableLeases, ofLeases, type Rule } from '../rule.ts';
import type { LeasingStore, World } from '../world.ts';

const FREE = 'A free lease must be given.';

export const leaseRules: readonly Rule[] = [
  {
    id: 'L1',
    name: 'leases/one-winner',
    rule: 'Of owners that ask at one moment for a free lease, exactly one gets it.',
    ...ofAtomicLeases,
    run: raceForLeases,
  },
  {
    id: 'L2',
    name: 'leases/held-is-refused',
    rule: 'While an owner holds a lease that has not expired, every other owner gets `false` on every handle, the proof of L5 aside.',
    ...ofAtomicLeases,
    async run(world) {
      const [a, b] = [await world.leases(), await world.leases()];
      await world.expectGranted(() => a.acquireLease('order-1', 'holder', world.longPeriodMs), FREE);
      const expectRefusal = async (when: string): Promise<void> => {
        for (const handle of [a, b, await world.leases()])
          await world.expectFalse(
            () => handle.acquireLease('order-1', 'other', world.longPeriodMs),
            `The lease had not expired ${when}. Refuse with false, do not throw.`,
          );
      };
      await expectRefusal('at all');
      if (world.hasOwnClock) return;
      for (const share of [0.5, 0.25, 0.2]) await world.elapse(world.periodMs * share);
      await expectRefusal('after 95 % of its time');
      await world.elapse(world.periodMs * 0.05 - 1);
      await expectRefusal('a millisecond before its end');
    },
  },
  {
    id: 'L3',
    name: 'leases/expired-is-given-away',
    rule: 'A lease that is not renewed goes to another owner that asks a whole lease period after its expiry, or later.',
    ...ofLeases,
    async run(world) {
      const [holder, other] = [await world.leases(), await world.leases()];
      await world.expectGranted(() => holder.acquireLease('order-1', 'holder', world.periodMs), FREE);
      const askedAtMs = world.nowMs();
      await world.settle();
      // What is left of two periods; an eventual store has used some of them to become visible.
      await world.elapse(Math.max(0, 2 * world.periodMs - (world.nowMs() - askedAtMs)));
      // A clock that really runs is not exact: a few milliseconds are none of this rule.
      if (world.hasOwnClock) await world.elapse(world.periodMs / 2);
      await world.expectGranted(
        () => other.acquireLease('order-1', 'other', world.periodMs),
        'Two lease periods after the last renewal the run must be free, or nobody ever finishes it.',
      );
    },
  },
  {
    id: 'L4',
    name: 'leases/clocks-may-disagree',
    rule: 'A store that several machines may use waits that period before it gives a lease away: their clocks may disagree by as much.',
    ...ofDurableLeases,
    async run(world) {
      if (world.hasOwnClock) throw new NotApplicable("all owners share the store's own clock");
      const [holder, other] = [await world.leases(), await world.leases()];
      await world.expectGranted(() => holder.acquireLease('order-1', 'holder', world.periodMs), FREE);
      const hint = 'Pass the lease period as `graceMs` to takeLease.';
      await world.elapse(world.periodMs);
      await world.expectFalse(() => other.acquireLease('order-1', 'other', world.periodMs), hint);
      await world.elapse(world.periodMs - 1);
      await world.expectFalse(() => other.acquireLease('order-1', 'third', world.periodMs), hint);
    },
  },
  {
    id: 'L5',
    name: 'leases/no-proof-no-take-over',
    rule: "A lease is given away earlier only with proof: its holder is gone, or it stood still for two periods of the taker's own clock. What is unclear is no proof.",
    ...ofLeases,
    run: keepRenewing,
  },
  {
    id: 'L6',
    name: 'leases/asking-again-renews',
    rule: 'The owner of a lease may ask for it again: it is renewed, under the same fence.',
    ...ofLeases,
    async run(world) {
      const [holder, other] = [await world.leases(), await world.leases()];
      const first = await world.expectGranted(
        () => holder.acquireLease('order-1', 'holder', world.periodMs),
        FREE,
      );
      const again = await world.expectGranted(
        () => holder.acquireLease('order-1', 'holder', world.longPeriodMs * 10),
        'The owner that asks is the one that holds it: a retry must not lock itself out.',
      );
      if (fenceOf(first) !== fenceOf(again))
        throw new Mismatch(first, again, 'It is the same lease: its fence changes with a take-over only.');
      await world.elapse(world.periodMs * 2.5);
      await world.expectFalse(
        () => other.acquireLease('order-1', 'other', world.periodMs),
        'Asking again must move the expiry, as a renewal does.',
      );
    },
  },
  {
    id: 'L7',
    name: 'leases/fence-grows',
    rule: 'Each take-over has a higher fence than every lease of the id before it, also after a release, a delete and a restart.',
    ...ofLeases,
    run: collectFences,
  },
];

const ROUNDS = 12;
const CALLERS = 16;

async function raceForLeases(world: World): Promise<void> {
  const handles: LeasingStore[] = [];
  while (handles.length < 4) handles.push(await world.leases());
  for (let round = 0; round < ROUNDS; round += 1) {
    // A new id each time, and one that was held and released before.
    const id = round % 2 === 0 ? `race-${round}` : 'race-again';
    const asked = Array.from({ length: CALLERS }, (_none, index) => {
      const handle = handles[index % handles.length] as LeasingStore;
      const owner = `owner-${round}-${index}`;
      return handle.acquireLease(id, owner, world.longPeriodMs).then((lease) => ({ handle, owner, lease }));
    });
    const outcomes = await world.done(Promise.all(asked));
    const winners = outcomes.filter(({ lease }) => lease !== false);
    const hint =
      'Read, decide and write the lease in one atomic step: a transaction, or a write on condition.';
    if (winners.length !== 1)
      throw new Mismatch(`1 winner of ${CALLERS}`, `${winners.length} winners in round ${round + 1}`, hint);
    // Those who lost really asked, and really have nothing: none of them can renew.
    for (const { handle, owner, lease } of outcomes) {
      const renewed = await world.done(handle.renewLease(id, owner, world.longPeriodMs));
      if (renewed !== (lease !== false))
        throw new Mismatch(lease !== false, renewed, `Who got the lease can renew it, nobody else. ${hint}`);
      if (lease !== false) await handle.releaseLease(id, owner, fenceOf(lease));
    }
  }
}

/** A holder that renews in time keeps its lease against one who asks all the time and never sees the expiry pass. */
async function keepRenewing(world: World): Promise<void> {
  const [holder, other] = [await world.leases(), await world.leases()];
  // Really waited for where the clock is the store's own: with room for a machine that stops for a second.
  const periodMs = world.hasOwnClock ? 2_500 : world.periodMs;
  const lease = await world.expectGranted(() => holder.acquireLease('order-1', 'holder', periodMs), FREE);
  const renewals = world.hasOwnClock ? 12 : 24;
  for (let renewal = 1; renewal <= renewals; renewal += 1) {
    await world.elapse(periodMs / 4);
    await world.expectFalse(
      () => other.acquireLease('order-1', 'other', periodMs),
      `Its holder had renewed it ${renewal - 1} times, always in time: neither gone nor standing still. ` +
        'A lease that was renewed has another renewCount; compare that, not only the fence.',
    );
    await world.expectTrue(
      () => holder.renewLease('order-1', 'holder', periodMs, fenceOf(lease)),
      'The holder renewed in time and must keep its lease.',
    );
  }
}

/** Takes the lease over in every way there is. */
async function collectFences(world: World): Promise<void> {
  let [a, b] = [await world.leases(), await world.leases()];
  const leases: { readonly after: string; readonly lease: Lease | true }[] = [];
  const take = async (handle: LeasingStore, owner: string, after: string): Promise<number | undefined> => {
    const lease = await world.expectGranted(
      () => handle.acquireLease('order-1', owner, world.periodMs),
      `The lease was free after ${after}.`,
    );
    const before = leases.at(-1);
    const [fence, fenceBefore] = [fenceOf(lease), before && fenceOf(before.lease)];
    if (fence === undefined)
      throw new Mismatch(
        { fence: 'a number' },
        lease,
        'Give { fence }: without it a stalled owner cannot be told apart.',
      );
    if (fenceBefore !== undefined && fence <= fenceBefore)
      throw new Mismatch(
        `a fence above ${fenceBefore}`,
        fence,
        `It was taken after ${after}. Keep the last number when a lease ends.`,
      );
    leases.push({ after, lease });
    await world.settle();
    return fence;
  };
  const first = await take(a, 'owner-1', 'nothing');
  await a.releaseLease('order-1', 'owner-1', first);
  await world.settle();
  await take(b, 'owner-2', 'a release');
  await world.elapseUntilFree();
  await take(a, 'owner-3', 'its expiry');
  await b.delete('order-1');
  await world.settle();
  const fourth = await take(b, 'owner-4', 'a delete');
  await b.releaseLease('order-1', 'owner-4', fourth);
  await b.delete('order-1');
  await world.settle();
  if (await world.hasManyHandles()) {
    for (const store of [...world.opened]) await world.end(store);
    [a, b] = [await world.leases(), await world.leases()];
  }
  await take(a, 'owner-5', 'a release, a delete and a restart');
  await world.elapseUntilFree();
  await take(b, 'owner-6', 'its expiry');
}
