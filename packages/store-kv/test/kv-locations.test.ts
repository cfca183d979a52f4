/** What a namespace without compare-and-swap, a minute late at other locations, can do and cannot: the limits stand in the README. */
import { isDeepStrictEqual } from 'node:util';
import { deepFreeze, type ApprovalRecord, type Checkpoint, type Lease } from '@lousho/contract';
import { manualClock, type ManualClock } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { KVStore, type KVStoreOptions } from '../src/index.ts';
import { ExactKV } from './support/exact-kv.ts';
import { seededRandom } from './support/random.ts';
import { beginRun, last, nextTurn, runOf } from './support/runs.ts';
import { SimKV, type SimOptions } from './support/sim-kv.ts';
import { waitingPorts } from './support/waiting-ports.ts';

const MINUTE = 60_000;

function givenLocations(
  seed = 3,
  options: Partial<SimOptions> = {},
): {
  readonly clock: ManualClock;
  readonly sim: SimKV;
  readonly at: (location: number, options?: KVStoreOptions) => KVStore;
} {
  const clock = manualClock();
  const sim = new SimKV({ clock, random: seededRandom(seed), ...options });
  return {
    ...{ clock, sim },
    at: (location, storeOptions) =>
      new KVStore(sim.at(location), { ports: waitingPorts(clock), ...storeOptions }),
  };
}

describe('leases', () => {
  it.each([1, 2, 3, 4, 5, 6])(
    'go to one of those who ask at one moment and location, seed %i',
    async (seed) => {
      const { at } = givenLocations(seed);
      const stores = [at(0), at(0), at(0)];
      const asked = stores.flatMap(({ checkpoints }, store) =>
        [0, 1].map((index) => checkpoints.acquireLease('order-7', `owner-${store}-${index}`, 10 * MINUTE)),
      );
      const won = (await Promise.all(asked)).filter((lease) => lease !== false);
      expect(won.length).toBe(1);
    },
  );

  it('go to the last who wrote, where nothing refuses a second write', async () => {
    const clock = manualClock();
    const kv = new ExactKV(clock);
    const stores = [1, 2, 3].map(() => new KVStore(kv, { ports: waitingPorts(clock) }).checkpoints);
    const asked = stores.map((store, index) => store.acquireLease('order-7', `owner-${index}`, MINUTE));
    const won = (await Promise.all(asked)).map((lease) => lease !== false);
    expect(won).toEqual([false, false, true]);
  });

  it('may go to two at two locations; once they see each other, one of them is stopped', async () => {
    const { clock, at } = givenLocations();
    const [here, there] = [at(0).checkpoints, at(1).checkpoints];
    const mine = await here.acquireLease('order-7', 'here', 10 * MINUTE);
    const theirs = await there.acquireLease('order-7', 'there', 10 * MINUTE);
    // N9: nothing in KV could have told them apart.
    expect([mine !== false, theirs !== false]).toEqual([true, true]);
    await clock.advance(3 * MINUTE);
    const [state] = runOf(0) as [Checkpoint];
    const saved = [
      await here.saveIfLeased('order-7', state, 'here', (mine as Lease).fence),
      await there.saveIfLeased('order-7', state, 'there', (theirs as Lease).fence),
    ];
    expect(saved.filter(Boolean).length).toBe(1);
  });

  it.each([1, 2, 3, 4, 5, 6])(
    'that went to two holders leave one of them within two minutes, though both renew all the time, seed %i',
    async (seed) => {
      const { clock, at } = givenLocations(seed);
      const holders = [at(0).checkpoints, at(1).checkpoints];
      const leases = await Promise.all(
        holders.map((store, index) => store.acquireLease('order-7', `owner-${index}`, 30_000)),
      );
      expect(leases.every((lease) => lease !== false)).toBe(true);
      const states = runOf(20);
      let running = [0, 1];
      for (let beat = 1; beat <= 12; beat += 1) {
        await clock.advance(10_000);
        const goesOn = running.map(async (index) => {
          const [store, { fence }] = [holders[index] as (typeof holders)[0], leases[index] as Lease];
          const isRenewed = await store.renewLease('order-7', `owner-${index}`, 30_000, fence);
          const state = states[beat] as Checkpoint;
          return isRenewed && (await store.saveIfLeased('order-7', state, `owner-${index}`, fence));
        });
        const outcomes = await Promise.all(goesOn);
        running = running.filter((_index, position) => outcomes[position]);
      }
      expect(running.length).toBe(1);
    },
  );

  it('are not lost when a location shows for a moment what was there before', async () => {
    const { clock, at } = givenLocations();
    const stale = new SimKV({ clock, random: seededRandom(1) });
    const namespace = stale.at(0);
    let isStale = false;
    const before = await namespace.get('lousho/order-7#lease');
    const { checkpoints } = new KVStore(
      {
        ...namespace,
        get: async (key) => (isStale && key === 'lousho/order-7#lease' ? before : namespace.get(key)),
      },
      { ports: waitingPorts(clock) },
    );
    const lease = (await checkpoints.acquireLease('order-7', 'holder', 30_000)) as Lease;
    isStale = true;
    const [state] = runOf(0) as [Checkpoint];
    expect(await checkpoints.saveIfLeased('order-7', state, 'holder', lease.fence)).toBe(true);
    expect(await checkpoints.renewLease('order-7', 'holder', 30_000, lease.fence)).toBe(true);
    expect(await at(0).checkpoints.saveIfLeased('order-7', state, 'holder', lease.fence)).toBe(false);
  });

  it('of a run that executes for days stay its own', async () => {
    const { clock, at } = givenLocations();
    const { checkpoints } = at(0);
    const lease = (await checkpoints.acquireLease('order-7', 'holder', 10 * MINUTE)) as Lease;
    for (let hour = 0; hour < 72; hour += 1) {
      await clock.advance(60 * MINUTE);
      // One late renewal after the other: nobody else asks.
      expect(await checkpoints.renewLease('order-7', 'holder', 120 * MINUTE, lease.fence)).toBe(true);
    }
    expect(await at(1).checkpoints.acquireLease('order-7', 'other', MINUTE)).toBe(false);
    const [state] = runOf(0) as [Checkpoint];
    expect(await at(0).checkpoints.saveIfLeased('order-7', state, 'holder', lease.fence)).toBe(true);
  });

  it('go by themselves a day after their last renewal, and the next one has a higher fence', async () => {
    const { clock, sim, at } = givenLocations();
    const { checkpoints } = at(0);
    const first = (await checkpoints.acquireLease('order-7', 'first', 30_000)) as Lease;
    await checkpoints.releaseLease('order-7', 'first', first.fence);
    await clock.advance(25 * 60 * MINUTE);
    expect(await sim.at(1).get('lousho/order-7#lease')).toBeNull();
    const second = (await at(1).checkpoints.acquireLease('order-7', 'second', 30_000)) as Lease;
    expect(second.fence).toBeGreaterThan(first.fence);
  });

  it('stop a save whose lease was lost while it was written', async () => {
    const { clock, at } = givenLocations();
    const [here, taker] = [at(0).checkpoints, at(0).checkpoints];
    const lost = (await here.acquireLease('order-7', 'here', 1_000)) as Lease;
    await clock.advance(10_000);
    const [state] = runOf(0) as [Checkpoint];
    const save = here.saveIfLeased('order-7', state, 'here', lost.fence);
    const taken = taker.acquireLease('order-7', 'taker', 1_000);
    expect([await save, (await taken) !== false]).toEqual([false, true]);
  });
});

