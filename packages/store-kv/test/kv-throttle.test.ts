/** One write a second for a key: what comes together is put together, what is refused is tried again, and a limit of the day is named. */
import type { Checkpoint } from '@lousho/contract';
import { manualClock, testPorts, type ManualClock } from '@lousho/testing';
import { expect, it } from 'vitest';
import { KVStore } from '../src/index.ts';
import { ExactKV } from './support/exact-kv.ts';
import { seededRandom } from './support/random.ts';
import { beginRun, runOf } from './support/runs.ts';
import { SimKV } from './support/sim-kv.ts';

const states = runOf(5) as readonly Checkpoint[];
const stateAt = (index: number): Checkpoint => states[index] as Checkpoint;

function givenKV(clock: ManualClock): { readonly sim: SimKV; readonly open: (location?: number) => KVStore } {
  const sim = new SimKV({ clock, random: seededRandom(7) });
  return { sim, open: (location = 0) => new KVStore(sim.at(location), { ports: testPorts(clock) }) };
}

const putsOf = (sim: SimKV, key: string): number => sim.writes.filter((write) => write.key === key).length;

/** Moves the time a second at a time until the call is through. @returns the seconds it took */
async function secondsUntil(clock: ManualClock, call: Promise<unknown>): Promise<number> {
  let isOver = false;
  const over = call.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  let seconds = 0;
  for (await clock.advance(0); !isOver; seconds += 1) await clock.advance(1_000);
  await over;
  return seconds;
}

it('puts saves of one moment once, and keeps each of them in the history', async () => {
  const clock = manualClock();
  const { sim, open } = givenKV(clock);
  const { checkpoints } = open();
  await Promise.all(states.map((state) => checkpoints.save('order-7', state)));
  expect(putsOf(sim, 'lousho/order-7')).toBe(1);
  expect(putsOf(sim, 'lousho/order-7#history')).toBe(1);
  expect(await checkpoints.load('order-7')).toEqual(states.at(-1));
  const history = await checkpoints.history('order-7');
  expect(history.map(({ checkpoint }) => checkpoint)).toEqual([...states].reverse());
});

it('waits a second or more with what KV refuses, and takes along what comes meanwhile', async () => {
  const clock = manualClock();
  const { sim, open } = givenKV(clock);
  const { checkpoints } = open();
  await checkpoints.save('order-7', stateAt(0));
  const saves = [checkpoints.save('order-7', stateAt(1))];
  await clock.advance(500);
  expect(sim.refusals).toBe(1);
  for (const index of [2, 3, 4]) saves.push(checkpoints.save('order-7', stateAt(index)));
  await clock.advance(499);
  expect(putsOf(sim, 'lousho/order-7')).toBe(1);
  await secondsUntil(clock, Promise.all(saves));
  expect(putsOf(sim, 'lousho/order-7')).toBe(2);
  expect(await checkpoints.load('order-7')).toEqual(stateAt(4));
  const history = await checkpoints.history('order-7');
  expect(history.map(({ checkpoint }) => checkpoint)).toEqual(states.slice(0, 5).reverse());
});

it('tries again at a time of its own, so that two writers do not meet for ever', async () => {
  const clock = manualClock();
  const { sim, open } = givenKV(clock);
  const stores = [open(0), open(1), open(0)];
  for (const { checkpoints } of stores) await checkpoints.load('order-7');
  const calls = stores.map(({ checkpoints }, index) => checkpoints.save('order-7', stateAt(index)));
  const seconds = await secondsUntil(clock, Promise.all(calls));
  await Promise.all(calls);
  expect(putsOf(sim, 'lousho/order-7')).toBe(3);
  expect(seconds).toBeLessThan(30);
});

it('gives up after about half a minute, with what was stored before in place', async () => {
  const clock = manualClock();
  const kv = new ExactKV(clock);
  const { checkpoints } = new KVStore(kv, { ports: testPorts(clock) });
  await checkpoints.save('order-7', stateAt(0));
  kv.before = ({ method, key }) => {
    if (method === 'put' && key === 'lousho/order-7') throw new Error('KV PUT failed: 429 Too Many Requests');
  };
  const call = checkpoints.save('order-7', stateAt(1));
  const seconds = await secondsUntil(clock, call);
  await expect(call).rejects.toMatchObject({ code: 'LOUSHO_STORE_WRITE_FAILED', retryable: true });
  expect(seconds).toBeGreaterThan(10);
  expect(seconds).toBeLessThan(60);
  kv.before = () => undefined;
  expect(await checkpoints.load('order-7')).toEqual(stateAt(0));
});

it('names a limit of the day, tries nothing again, and changes nothing', async () => {
  const clock = manualClock();
  const { sim, open } = givenKV(clock);
  const { checkpoints } = open();
  await checkpoints.save('order-7', stateAt(0));
  await clock.advance(2_000);
  const before = sim.writes.length;
  sim.quota = 0;
  await expect(checkpoints.save('order-7', stateAt(1))).rejects.toMatchObject({
    code: 'LOUSHO_STORE_WRITE_FAILED',
    message: expect.stringContaining('daily limit'),
    details: { operation: 'save', id: 'order-7' },
  });
  expect(sim.writes.length).toBe(before);
  expect(await checkpoints.load('order-7')).toEqual(stateAt(0));
});

it('asks who holds the lease again before it writes what was refused a second ago', async () => {
  const clock = manualClock();
  const { sim, open } = givenKV(clock);
  const { checkpoints } = open();
  const taken = checkpoints.acquireLease('order-7', 'holder', 30_000);
  await clock.advance(1_000);
  await taken;
  await checkpoints.saveIfLeased('order-7', stateAt(0), 'holder');
  const late = checkpoints.saveIfLeased('order-7', stateAt(1), 'holder');
  await clock.advance(100);
  expect(sim.refusals).toBe(1);
  await open().checkpoints.releaseLease('order-7', 'holder');
  await secondsUntil(clock, late);
  expect(await late).toBe(false);
  expect(await checkpoints.load('order-7')).toEqual(stateAt(0));
});

it('closes only when what it had begun is stored', async () => {
  const clock = manualClock();
  const { open } = givenKV(clock);
  const store = open();
  await store.checkpoints.save('order-7', beginRun());
  const late = store.checkpoints.save('order-7', stateAt(1));
  await clock.advance(0);
  const closing = store.close();
  await secondsUntil(clock, closing);
  await late;
  expect(await open().checkpoints.load('order-7')).toEqual(stateAt(1));
});
