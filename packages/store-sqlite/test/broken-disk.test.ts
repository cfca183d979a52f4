/** The file goes away, is exchanged, or has no room: the run hears of it, what was stored stays, and the store works again when it can. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { SqliteStore } from '../src/index.ts';
import { approvalRecord, inProgress, nextStep } from './support/fixtures.ts';
import { openOnPlatform, openStore, rawDatabase, tempFile } from './support/temp-store.ts';

const replaced = { code: 'LOUSHO_STORE_REPLACED', retryable: false };

async function expectEveryWriteRefused(store: SqliteStore, file: string): Promise<void> {
  const error = { ...replaced, details: { path: file } };
  const { checkpoints, approvals } = store;
  await expect(checkpoints.save('order-7', inProgress())).rejects.toMatchObject(error);
  await expect(checkpoints.saveIfLeased('order-7', inProgress(), 'me')).rejects.toMatchObject(error);
  await expect(checkpoints.acquireLease('order-8', 'me', 1_000)).rejects.toMatchObject(error);
  await expect(approvals.save(approvalRecord('a-1'))).rejects.toMatchObject(error);
  const together = await Promise.allSettled(
    [1, 2, 3].map((n) => checkpoints.save(`order-${n}`, inProgress())),
  );
  for (const outcome of together) expect(outcome).toMatchObject({ status: 'rejected', reason: error });
}

it('stops a run whose file was deleted', async () => {
  const file = tempFile();
  const store = openStore(file);
  await store.checkpoints.save('order-7', inProgress());
  fs.unlinkSync(file);
  await expectEveryWriteRefused(store, file);
});

it('stops a run whose file another one took the place of, and leaves that one alone', async () => {
  const file = tempFile();
  const store = openStore(file);
  await store.checkpoints.save('order-7', inProgress());
  const backup = path.join(path.dirname(file), 'backup.db');
  await rawDatabase(file).backup(backup);
  fs.renameSync(backup, file);
  for (const ending of ['-wal', '-shm']) fs.rmSync(file + ending);
  const restored = openStore(file);
  await restored.checkpoints.save('order-9', inProgress());
  await expectEveryWriteRefused(store, file);
  await store.close();
  expect(await restored.checkpoints.load('order-9')).toEqual(inProgress());
  await restored.close();
  const ids = (await openStore(file).checkpoints.list()).map(({ sessionId }) => sessionId);
  expect(ids).toEqual(['order-7', 'order-9']);
});

it('leaves the log alone that belongs to the file in its place', async () => {
  const file = tempFile();
  const store = openStore(file);
  await store.checkpoints.save('order-7', inProgress());
  await store.prune({ olderThanMs: Number.MAX_SAFE_INTEGER });
  const backup = path.join(path.dirname(file), 'backup.db');
  fs.copyFileSync(file, backup);
  // Restored under a running process, which nobody should do: the names beside the file stay the same.
  fs.renameSync(backup, file);
  const restored = openStore(file);
  await restored.checkpoints.save('order-9', inProgress());
  await store.close();
  expect(await openStore(file).checkpoints.load('order-9')).toEqual(inProgress());
});

it('goes on when the same file comes back', async () => {
  const file = tempFile();
  const store = openStore(file);
  await store.checkpoints.save('order-7', inProgress());
  fs.renameSync(file, `${file}.aside`);
  await expect(store.checkpoints.save('order-7', inProgress())).rejects.toMatchObject(replaced);
  fs.renameSync(`${file}.aside`, file);
  await store.checkpoints.save('order-7', nextStep(inProgress(), 'on'));
  expect((await store.checkpoints.load('order-7'))?.stepIndex).toBe(1);
});

it('reports a full disk, keeps what was stored, and works again when there is room', async () => {
  const file = tempFile();
  const { store, connection } = openOnPlatform(file);
  const { checkpoints } = store;
  let run = inProgress();
  await checkpoints.save('order-7', run);
  await checkpoints.save('order-8', inProgress());
  const pages = connection.pragma('page_count', { simple: true }) as number;
  connection.pragma(`max_page_count = ${pages}`);
  const large = nextStep(run, 'x'.repeat(50_000));
  const [saving, small] = [
    checkpoints.save('order-7', large),
    checkpoints.save('order-8', inProgress({ stepIndex: 1 })),
  ];
  await expect(saving).rejects.toMatchObject({
    code: 'LOUSHO_STORE_WRITE_FAILED',
    retryable: true,
    details: { operation: 'save', id: 'order-7' },
    cause: { code: 'SQLITE_FULL' },
  });
  // What has room is not taken down by what has none.
  await small;
  expect(await checkpoints.load('order-7')).toEqual(run);
  expect(await openStore(file).checkpoints.history('order-7')).toHaveLength(1);
  connection.pragma('max_page_count = 1000000');
  run = large;
  await checkpoints.save('order-7', run);
  expect(await openStore(file).checkpoints.load('order-7')).toEqual(run);
  expect(connection.pragma('integrity_check', { simple: true })).toBe('ok');
});
