/** Several processes on one file: none loses a write, none sees a lock, and what was acknowledged outlives a kill. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ownerOf } from '../src/migrations.ts';
import { inProgress } from './support/fixtures.ts';
import { buildStore, type BuiltStore, type StoreProcess } from './support/built-store.ts';
import { openStore, rawDatabase, tempFile } from './support/temp-store.ts';

let built: BuiltStore;
beforeAll(async () => {
  built = await buildStore();
});
afterAll(() => built.remove());

const TIMEOUT = { timeout: 180_000 };

function runMany(count: number, file: string, script: (n: number) => string): StoreProcess[] {
  return Array.from({ length: count }, (_, n) => built.run(file, script(n)));
}

async function expectAllWell(processes: readonly StoreProcess[]): Promise<void> {
  expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual(processes.map(() => 0));
}

it('lets ten processes open a new file at once, whatever moment each of them meets', TIMEOUT, async () => {
  const folder = tempFile();
  const files = Array.from({ length: 60 }, (_, round) => `${folder}-${round}`);
  const processes = runMany(
    10,
    folder,
    (n) => `
    for (const path of ${JSON.stringify(files)}) {
      await say('ready');
      await heard();
      const store = new SqliteStore(path);
      await store.checkpoints.save('order-${n}', fixtures.inProgress());
      await store.close();
    }
  `,
  );
  for (let round = 1; round <= files.length; round += 1) {
    await Promise.all(processes.map((one) => one.hasSaid(round)));
    for (const { child } of processes) if (child.connected) child.send('go');
  }
  await expectAllWell(processes);
  for (const file of files) {
    expect(ownerOf(rawDatabase(file)).userVersion).toBe(1);
    expect(await openStore(file).checkpoints.list()).toHaveLength(10);
  }
});

it('keeps every one of 4 x 200 saves of four processes', TIMEOUT, async () => {
  const file = tempFile();
  const processes = runMany(
    4,
    file,
    (n) => `
    const { checkpoints } = open();
    let run = fixtures.inProgress();
    for (let save = 0; save < 200; save += 1) {
      run = fixtures.nextStep(run, 'save ' + save);
      await checkpoints.save('order-${n}', run);
    }
    await checkpoints.close();
  `,
  );
  await expectAllWell(processes);
  const { checkpoints } = openStore(file);
  for (const n of [0, 1, 2, 3]) {
    const run = await checkpoints.load(`order-${n}`);
    expect(run?.stepIndex).toBe(200);
    expect(run?.messages).toHaveLength(201);
    expect(await checkpoints.history(`order-${n}`)).toHaveLength(50);
  }
});

it('keeps every save of one run that four processes write in turns', TIMEOUT, async () => {
  const file = tempFile();
  await openStore(file).checkpoints.save('counter', inProgress({ businessState: 0 }));
  const processes = runMany(
    4,
    file,
    (n) => `
    const { checkpoints } = open();
    const me = 'owner-${n}';
    for (let done = 0; done < 50; ) {
      const lease = await checkpoints.acquireLease('counter', me, 30_000);
      if (lease === false) continue;
      const run = await checkpoints.load('counter');
      const next = fixtures.nextStep(run, me, { businessState: run.businessState + 1 });
      if (await checkpoints.saveIfLeased('counter', next, me, lease.fence)) done += 1;
      await checkpoints.releaseLease('counter', me, lease.fence);
    }
    await checkpoints.close();
  `,
  );
  await expectAllWell(processes);
  const run = await openStore(file).checkpoints.load('counter');
  expect(run?.businessState).toBe(200);
  expect(run?.messages).toHaveLength(201);
});

it('keeps everything that was acknowledged before a kill', TIMEOUT, async () => {
  const file = tempFile();
  for (let round = 0; round < 5; round += 1) {
    const process = built.run(
      file,
      `
      const { checkpoints } = open();
      let run = fixtures.inProgress();
      for (let save = 1; ; save += 1) {
        run = fixtures.nextStep(run, 'save ' + save);
        await checkpoints.save('order-${round}', run);
        await say(save);
      }
    `,
    );
    await process.hasSaid(20);
    process.child.kill('SIGKILL');
    expect(await process.ended).toBe('SIGKILL');
    const acknowledged = process.said.at(-1) as number;
    const run = await openStore(file).checkpoints.load(`order-${round}`);
    expect(run?.stepIndex).toBeGreaterThanOrEqual(acknowledged);
    expect(run?.messages).toHaveLength(1 + (run?.stepIndex ?? 0));
  }
  expect(rawDatabase(file).pragma('integrity_check', { simple: true })).toBe('ok');
});

it('takes the lease of a killed process at once, and waits for one that lives', TIMEOUT, async () => {
  const file = tempFile();
  const { checkpoints } = openStore(file);
  const process = built.run(
    file,
    `
    const lease = await open().checkpoints.acquireLease('order-7', 'a', 30_000);
    await say(lease.fence);
    await heard();
  `,
  );
  await process.hasSaid(1);
  expect(await checkpoints.acquireLease('order-7', 'b', 30_000)).toBe(false);
  process.child.kill('SIGKILL');
  await process.ended;
  expect(await checkpoints.acquireLease('order-7', 'b', 30_000)).toEqual({ fence: 2 });
});

it('waits for a run on another thread of this process', TIMEOUT, async () => {
  const file = tempFile();
  const process = built.run(
    file,
    `
    const { Worker } = await import('node:worker_threads');
    const code = 'import(' + JSON.stringify(storeUrl) + ').then(async ({ SqliteStore }) => {' +
      'const { parentPort } = await import("node:worker_threads");' +
      'const store = new SqliteStore(' + JSON.stringify(file) + ');' +
      'parentPort.postMessage(await store.checkpoints.acquireLease("order-7", "a", 30000));' +
      'setInterval(() => {}, 1000); })';
    const worker = new Worker(code, { eval: true });
    const taken = await new Promise((resolve) => worker.once('message', resolve));
    const other = await open().checkpoints.acquireLease('order-7', 'b', 30_000);
    await say([taken.fence, other]);
    await worker.terminate();
  `,
  );
  await process.hasSaid(1);
  expect(process.said).toEqual([[1, false]]);
  await process.ended;
});
