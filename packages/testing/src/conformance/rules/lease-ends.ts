/** What a store with leases promises about renewing, losing and releasing them. */
import { fenceOf } from '../expectations.ts';
import { NotApplicable } from '../failure.ts';
import { ofLeases, type Rule } from '../rule.ts';
import type { LeasingStore, World } from '../world.ts';

const FREE = 'A free lease must be given.';

export const leaseEndRules: readonly Rule[] = [
  {
    id: 'L8',
    name: 'leases/renew',
    rule: '`renewLease` renews a lease that `owner` (and `fence`) still holds, expired or not, and gives `true`.',
    ...ofLeases,
    async run(world) {
      const [holder, other] = [await world.leases(), await world.leases()];
      const lease = await world.expectGranted(
        () => holder.acquireLease('order-1', 'holder', world.periodMs),
        FREE,
      );
      await world.expectTrue(
        () => holder.renewLease('order-1', 'holder', world.periodMs),
        'Without a fence the owner alone counts.',
      );
      await world.elapse(world.periodMs * 3);
      await world.expectTrue(
        () => holder.renewLease('order-1', 'holder', world.longPeriodMs * 10, fenceOf(lease)),
        'It had expired, but nobody took it over: its holder was only late.',
      );
      await world.elapse(world.periodMs * 2.5);
      await world.expectFalse(
        () => other.acquireLease('order-1', 'other', world.periodMs),
        'A renewal must move the expiry.',
      );
    },
  },
  {
    id: 'L9',
    name: 'leases/renew-never-takes',
    rule: '`renewLease` gives `false` and changes nothing once the lease was taken over, released or ended by a delete; it never takes a lease.',
    ...ofLeases,
    run: renewWhatIsLost,
  },
  {
    id: 'L10',
    name: 'leases/expiry-never-moves-back',
    rule: '`renewLease` never moves an expiry back, whatever the clock does.',
    ...ofLeases,
    async run(world) {
      const [holder, other] = [await world.leases(), await world.leases()];
      const hint = 'The new expiry is the later one of the old and of now + ttlMs.';
      await world.expectGranted(
        () => holder.acquireLease('order-1', 'holder', world.longPeriodMs * 10),
        FREE,
      );
      await world.expectTrue(() => holder.renewLease('order-1', 'holder', world.periodMs), 'It is held.');
      await world.elapse(world.periodMs * 2.5);
      await world.expectFalse(() => other.acquireLease('order-1', 'other', world.periodMs), hint);
      if (world.hasOwnClock) return;
      await world.expectGranted(() => holder.acquireLease('order-2', 'holder', world.periodMs), FREE);
      await world.settle();
      world.clock.jumpWall(-20 * world.periodMs);
      await world.expectTrue(() => holder.renewLease('order-2', 'holder', world.periodMs), 'It is held.');
      world.clock.jumpWall(20 * world.periodMs);
      await world.expectFalse(() => other.acquireLease('order-2', 'other', world.periodMs), hint);
    },
  },
  {
    id: 'L11',
    name: 'leases/released-is-free',
    rule: 'A released lease is free at once.',
    ...ofLeases,
    async run(world) {
      const [a, b] = [await world.leases(), await world.leases()];
      let [handle, next]: [LeasingStore, LeasingStore] = [a, b];
      for (const owner of ['owner-1', 'owner-2', 'owner-3', 'owner-4']) {
        const lease = await world.expectGranted(
          () => handle.acquireLease('order-1', owner, world.longPeriodMs),
          'The owner before has released it: the next one need not wait.',
        );
        await world.settle();
        // With its fence and without: both are the holder.
        await handle.releaseLease('order-1', owner, handle === a ? fenceOf(lease) : undefined);
        [handle, next] = [next, handle];
      }
    },
  },
  {
    id: 'L12',
    name: 'leases/only-the-holder-releases',
    rule: '`releaseLease` changes nothing when `owner` (and `fence`) does not hold the lease.',
    ...ofLeases,
    async run(world) {
      const [a, b] = [await world.leases(), await world.leases()];
      const old = await world.expectGranted(
        () => a.acquireLease('order-1', 'owner', world.longPeriodMs),
        FREE,
      );
      await a.releaseLease('order-1', 'owner', fenceOf(old));
      await world.settle();
      const lease = await world.expectGranted(
        () => b.acquireLease('order-1', 'owner', world.longPeriodMs),
        FREE,
      );
      await world.settle();
      for (const handle of [a, b]) {
        await handle.releaseLease('order-1', 'other');
        await handle.releaseLease('order-1', 'other', fenceOf(lease));
        if (fenceOf(old) !== undefined) await handle.releaseLease('order-1', 'owner', fenceOf(old));
        await handle.releaseLease('never-leased', 'owner');
      }
      await world.settle();
      const hint =
        'Compare owner and fence in the step that releases: a late release must not free the lease of another.';
      for (const handle of [a, b])
        await world.expectFalse(() => handle.acquireLease('order-1', 'other', world.longPeriodMs), hint);
      await world.expectTrue(
        () => b.renewLease('order-1', 'owner', world.longPeriodMs, fenceOf(lease)),
        hint,
      );
    },
  },
  {
    id: 'L13',
    name: 'leases/held-are-listed',
    rule: '`heldLeases` gives the record of each lease that was taken and has not ended, expired ones too, in the order of their ids, and changes nothing.',
    ...ofLeases,
    run: listHeld,
  },
];

