import { deepFreeze, type JsonValue } from '@lousho/contract';
import { expect, it } from 'vitest';
import { memoryStore } from '../src/index.ts';
import { finished, inProgress } from './fixtures.ts';

type Checkpoints = ReturnType<typeof memoryStore>['checkpoints'];

async function saveSteps(checkpoints: Checkpoints, steps: Iterable<number>): Promise<void> {
  for (const stepIndex of steps) await checkpoints.save('order-7', inProgress({ stepIndex }));
}
async function stepsOf(checkpoints: Checkpoints, limit?: number): Promise<number[]> {
  return (await checkpoints.history('order-7', { limit })).map(({ step }) => step);
}
function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

it('keeps one entry a save, newest first, also when two saves have one step and one time', async () => {
  const { checkpoints } = memoryStore();
  await saveSteps(checkpoints, [0, 1, 1]);
  await checkpoints.save('order-7', finished({ stepIndex: 1 }));
  const entries = await checkpoints.history('order-7');
  expect(entries.map(({ step, status }) => [step, status])).toEqual([
    [1, 'finished'],
    [1, 'in-progress'],
    [1, 'in-progress'],
    [0, 'in-progress'],
  ]);
  expect(entries[0]).toMatchObject({
    savedAt: '2026-01-01T00:00:00.000Z',
    checkpoint: { status: 'finished' },
  });
});

it('keeps the newest 50 by default, and as many as it is told', async () => {
  const byDefault = memoryStore().checkpoints;
  await saveSteps(byDefault, upTo(60));
  expect(await stepsOf(byDefault)).toEqual(upTo(60).slice(10).reverse());
  const three = memoryStore({ historyLimit: 3 }).checkpoints;
  await saveSteps(three, upTo(10));
  expect(await stepsOf(three)).toEqual([9, 8, 7]);
  const none = memoryStore({ historyLimit: 0 }).checkpoints;
  await saveSteps(none, upTo(3));
  expect(await stepsOf(none)).toEqual([]);
});

it('gives the newest so many, none for 0, and none for an unknown id', async () => {
  const { checkpoints } = memoryStore();
  await saveSteps(checkpoints, upTo(5));
  expect(await stepsOf(checkpoints, 2)).toEqual([4, 3]);
  expect(await stepsOf(checkpoints, 0)).toEqual([]);
  expect(await stepsOf(checkpoints, 99)).toHaveLength(5);
  expect(await checkpoints.history('unknown')).toEqual([]);
});

it('goes with its run, or stays and grows on under the same id', async () => {
  const { checkpoints } = memoryStore();
  await saveSteps(checkpoints, [0, 1]);
  await checkpoints.delete('order-7', { keepHistory: true });
  expect(await checkpoints.load('order-7')).toBeNull();
  expect(await checkpoints.list()).toEqual([]);
  await saveSteps(checkpoints, [0]);
  expect(await stepsOf(checkpoints)).toEqual([0, 1, 0]);
  await checkpoints.delete('order-7');
  expect(await stepsOf(checkpoints)).toEqual([]);
  await checkpoints.delete('order-7');
});

it('is a list of the caller: changing it changes nothing', async () => {
  const { checkpoints } = memoryStore();
  await saveSteps(checkpoints, [0, 1]);
  ((await checkpoints.history('order-7')) as unknown[]).length = 0;
  expect(await stepsOf(checkpoints)).toEqual([1, 0]);
});

it('has no entry of a save that was refused', async () => {
  const { checkpoints } = memoryStore();
  await checkpoints.acquireLease('order-7', 'holder', 1_000);
  expect(await checkpoints.saveIfLeased('order-7', inProgress(), 'somebody else')).toBe(false);
  expect(await stepsOf(checkpoints)).toEqual([]);
  expect(await checkpoints.load('order-7')).toBeNull();
});

it('drops the oldest when the states of the application grow over the limit, never the newest', async () => {
  const stateOf = (letter: string): JsonValue => letter.repeat(1_000);
  const { checkpoints } = memoryStore({ historyMaxBytes: 5_000 });
  for (const [stepIndex, letter] of ['a', 'b', 'c'].entries())
    await checkpoints.save('order-7', inProgress({ stepIndex, businessState: stateOf(letter) }));
  expect(await stepsOf(checkpoints)).toEqual([2, 1]);
  await checkpoints.save('order-7', inProgress({ stepIndex: 3, businessState: 'x'.repeat(10_000) }));
  expect(await stepsOf(checkpoints)).toEqual([3]);
  await checkpoints.save('order-7', inProgress({ stepIndex: 4 }));
  expect(await stepsOf(checkpoints)).toEqual([4]);
});

it('counts a state that several saves share once, also after the first of them is gone', async () => {
  const shared = deepFreeze({ text: 'x'.repeat(1_500) });
  const { checkpoints } = memoryStore({ historyMaxBytes: 5_000, historyLimit: 10 });
  const save = (stepIndex: number, businessState: JsonValue): Promise<void> =>
    checkpoints.save('order-7', inProgress({ stepIndex, businessState }));
  for (const stepIndex of upTo(20)) await save(stepIndex, shared);
  expect(await stepsOf(checkpoints)).toHaveLength(10);
  await save(20, { text: 'y'.repeat(1_500) });
  expect(await stepsOf(checkpoints)).toEqual([20]);
});