describe('a long run', () => {
  it.each([1, 2, 3, 4])(
    'is always loaded whole at another location, also when it is rewritten, seed %i',
    async (seed) => {
      const { clock, at } = givenLocations(seed);
      const random = seededRandom(seed + 100);
      const open = (location: number) => at(location, { historyLimit: 0 }).checkpoints;
      const [writer, reader] = [open(0), open(1)];
      const states: Checkpoint[] = [];
      let seen = -1;
      for (const [index, state] of runOf(120).entries()) {
        // Now and then somebody changes an early message: all parts behind it are others then.
        const content = `changed ${Math.floor(index / 20)}`;
        const messages =
          state.messages.length > 60 ? state.messages.with(50, { role: 'user', content }) : state.messages;
        states.push(deepFreeze({ ...state, messages, traceparent: String(index) }));
        await writer.save('order-7', last(states));
        await clock.advance(Math.floor(random() * 9_000));
        if (random() > 0.4) continue;
        const loaded = await (random() < 0.5 ? reader : open(1)).load('order-7');
        if (loaded === null) continue;
        const found = Number(loaded.traceparent);
        expect(isDeepStrictEqual(loaded, states[found])).toBe(true);
        // W3: never back to an earlier one.
        expect(found).toBeGreaterThanOrEqual(seen);
        seen = found;
      }
      await clock.advance(2 * MINUTE);
      expect(await open(1).load('order-7')).toEqual(last(states));
    },
  );

  it('is gone on at the other location from what is visible there', async () => {
    const { clock, at } = givenLocations();
    const states = runOf(100);
    for (const state of states) await at(0).checkpoints.save('order-7', state);
    await clock.advance(2 * MINUTE);
    const there = at(1).checkpoints;
    const loaded = (await there.load('order-7')) as (typeof states)[0];
    const [next] = nextTurn(loaded);
    await there.save('order-7', next);
    await clock.advance(2 * MINUTE);
    expect(await at(0).checkpoints.load('order-7')).toEqual(next);
  });
});