async function listHeld(world: World): Promise<void> {
  const [holder, other] = [await world.leases(), await world.leases()];
  if (other.heldLeases === undefined) throw new NotApplicable('the store does not list its leases');
  const take = (id: string, periodMs: number) =>
    world.expectGranted(() => holder.acquireLease(id, `owner of ${id}`, periodMs), FREE);
  await take('order-2', world.periodMs);
  await world.elapse(world.periodMs * 1.5);
  const held = await take('Order-1', world.longPeriodMs);
  const released = await take('order-3', world.longPeriodMs);
  await holder.releaseLease('order-3', 'owner of order-3', fenceOf(released));
  await take('order-4', world.longPeriodMs);
  await holder.delete('order-4');
  const expected = [
    { id: 'Order-1', owner: 'owner of Order-1' },
    { id: 'order-2', owner: 'owner of order-2' },
  ];
  for (const handle of [other, holder, other])
    await world.expectEqual(
      async () => (await handle.heldLeases?.())?.map(({ id, owner }) => ({ id, owner })),
      expected,
      'Give what was taken and neither released nor ended by a delete; looking renews and frees nothing.',
    );
  await world.expectTrue(
    () => holder.renewLease('Order-1', 'owner of Order-1', world.longPeriodMs, fenceOf(held)),
    'Looking must leave a lease to its holder.',
  );
}

const LATE = 'Renew only what this owner holds: another execution may be running.';

async function renewWhatIsLost(world: World): Promise<void> {
  const [a, b] = [await world.leases(), await world.leases()];
  await renewWhatWasTaken(world, a, b);
  const released = await world.expectGranted(
    () => a.acquireLease('released', 'owner-1', world.longPeriodMs),
    FREE,
  );
  await a.releaseLease('released', 'owner-1', fenceOf(released));
  await world.expectGranted(() => a.acquireLease('deleted', 'owner-1', world.longPeriodMs), FREE);
  await a.delete('deleted');
  const again = await world.expectGranted(() => a.acquireLease('again', 'owner-1', world.longPeriodMs), FREE);
  await a.releaseLease('again', 'owner-1', fenceOf(again));
  await world.expectGranted(() => a.acquireLease('again', 'owner-1', world.longPeriodMs), FREE);
  await world.settle();
  if (fenceOf(again) !== undefined)
    await world.expectFalse(
      () => a.renewLease('again', 'owner-1', world.longPeriodMs, fenceOf(again)),
      'The same owner under another fence is another holder.',
    );
  for (const id of ['released', 'deleted', 'never-leased']) {
    await world.expectFalse(() => a.renewLease(id, 'owner-1', world.longPeriodMs), `${LATE} This id: ${id}.`);
    await world.expectGranted(
      () => b.acquireLease(id, 'owner-2', world.longPeriodMs),
      `A renewal that was refused must leave the lease of "${id}" free.`,
    );
  }
}

/** The renewal of the former holder is refused, and the lease of the new one stays what it was: to its fence and to its expiry. */
async function renewWhatWasTaken(world: World, a: LeasingStore, b: LeasingStore): Promise<void> {
  const lost = await world.expectGranted(() => a.acquireLease('taken', 'owner-1', world.periodMs), FREE);
  await world.elapseUntilFree();
  const taken = await world.expectGranted(() => b.acquireLease('taken', 'owner-2', world.periodMs), FREE);
  await world.settle();
  for (const fence of [undefined, fenceOf(lost), fenceOf(taken)])
    await world.expectFalse(() => a.renewLease('taken', 'owner-1', world.longPeriodMs * 100, fence), LATE);
  await world.expectTrue(
    () => b.renewLease('taken', 'owner-2', world.periodMs, fenceOf(taken)),
    'A renewal that was refused must not touch the lease of the one who holds it.',
  );
  await world.settle();
  await world.expectFalse(() => a.renewLease('taken', 'owner-1', world.longPeriodMs * 100), LATE);
  await world.elapseUntilFree();
  await world.expectGranted(
    () => a.acquireLease('taken', 'owner-3', world.longPeriodMs),
    'A renewal that was refused must not move the expiry of the lease of another.',
  );
}
