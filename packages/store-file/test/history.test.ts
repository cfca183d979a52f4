/** The history is the log: newest first, so many entries, and as short on disk as that allows. */
import { appendFrozen, type Checkpoint, type InProgressCheckpoint } from '@lousho/contract';
import { expect, it } from 'vitest';
import { finished, inProgress, nextStep, says } from './support/fixtures.ts';
import { bytesIn, newestLog, savesIn } from './support/raw-files.ts';
import { openStore, tempFolder } from './support/temp-store.ts';

/** Saves a run of so many steps, and gives back its last state. */
async function saveSteps(
  store: ReturnType<typeof openStore>,
  count: number,
  run: InProgressCheckpoint = inProgress(),
): Promise<InProgressCheckpoint> {
  let latest = run;
  for (let step = 0; step < count; step += 1) {
    latest = nextStep(latest, `step ${latest.stepIndex + 1}`);
    await store.checkpoints.save('order-7', latest);
  }
  return latest;
}

function steps(entries: readonly { readonly step: number }[]): number[] {
  return entries.map(({ step }) => step);
}

/** How many saves are stored for the run. */
function storedSaves(file: string): number {
  return savesIn(newestLog(file, 'order-7')).length;
}

it('keeps the newest 50 saves unless it is told otherwise', async () => {
  const store = openStore();
  await saveSteps(store, 60);
  const entries = await store.checkpoints.history('order-7');
  expect(steps(entries)).toEqual(Array.from({ length: 50 }, (_, n) => 60 - n));
});

it('gives each entry as it was saved', async () => {
  const store = openStore();
  const saves: Checkpoint[] = [
    inProgress({ businessState: { a: 1 } }),
    finished({ savedAt: '2026-01-02T00:00:00.000Z' }),
  ];
  for (const save of saves) await store.checkpoints.save('order-7', save);
  expect(await store.checkpoints.history('order-7')).toEqual(
    saves.reverse().map((checkpoint) => {
      const { stepIndex: step, savedAt, status } = checkpoint;
      return { step, savedAt, status, checkpoint };
    }),
  );
});

it('counts two saves of one step as two entries, also at one moment', async () => {
  const store = openStore();
  const run = inProgress();
  await store.checkpoints.save('order-7', run);
  await store.checkpoints.save('order-7', run);
  expect(steps(await store.checkpoints.history('order-7'))).toEqual([0, 0]);
});

it('gives fewer when fewer are asked for, none for 0, and none for an unknown id', async () => {
  const store = openStore();
  await saveSteps(store, 5);
  expect(steps(await store.checkpoints.history('order-7', { limit: 2 }))).toEqual([5, 4]);
  expect(await store.checkpoints.history('order-7', { limit: 0 })).toEqual([]);
  expect(await store.checkpoints.history('order-8')).toEqual([]);
});

it('keeps none when the limit is 0, and the run all the same', async () => {
  const store = openStore(tempFolder(), { historyLimit: 0 });
  const latest = await saveSteps(store, 5);
  expect(await store.checkpoints.history('order-7')).toEqual([]);
  expect(await store.checkpoints.load('order-7')).toEqual(latest);
});

it('keeps no more bytes than it is told, and the newest entry in any case', async () => {
  const file = tempFolder();
  const store = openStore(file, { historyMaxBytes: 5_000 });
  let run = inProgress();
  for (let step = 0; step < 20; step += 1) {
    run = nextStep(run, 'x'.repeat(1_000));
    await store.checkpoints.save('order-7', run);
  }
  expect(steps(await store.checkpoints.history('order-7'))).toEqual([20, 19, 18, 17]);
  await store.checkpoints.save('order-7', nextStep(run, 'x'.repeat(9_000)));
  expect(steps(await store.checkpoints.history('order-7'))).toEqual([21]);
});

it('is deleted with the run, unless it is to stay', async () => {
  const store = openStore();
  await saveSteps(store, 3);
  await store.checkpoints.delete('order-7', { keepHistory: true });
  expect(await store.checkpoints.load('order-7')).toBeNull();
  expect(await store.checkpoints.list()).toEqual([]);
  expect(await store.checkpoints.listHeaders()).toEqual([]);
  expect(steps(await store.checkpoints.history('order-7'))).toEqual([3, 2, 1]);
  await store.checkpoints.delete('order-7', { keepHistory: true });
  expect(await store.checkpoints.history('order-7')).toHaveLength(3);
  await store.checkpoints.delete('order-7');
  expect(await store.checkpoints.history('order-7')).toEqual([]);
});

