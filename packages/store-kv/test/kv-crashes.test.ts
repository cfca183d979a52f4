/** A process that dies between any two writes leaves the state before or the state after, whole, and a store that goes on. */
import { isDeepStrictEqual } from 'node:util';
import type { Checkpoint } from '@lousho/contract';
import { manualClock } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { KVStore } from '../src/index.ts';
import { ExactKV } from './support/exact-kv.ts';
import { last, nextTurn, runOf } from './support/runs.ts';
import { waitingPorts } from './support/waiting-ports.ts';

/** Long enough for several parts. */
const LONG = runOf(150);

interface Crash {
  /** States that the run had before the call that dies. */
  readonly before: readonly Checkpoint[];
  readonly call: (store: KVStore) => Promise<unknown>;
  readonly historyLimit?: number;
}

/** Runs the call again and again; each time the process dies before one write later. */
async function sweep(
  { before, call, historyLimit = 3 }: Crash,
  check: (world: {
    readonly kv: ExactKV;
    readonly open: () => KVStore;
    readonly writes: number;
  }) => Promise<void>,
): Promise<number> {
  for (let writes = 0; ; writes += 1) {
    const clock = manualClock();
    const kv = new ExactKV(clock);
    const open = (): KVStore => new KVStore(kv, { historyLimit, ports: waitingPorts(clock) });
    const dying = open();
    for (const state of before) await dying.checkpoints.save('order-7', state);
    let left = writes;
    let isDead = false;
    kv.before = ({ method }) => {
      if (method === 'put' || method === 'delete') isDead ||= (left -= 1) < 0;
      // What a dead process asked for never answers, and nothing of it happens.
      if (isDead) return new Promise(() => undefined);
    };
    const outcome = call(dying);
    await Promise.race([outcome, clock.advance(60_000)]);
    kv.before = () => undefined;
    await check({ kv, open, writes });
    if (!isDead) return writes;
  }
}

describe('a save that dies', () => {
  it.each([
    ['of a short run', runOf(2), last(nextTurn(last(runOf(2)))), 4],
    ['of a long run', LONG, last(nextTurn(last(LONG))), 4],
    ['that cuts parts off', LONG.slice(0, 60), last(LONG), 8],
    [
      'that rewrites what was said',
      LONG,
      { ...last(LONG), messages: Object.freeze(last(LONG).messages.slice(0, 9)) },
      4,
    ],
  ])(
    '%s leaves the state before or after it, and a history that can be read',
    async (_name, before, next, steps) => {
      const seen = new Set<string>();
      const swept = await sweep(
        { before, call: ({ checkpoints }) => checkpoints.save('order-7', next) },
        async ({ open }) => {
          const { checkpoints } = open();
          const loaded = await checkpoints.load('order-7');
          const isAfter = isDeepStrictEqual(loaded, next);
          if (!isAfter) expect(loaded).toEqual(last(before));
          seen.add(isAfter ? 'after' : 'before');
          const history = await checkpoints.history('order-7');
          const newest = history[0]?.checkpoint;
          if (!isDeepStrictEqual(newest, next)) expect(newest).toEqual(last(before));
          // The store goes on: the next process saves, and its history is right from there.
          const [goesOn] = nextTurn(loaded as (typeof before)[0]);
          await checkpoints.save('order-7', goesOn);
          expect(await open().checkpoints.load('order-7')).toEqual(goesOn);
          expect((await open().checkpoints.history('order-7'))[0]?.checkpoint).toEqual(goesOn);
          // And nothing is left for ever.
          await open().checkpoints.delete('order-7');
          expect(await open().checkpoints.load('order-7')).toBeNull();
        },
      );
      expect(swept).toBeGreaterThanOrEqual(steps);
      expect([...seen].sort()).toEqual(['after', 'before']);
    },
  );

  it('leaves nothing behind that the next delete does not remove', async () => {
    await sweep(
      { before: LONG.slice(0, 60), call: ({ checkpoints }) => checkpoints.save('order-7', last(LONG)) },
      async ({ kv, open }) => {
        await open().checkpoints.delete('order-7');
        expect(kv.keys()).toEqual([]);
      },
    );
  });
});

describe('a delete that dies', () => {
  it('leaves the whole run or none, never one that cannot be read', async () => {
    const seen = new Set<string>();
    await sweep(
      { before: LONG, call: ({ checkpoints }) => checkpoints.delete('order-7') },
      async ({ kv, open }) => {
        const loaded = await open().checkpoints.load('order-7');
        if (loaded !== null) expect(loaded).toEqual(last(LONG));
        seen.add(loaded === null ? 'none' : 'whole');
        // A history is shown whole, or not at all.
        const history = await open().checkpoints.history('order-7');
        for (const { checkpoint } of history) expect(checkpoint.messages.length).toBeGreaterThan(100);
        await open().checkpoints.delete('order-7');
        expect(kv.keys()).toEqual([]);
      },
    );
    expect([...seen].sort()).toEqual(['none', 'whole']);
  });

  it('has ended the lease before anything is gone', async () => {
    const clock = manualClock();
    const kv = new ExactKV(clock);
    const open = (): KVStore => new KVStore(kv, { ports: waitingPorts(clock) });
    const holder = open().checkpoints;
    await holder.acquireLease('order-7', 'holder', 30_000);
    const [first, second] = runOf(1) as [Checkpoint, Checkpoint];
    await holder.saveIfLeased('order-7', first, 'holder');
    kv.before = ({ method, key }) => {
      if (method === 'delete' && key === 'lousho/order-7') throw new Error('the process died');
    };
    await expect(open().checkpoints.delete('order-7')).rejects.toMatchObject({
      code: 'LOUSHO_STORE_WRITE_FAILED',
    });
    kv.before = () => undefined;
    expect(await holder.saveIfLeased('order-7', second, 'holder')).toBe(false);
    expect(await holder.load('order-7')).toEqual(first);
  });
});

describe('a history that cannot be written', () => {
  it('does not make a save reject that is stored, and gets its entries with the next one', async () => {
    const clock = manualClock();
    const kv = new ExactKV(clock);
    const { checkpoints } = new KVStore(kv, { ports: waitingPorts(clock) });
    const [first, second, third] = runOf(1) as [Checkpoint, Checkpoint, Checkpoint];
    await checkpoints.save('order-7', first);
    kv.before = ({ key }) => {
      if (key.includes('#history/')) throw new Error('KV PUT failed: 503 Service Unavailable');
    };
    await checkpoints.save('order-7', second);
    expect(await checkpoints.load('order-7')).toEqual(second);
    kv.before = () => undefined;
    await checkpoints.save('order-7', third);
    const history = await checkpoints.history('order-7');
    expect(history.map(({ checkpoint }) => checkpoint)).toEqual([third, second, first]);
  });
});