describe('who takes a lease over at another location', () => {
  it('is not given an older state than the holder before saved, and finds the newest one when it is there', async () => {
    const { clock, at } = givenLocations();
    const [here, there] = [at(0).checkpoints, at(1).checkpoints];
    const [first, , newest] = runOf(1) as [Checkpoint, Checkpoint, Checkpoint];
    await here.save('order-7', first);
    await clock.advance(2 * MINUTE);
    // Somebody looks there, and that location keeps what it has read.
    expect(await there.load('order-7')).toEqual(first);
    const lease = (await here.acquireLease('order-7', 'here', 30_000)) as Lease;
    expect(await here.saveIfLeased('order-7', newest, 'here', lease.fence)).toBe(true);
    await here.releaseLease('order-7', 'here', lease.fence);
    await clock.advance(20_000);
    expect(await there.acquireLease('order-7', 'there', 30_000)).not.toBe(false);
    await expect(there.load('order-7')).rejects.toMatchObject({
      code: 'LOUSHO_STORE_READ_FAILED',
      retryable: true,
      message: expect.stringContaining('not visible here yet'),
    });
    await clock.advance(MINUTE);
    expect(await there.load('order-7')).toEqual(newest);
  });

  it('learns it from the last heartbeat when the holder before died', async () => {
    const { clock, at } = givenLocations();
    const [here, there] = [at(0).checkpoints, at(1).checkpoints];
    const [first, , newest] = runOf(1) as [Checkpoint, Checkpoint, Checkpoint];
    const lease = (await here.acquireLease('order-7', 'here', 5_000)) as Lease;
    await here.saveIfLeased('order-7', first, 'here', lease.fence);
    await clock.advance(2 * MINUTE);
    expect(await there.load('order-7')).toEqual(first);
    await here.saveIfLeased('order-7', newest, 'here', lease.fence);
    await here.renewLease('order-7', 'here', 5_000, lease.fence);
    await clock.advance(15_000);
    expect(await there.acquireLease('order-7', 'there', 30_000)).not.toBe(false);
    await expect(there.load('order-7')).rejects.toMatchObject({ code: 'LOUSHO_STORE_READ_FAILED' });
  });

  it('is never kept from a run for longer than a write travels, nor from another run of that name', async () => {
    const { clock, at } = givenLocations();
    const here = at(0).checkpoints;
    const [first, , newest] = runOf(1) as [Checkpoint, Checkpoint, Checkpoint];
    const lease = (await here.acquireLease('order-7', 'here', 30_000)) as Lease;
    await here.save('order-7', first);
    await here.saveIfLeased('order-7', newest, 'here', lease.fence);
    await here.releaseLease('order-7', 'here', lease.fence);
    const next = at(0);
    await next.checkpoints.acquireLease('order-7', 'next', 30_000);
    // A writer who was not fenced, with fewer saves: two that won one lease may leave this behind.
    await at(0).checkpoints.delete('order-7');
    const another = beginRun({ runId: 'another' });
    await at(0).checkpoints.save('order-7', another);
    expect(await next.checkpoints.load('order-7')).toEqual(another);
    await at(0).checkpoints.delete('order-7');
    await at(0).checkpoints.save('order-7', first);
    await clock.advance(2 * MINUTE);
    expect(await next.checkpoints.load('order-7')).toEqual(first);
  });
});

describe('prune', () => {
  it('reads a run before it goes: a list is older than what was saved since', async () => {
    const { clock, at } = givenLocations(3, { listLagMs: 10 * MINUTE });
    const { checkpoints } = at(0);
    const { status: _status, ...rest } = last(runOf(1));
    const saveFinished = async (): Promise<void> =>
      checkpoints.save('order-7', {
        ...{ ...rest, status: 'finished', finishReason: 'stop' },
        savedAt: new Date(clock.wallMs()).toISOString(),
      });
    await saveFinished();
    const firstSavedAt = new Date(clock.wallMs()).toISOString();
    await clock.advance(60 * MINUTE);
    // The conversation went on and is finished again. No list shows it yet.
    await saveFinished();
    expect((await checkpoints.listHeaders?.())?.[0]?.header?.savedAt).toBe(firstSavedAt);
    expect(await at(0).prune?.({ olderThanMs: 5 * MINUTE })).toMatchObject({ checkpoints: 0 });
    expect(await checkpoints.load('order-7')).not.toBeNull();
  });
});

describe('approvals', () => {
  it.each([1, 2, 3, 4, 5, 6])('are removed by one caller of those at one location, seed %i', async (seed) => {
    const { at } = givenLocations(seed);
    await at(0).approvals.save(approval());
    const removed = await Promise.all([at(0), at(0), at(0)].map(({ approvals }) => approvals.delete('a-1')));
    expect(removed.filter(Boolean).length).toBe(1);
  });

  it('may be removed by two callers at two locations', async () => {
    const { clock, at } = givenLocations();
    await at(0).approvals.save(approval());
    await clock.advance(2 * MINUTE);
    // Each location keeps what it has read: the other's removal is not seen for a minute.
    const stores = [at(0), at(1)];
    for (const { approvals } of stores) await approvals.load('a-1');
    const removed: unknown[] = [];
    for (const { approvals } of stores) {
      removed.push(await approvals.delete('a-1'));
      await clock.advance(5_000);
    }
    expect(removed).toEqual([true, true]);
  });
});

function approval(): ApprovalRecord {
  return {
    ...{ id: 'a-1', runId: 'run00001', agentName: 'agent', toolCallId: 'call_1' },
    ...{ toolName: 'charge', args: {}, argsHash: '', checkpointId: 'order-7' },
    kind: 'tool',
    createdAt: '2026-01-01T00:00:00.000Z',
  };
}