it('goes on behind what a deleted run left', async () => {
  const store = openStore(tempFolder(), { historyLimit: 4 });
  await saveSteps(store, 3);
  await store.checkpoints.delete('order-7', { keepHistory: true });
  await saveSteps(store, 2);
  expect(steps(await store.checkpoints.history('order-7'))).toEqual([2, 1, 3, 2]);
  expect((await store.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['order-7']);
});

it('says nothing of a save that was refused', async () => {
  const store = openStore();
  await saveSteps(store, 1);
  expect(await store.checkpoints.saveIfLeased('order-7', inProgress(), 'nobody')).toBe(false);
  expect(await store.checkpoints.history('order-7')).toHaveLength(1);
});

it('shares the messages of its entries', async () => {
  const store = openStore();
  await saveSteps(store, 10);
  const [newest, before] = await store.checkpoints.history('order-7');
  expect(newest?.checkpoint.messages.at(3)).toBe(before?.checkpoint.messages.at(3));
});

it('does not keep every version of a transcript that is rewritten over and over', async () => {
  const file = tempFolder();
  const store = openStore(file, { historyLimit: 50, historyMaxBytes: 100_000 });
  for (let step = 1; step <= 60; step += 1)
    await store.checkpoints.save(
      'order-7',
      inProgress({ stepIndex: step, messages: [says(`${step} ${'x'.repeat(20_000)}`)] }),
    );
  expect(bytesIn(file)).toBeLessThan(150_000);
  expect(steps(await store.checkpoints.history('order-7'))).toEqual([60, 59, 58, 57]);
});

it('does not let a state that changes with each save pile up in a run that never ends', async () => {
  const file = tempFolder();
  const store = openStore(file, { historyLimit: 2 });
  let run = inProgress();
  for (let step = 0; step < 200; step += 1) {
    run = nextStep(run, 'on', { businessState: { step, filler: 'x'.repeat(2_000) } });
    await store.checkpoints.save('order-7', run);
  }
  expect(bytesIn(file)).toBeLessThan(200_000);
  expect(await openStore(file).checkpoints.load('order-7')).toEqual(run);
});

it('is rewritten when a run ends whose log is mostly superseded', async () => {
  const file = tempFolder();
  const store = openStore(file, { historyLimit: 3 });
  let run = inProgress();
  for (let step = 0; step < 20; step += 1) {
    run = nextStep(run, 'on', { businessState: { step, filler: 'x'.repeat(2_000) } });
    await store.checkpoints.save('order-7', run);
  }
  const end = finished({ stepIndex: 21, messages: appendFrozen(run.messages, [says('done')]) });
  const before = await store.checkpoints.history('order-7', { limit: 2 });
  await store.checkpoints.save('order-7', end);
  expect(storedSaves(file)).toBe(3);
  const history = await openStore(file, { historyLimit: 3 }).checkpoints.history('order-7');
  expect(history.map(({ checkpoint }) => checkpoint)).toEqual([
    end,
    ...before.map(({ checkpoint }) => checkpoint),
  ]);
  expect((await store.checkpoints.listHeaders())[0]).toMatchObject({
    status: 'finished',
    header: { runId: 'run-0001' },
  });
});

it('is left alone when a run ends whose log is mostly of use', async () => {
  const file = tempFolder();
  const store = openStore(file, { historyLimit: 3 });
  let run = inProgress();
  for (let step = 0; step < 20; step += 1) {
    run = nextStep(run, 'x'.repeat(1_000));
    await store.checkpoints.save('order-7', run);
  }
  await store.checkpoints.save('order-7', finished({ stepIndex: 21, messages: run.messages }));
  expect(storedSaves(file)).toBe(21);
});

it('is left alone when a run ends whose superseded states are the history that is kept', async () => {
  const file = tempFolder();
  const store = openStore(file, { historyLimit: 3 });
  let run = await saveSteps(store, 5);
  for (const filler of ['a', 'b'].map((letter) => letter.repeat(5_000))) {
    run = nextStep(run, 'on', { businessState: filler });
    await store.checkpoints.save('order-7', run);
  }
  await store.checkpoints.save('order-7', finished({ stepIndex: 9, messages: run.messages }));
  expect(storedSaves(file)).toBe(8);
});

it('lets a handle that knows an older log notice what another one dropped', async () => {
  const file = tempFolder();
  const [one, two] = [openStore(file, { historyLimit: 1 }), openStore(file, { historyLimit: 1 })];
  await saveSteps(one, 1);
  for (let step = 2; step < 6; step += 1)
    await two.checkpoints.save(
      'order-7',
      inProgress({ stepIndex: step, messages: [says(`rewritten ${step}`)] }),
    );
  const latest = inProgress({ stepIndex: 9, messages: [says('latest')] });
  await one.checkpoints.save('order-7', latest);
  expect(await two.checkpoints.load('order-7')).toEqual(latest);
});
