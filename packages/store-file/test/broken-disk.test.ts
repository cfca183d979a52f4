/** The disk is full, gone, read-only or slow to let go: the run hears of it, what was stored stays, and the store works again when it can. */
import fs from 'node:fs';
import path from 'node:path';
import type { FullAgentStore } from '@lousho/contract';
import { expect, it, onTestFinished } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../src/file-system.ts';
import { approvalRecord, finished, inProgress, nextStep, sessionRecord } from './support/fixtures.ts';
import { newestLog } from './support/raw-files.ts';
import { filesIn, openOn, openStore, tempFolder } from './support/temp-store.ts';

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: it does not work`), { code, syscall: 'test' });
}

/** The real thing, of which some calls fail with a code as long as `failing` says so. */
function failingWhen(
  names: readonly (keyof FileSystem)[],
  failing: (name: keyof FileSystem, target: unknown) => string | undefined,
): Partial<FileSystem> {
  const real = nodeFileSystem as unknown as {
    readonly [name: string]: (...args: readonly unknown[]) => Promise<unknown>;
  };
  return Object.fromEntries(
    names.map((name) => [
      name,
      async (...args: readonly unknown[]) => {
        const code = failing(name, args.at(-1));
        if (code !== undefined) throw failure(code);
        return real[name]?.(...args);
      },
    ]),
  );
}

const written = (operation: string, id = 'order-7') => ({
  code: 'LOUSHO_STORE_WRITE_FAILED',
  retryable: true,
  details: { operation, id },
});

it.each(['ENOSPC', 'EIO', 'EROFS', 'EDQUOT', 'EFBIG'])(
  'keeps what was stored when a save ends in %s',
  async (code) => {
    let isBroken = false;
    const store = openOn(failingWhen(['write', 'syncData'], () => (isBroken ? code : undefined)));
    await store.checkpoints.save('order-7', inProgress());
    const next = nextStep(inProgress(), 'on');
    isBroken = true;
    for (let attempt = 0; attempt < 3; attempt += 1)
      await expect(store.checkpoints.save('order-7', next)).rejects.toMatchObject({
        ...written('save'),
        cause: { code },
      });
    expect(await openStore(store.folder).checkpoints.load('order-7')).toEqual(inProgress());
    isBroken = false;
    await store.checkpoints.save('order-7', next);
    expect(await openStore(store.folder).checkpoints.history('order-7')).toHaveLength(2);
  },
);

it('takes back what was written and not synced', async () => {
  let isBroken = false;
  const store = openOn(failingWhen(['syncData'], () => (isBroken ? 'EIO' : undefined)));
  await store.checkpoints.save('order-7', inProgress());
  const before = fs.readFileSync(newestLog(store.folder, 'order-7'));
  isBroken = true;
  await expect(store.checkpoints.save('order-7', nextStep(inProgress(), 'on'))).rejects.toMatchObject(
    written('save'),
  );
  expect(fs.readFileSync(newestLog(store.folder, 'order-7'))).toEqual(before);
});

it('takes back a save of which nobody can tell whether its log is still there', async () => {
  let isBroken = false;
  const store = openOn(
    failingWhen(['stat'], (_name, target) => {
      return isBroken && String(target).endsWith('.jsonl') ? 'EIO' : undefined;
    }),
  );
  await store.checkpoints.save('order-7', inProgress());
  const next = nextStep(inProgress(), 'on');
  isBroken = true;
  await expect(store.checkpoints.save('order-7', next)).rejects.toMatchObject(written('save'));
  expect(await openStore(store.folder).checkpoints.load('order-7')).toEqual(inProgress());
  isBroken = false;
  await store.checkpoints.save('order-7', next);
  expect(await openStore(store.folder).checkpoints.history('order-7')).toHaveLength(2);
});

it('acknowledges nothing while nobody can tell whether the folder is still there', async () => {
  let isBroken = false;
  const store = openOn(failingWhen(['stat'], () => (isBroken ? 'EACCES' : undefined)));
  await store.checkpoints.save('order-7', inProgress());
  isBroken = true;
  await expect(store.approvals.save(approvalRecord('a-1'))).rejects.toMatchObject(
    written('approvals.save', 'a-1'),
  );
  expect(filesIn(store.folder).filter((name) => name.startsWith('approvals'))).toEqual([]);
});

it('reads past half a write that could not be taken back', async () => {
  let isBroken = false;
  const store = openOn({
    async write(fd, bytes, position) {
      if (!isBroken) return nodeFileSystem.write(fd, bytes, position);
      if (bytes.byteLength < 60) throw failure('ENOSPC');
      return nodeFileSystem.write(fd, bytes.subarray(0, 50), position);
    },
    ...failingWhen(['truncate'], () => 'EIO'),
  });
  await store.checkpoints.save('order-7', inProgress());
  isBroken = true;
  const next = nextStep(inProgress(), 'on');
  await expect(store.checkpoints.save('order-7', next)).rejects.toMatchObject(written('save'));
  isBroken = false;
  expect(await store.checkpoints.load('order-7')).toEqual(inProgress());
  await store.checkpoints.save('order-7', next);
  for (const handle of [store, openStore(store.folder)]) {
    expect(await handle.checkpoints.load('order-7')).toEqual(next);
    expect(await handle.checkpoints.history('order-7')).toHaveLength(2);
  }
});

it('says that it cannot read, and takes nothing for absent', async () => {
  let code: string | undefined;
  const store = openOn(failingWhen(['open', 'list', 'read'], () => code));
  await store.checkpoints.save('order-7', inProgress());
  await store.approvals.save(approvalRecord('a-1'));
  await store.sessions.saveIfRevision(sessionRecord('chat'), 0);
  const unreadable = { code: 'LOUSHO_STORE_READ_FAILED', retryable: true };
  for (code of ['EIO', 'EACCES', 'ENOTDIR', 'EMFILE']) {
    await expect(store.checkpoints.load('order-7')).rejects.toMatchObject({
      ...unreadable,
      details: { operation: 'load', id: 'order-7' },
      cause: { code },
    });
    await expect(store.checkpoints.history('order-7')).rejects.toMatchObject(unreadable);
    await expect(store.checkpoints.list()).rejects.toMatchObject(unreadable);
    await expect(store.checkpoints.listHeaders()).rejects.toMatchObject(unreadable);
    await expect(store.approvals.load('a-1')).rejects.toMatchObject(unreadable);
    await expect(store.approvals.list()).rejects.toMatchObject(unreadable);
    await expect(store.sessions.load('chat')).rejects.toMatchObject(unreadable);
    await expect(store.checkpoints.acquireLease('order-7', 'me', 1_000)).rejects.toMatchObject({
      code: 'LOUSHO_STORE_WRITE_FAILED',
    });
  }
  code = undefined;
  expect(await store.checkpoints.load('order-7')).toEqual(inProgress());
});

it('closes files that it does not use when there are too many', async () => {
  let open = 0;
  const store = openOn(
    {
      async open(name, mode) {
        if (open >= 10) throw failure('EMFILE');
        const fd = await nodeFileSystem.open(name, mode);
        open += 1;
        return fd;
      },
      async close(fd) {
        open -= 1;
        await nodeFileSystem.close(fd);
      },
    },
    { durability: 'process' },
  );
  const ids = Array.from({ length: 30 }, (_, n) => `order-${n}`);
  for (const id of ids) {
    await store.checkpoints.save(id, inProgress());
    await store.checkpoints.save(id, nextStep(inProgress(), 'on'));
  }
  expect(await store.checkpoints.list()).toHaveLength(30);
});

it('stops a run whose files were taken away', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  await store.checkpoints.save('order-7', inProgress());
  await store.checkpoints.save('order-7', nextStep(inProgress(), 'on'));
  const log = newestLog(folder, 'order-7');
  fs.rmSync(path.join(folder, 'runs'), { recursive: true });
  await expect(store.checkpoints.save('order-7', finished())).rejects.toMatchObject({
    code: 'LOUSHO_STORE_REPLACED',
    details: { path: log },
    retryable: false,
  });
  expect(await store.checkpoints.load('order-7')).toBeNull();
});

const windows = ['EPERM', 'EACCES', 'EBUSY'] as const;

it.each(windows)('tries again for a while when a name cannot be changed: %s', async (code) => {
  let failures = 0;
  let pausedMs = 0;
  const failThrice = (name: keyof FileSystem): string | undefined => {
    return name !== 'link' && (failures += 1) % 4 !== 0 ? code : undefined;
  };
  const store = openOn({
    ...failingWhen(['rename', 'unlink', 'removeFolder'], failThrice),
    pause: async (ms) => void (pausedMs += ms),
  });
  await store.checkpoints.save('order-7', inProgress());
  await store.approvals.save(approvalRecord('a-1'));
  expect(await store.approvals.delete('a-1')).toBe(true);
  await store.checkpoints.delete('order-7');
  expect(await openStore(store.folder).checkpoints.load('order-7')).toBeNull();
  expect(pausedMs).toBeGreaterThan(0);
});

it.each(windows)('gives up after about 1.3 seconds of %s, and says why', async (code) => {
  let pausedMs = 0;
  let isBroken = false;
  const store = openOn({
    ...failingWhen(['rename'], () => (isBroken ? code : undefined)),
    pause: async (ms) => void (pausedMs += ms),
  });
  await store.approvals.save(approvalRecord('a-1'));
  isBroken = true;
  await expect(store.approvals.save(approvalRecord('a-1', { toolName: 'other' }))).rejects.toMatchObject({
    ...written('approvals.save', 'a-1'),
    cause: { code },
  });
  expect(pausedMs).toBeGreaterThan(1_000);
  expect(pausedMs).toBeLessThan(1_500);
  expect(await store.approvals.load('a-1')).toMatchObject({ toolName: 'charge' });
  expect(filesIn(store.folder)).toEqual(['approvals/a-1.json', 'format.json']);
});

it.each(['EPERM', 'ENOTSUP', 'ENOSYS'])('works where there are no links: %s', async (code) => {
  const withoutLinks = failingWhen(['link'], () => code);
  const one = openOn(withoutLinks, { durability: 'process' });
  const two = openOn(withoutLinks, { durability: 'process', folder: one.folder });
  for (let round = 0; round < 10; round += 1) {
    const takers = [one, two, one].map(async ({ checkpoints }, n) => {
      return (await checkpoints.acquireLease('order-7', `${round}-${n}`, 60_000)) === false ? [] : [n];
    });
    const [winner, ...others] = (await Promise.all(takers)).flat();
    expect([winner === undefined, others]).toEqual([false, []]);
    const holder = winner === 1 ? two : one;
    const state = inProgress({ stepIndex: round });
    expect(await holder.checkpoints.saveIfLeased('order-7', state, `${round}-${winner}`)).toBe(true);
    await holder.checkpoints.releaseLease('order-7', `${round}-${winner}`);
  }
  const saves = [one, two].map(({ checkpoints }, n) =>
    checkpoints.save('order-7', inProgress({ stepIndex: 20 + n })),
  );
  await Promise.all(saves);
  expect(await two.checkpoints.history('order-7')).toHaveLength(12);
  await two.checkpoints.delete('order-7');
  expect(filesIn(one.folder)).toEqual([expect.stringMatching(/^fences/), 'format.json']);
});

it('takes over what a process left in the middle of making a name, where there are no links', async () => {
  const store = openOn(
    failingWhen(['link'], () => 'EPERM'),
    { durability: 'process' },
  );
  await store.checkpoints.save('order-7', inProgress());
  const claim = path.join(store.folder, 'runs', 'order-7', '0000000002.lease.claim');
  fs.writeFileSync(claim, '');
  const old = new Date(Date.now() - 10 * 60_000);
  fs.utimesSync(claim, old, old);
  expect(await store.checkpoints.acquireLease('order-7', 'me', 1_000)).toEqual({ fence: 2 });
});

it('takes a lease that nobody can read for one that is held, for as long as such leases last', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  await store.checkpoints.save('order-7', inProgress());
  await store.checkpoints.acquireLease('order-7', 'a', 30_000);
  const file = path.join(folder, 'runs', 'order-7', '0000000002.lease');
  fs.truncateSync(file, 30);
  const other = openStore(folder).checkpoints;
  expect(await other.acquireLease('order-7', 'b', 30_000)).toBe(false);
  const old = new Date(Date.now() - 61_000);
  fs.utimesSync(file, old, old);
  expect(await other.acquireLease('order-7', 'b', 30_000)).toEqual({ fence: 3 });
});

it.each(['EINVAL', 'EISDIR', 'EPERM', 'ENOTSUP'])(
  'does without syncs of folders where these end in %s',
  async (code) => {
    const folders = new Set<number>();
    const store = openOn({
      async open(name, mode) {
        const fd = await nodeFileSystem.open(name, mode);
        if (fs.fstatSync(fd).isDirectory()) folders.add(fd);
        else folders.delete(fd);
        return fd;
      },
      async sync(fd) {
        if (folders.has(fd)) throw failure(code);
        await nodeFileSystem.sync(fd);
      },
    });
    await store.checkpoints.save('order-7', inProgress());
    expect(await store.checkpoints.load('order-7')).toEqual(inProgress());
  },
);

/** What was synced, by the last part of its path, in order. */
function watchedSyncs(): { readonly files: Partial<FileSystem>; readonly synced: string[] } {
  const names = new Map<number, string>();
  const synced: string[] = [];
  return {
    synced,
    files: {
      async open(name, mode) {
        const fd = await nodeFileSystem.open(name, mode);
        names.set(fd, path.basename(name));
        return fd;
      },
      async sync(fd) {
        await nodeFileSystem.sync(fd);
        synced.push(names.get(fd)?.replace(/^\.tmp-.*/, 'temp') ?? '');
      },
      async syncData(fd) {
        await nodeFileSystem.syncData(fd);
        synced.push(names.get(fd) ?? '');
      },
    },
  };
}

it('syncs every file and every name that an acknowledged save needs, and nothing twice', async () => {
  const { files, synced } = watchedSyncs();
  const parent = tempFolder();
  const store = openOn(files, { folder: path.join(parent, 'deep', 'store') });
  const step = async (run: () => Promise<unknown>): Promise<string[]> => {
    synced.length = 0;
    await run();
    return [...synced];
  };
  const { checkpoints } = store;
  await checkpoints.save('first', inProgress());
  expect(synced).toEqual([
    ...['deep', path.basename(parent)], // the folders above, upwards from the new store
    ...['temp', 'store'], // format.json and its name
    'store', // the folder of all runs
    ...['store', 'unfinished'], // the folder of the marks, and that of this run
    ...['0000000001.lease', '0000000001.jsonl', 'temp', 'runs'], // the run, then its name
  ]);
  const lease = await checkpoints.acquireLease('order-7', 'me', 30_000);
  expect(lease).toEqual({ fence: 1 });
  const save = (run = inProgress()) => step(() => checkpoints.saveIfLeased('order-7', run, 'me'));
  expect(await save()).toEqual(['unfinished', 'temp', 'order-7', 'runs']);
  expect(await save()).toEqual(['0000000001.jsonl']);
  expect(await save(nextStep(inProgress(), 'on'))).toEqual(['0000000001.jsonl']);
  expect(await step(() => checkpoints.renewLease('order-7', 'me', 30_000))).toEqual([]);
  expect(await step(() => checkpoints.releaseLease('order-7', 'me'))).toEqual([]);
  expect(await step(() => checkpoints.acquireLease('order-7', 'you', 30_000))).toEqual(['temp', 'order-7']);
  expect(await step(() => store.approvals.save(approvalRecord('a-1')))).toEqual([
    'store',
    'temp',
    'approvals',
  ]);
  expect(await step(() => store.approvals.delete('a-1'))).toEqual(['approvals']);
  expect(await step(() => store.sessions.saveIfRevision(sessionRecord('chat'), 0))).toEqual([
    ...['store', '0000000001.jsonl', 'temp', 'sessions'],
  ]);
  expect(await step(() => store.sessions.saveIfRevision(sessionRecord('chat'), 1))).toEqual([
    '0000000001.jsonl',
  ]);
  expect((await step(() => checkpoints.delete('order-7'))).at(-1)).toBe('runs');
});

it('syncs nothing when only the death of the process has to be survived', async () => {
  const { files, synced } = watchedSyncs();
  const store = openOn(files, { durability: 'process' });
  await useEverything(store);
  expect(synced).toEqual([]);
});

async function useEverything({
  checkpoints,
  approvals,
  sessions,
}: Omit<FullAgentStore, 'contractVersion' | 'prune' | 'close' | typeof Symbol.asyncDispose>): Promise<void> {
  await checkpoints.save('order-7', inProgress());
  await checkpoints.acquireLease('order-7', 'me', 30_000);
  await checkpoints.saveIfLeased('order-7', finished(), 'me');
  await approvals.save(approvalRecord('a-1'));
  await sessions.saveIfRevision(sessionRecord('chat'), 0);
  await checkpoints.delete('order-7');
}

it('does not hold the thread while the disk is slow', async () => {
  let finish: () => void = () => undefined;
  const store = openOn({
    syncData: () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
  });
  await store.checkpoints.save('order-7', inProgress());
  let isSaved = false;
  const saving = store.checkpoints.save('order-7', finished()).then(() => {
    isSaved = true;
  });
  onTestFinished(() => finish());
  // Others go on: heartbeats, and runs beside it.
  expect(await store.checkpoints.acquireLease('order-8', 'me', 1_000)).not.toBe(false);
  expect(await store.checkpoints.renewLease('order-8', 'me', 1_000)).toBe(true);
  expect(isSaved).toBe(false);
  finish();
  await saving;
});
