/** The folder of a store is taken away or exchanged under it: whatever is written next is refused, and nothing is written into what came. */
import fs from 'node:fs';
import path from 'node:path';
import type { FullAgentStore } from '@lousho/contract';
import { expect, it } from 'vitest';
import { nodeFileSystem } from '../src/file-system.ts';
import { approvalRecord, finished, inProgress, nextStep, sessionRecord } from './support/fixtures.ts';
import { newestLog } from './support/raw-files.ts';
import { filesIn, openOn, openStore, tempFolder } from './support/temp-store.ts';

const TTL_MS = 30_000;
const replaced = { code: 'LOUSHO_STORE_REPLACED', retryable: false };

interface World {
  readonly folder: string;
  readonly older: string;
  readonly gone: string;
  readonly store: FullAgentStore;
}

/** A store that was copied, and has gone on since. */
async function givenStoreAndCopy(): Promise<World> {
  const parent = tempFolder();
  const [folder, older, gone] = ['store', 'older', 'gone'].map((name) => path.join(parent, name)) as [
    string,
    string,
    string,
  ];
  const store = openStore(folder);
  await store.checkpoints.save('plain', inProgress());
  await store.checkpoints.acquireLease('order-7', 'me', TTL_MS);
  await store.checkpoints.saveIfLeased('order-7', inProgress(), 'me');
  await store.approvals.save(approvalRecord('a-1'));
  await store.sessions.saveIfRevision(sessionRecord('chat'), 0);
  await store.checkpoints.save('old', finished());
  fs.cpSync(folder, older, { recursive: true });
  await store.checkpoints.saveIfLeased('order-7', nextStep(inProgress(), 'on'), 'me');
  await store.checkpoints.save('plain', nextStep(inProgress(), 'on'));
  await store.sessions.saveIfRevision(sessionRecord('chat'), 1);
  return { folder, older, gone, store };
}

const later = nextStep(nextStep(inProgress(), 'on'), 'later');

const writes: readonly {
  readonly name: string;
  readonly run: (store: FullAgentStore) => Promise<unknown>;
}[] = [
  { name: 'a save', run: ({ checkpoints }) => checkpoints.save('plain', later) },
  {
    name: 'a save under a lease',
    run: ({ checkpoints }) => checkpoints.saveIfLeased('order-7', later, 'me'),
  },
  { name: 'the first save of a run', run: ({ checkpoints }) => checkpoints.save('new', inProgress()) },
  { name: 'a lease', run: ({ checkpoints }) => checkpoints.acquireLease('plain', 'me', TTL_MS) },
  { name: 'the lease of a new run', run: ({ checkpoints }) => checkpoints.acquireLease('new', 'me', TTL_MS) },
  { name: 'a heartbeat', run: ({ checkpoints }) => checkpoints.renewLease('order-7', 'me', TTL_MS) },
  { name: 'the end of a lease', run: ({ checkpoints }) => checkpoints.releaseLease('order-7', 'me') },
  { name: 'deleting a run', run: ({ checkpoints }) => checkpoints.delete('plain') },
  { name: 'an approval', run: ({ approvals }) => approvals.save(approvalRecord('a-2')) },
  { name: 'deleting an approval', run: ({ approvals }) => approvals.delete('a-1') },
  { name: 'a commit of a session', run: ({ sessions }) => sessions.saveIfRevision(sessionRecord('chat'), 2) },
  { name: 'a new session', run: ({ sessions }) => sessions.saveIfRevision(sessionRecord('new'), 0) },
  { name: 'deleting a session', run: ({ sessions }) => sessions.delete('chat') },
  { name: 'pruning', run: (store) => store.prune({ olderThanMs: 1 }) },
];

/** Every file with its content. */
function contentOf(folder: string): readonly (readonly [string, string])[] {
  return filesIn(folder).map((name) => [name, fs.readFileSync(path.join(folder, name), 'utf8')]);
}

it.each(writes)('refuses $name when an older copy is in the place of the store', async ({ run }) => {
  const { folder, older, gone, store } = await givenStoreAndCopy();
  fs.renameSync(folder, gone);
  fs.renameSync(older, folder);
  const before = [contentOf(folder), contentOf(gone)];
  await expect(run(store)).rejects.toMatchObject(replaced);
  expect([contentOf(folder), contentOf(gone)]).toEqual(before);
  // It stays so: another store has to be opened.
  await expect(run(store)).rejects.toMatchObject(replaced);
});

it.each(writes)('refuses $name when nothing is in the place of the store', async ({ run }) => {
  const { folder, gone, store } = await givenStoreAndCopy();
  fs.renameSync(folder, gone);
  const before = contentOf(gone);
  await expect(run(store)).rejects.toMatchObject({ ...replaced, details: { path: expect.any(String) } });
  expect([fs.existsSync(folder), contentOf(gone)]).toEqual([false, before]);
});

it('goes on in the copy with a new store', async () => {
  const { folder, older, gone, store } = await givenStoreAndCopy();
  fs.renameSync(folder, gone);
  fs.renameSync(older, folder);
  await expect(store.checkpoints.saveIfLeased('order-7', later, 'me')).rejects.toMatchObject(replaced);
  const next = openStore(folder);
  expect(await next.checkpoints.load('order-7')).toEqual(inProgress());
  await next.checkpoints.save('order-7', later);
  expect(await openStore(folder).checkpoints.load('order-7')).toEqual(later);
});

it.each(['runs', path.join('runs', 'order-7')])(
  'refuses a save when only %s was exchanged for an older copy',
  async (part) => {
    const { folder, older, gone, store } = await givenStoreAndCopy();
    fs.renameSync(path.join(folder, part), gone);
    fs.renameSync(path.join(older, part), path.join(folder, part));
    const before = contentOf(gone);
    await expect(store.checkpoints.saveIfLeased('order-7', later, 'me')).rejects.toMatchObject({
      ...replaced,
      details: { path: newestLog(folder, 'order-7') },
    });
    expect(contentOf(gone)).toEqual(before);
    expect(await openStore(folder).checkpoints.load('order-7')).toEqual(inProgress());
  },
);

it('refuses what it wrote while the folder was exchanged', async () => {
  const parent = tempFolder();
  const [folder, gone] = [path.join(parent, 'store'), path.join(parent, 'gone')];
  let isMoved = false;
  const move = (): void => {
    if (!isMoved) return;
    isMoved = false;
    fs.renameSync(folder, gone);
  };
  const { checkpoints, approvals } = openOn(
    {
      async write(fd, bytes, position) {
        move();
        return nodeFileSystem.write(fd, bytes, position);
      },
    },
    { folder },
  );
  await checkpoints.save('order-7', inProgress());
  await checkpoints.save('order-7', nextStep(inProgress(), 'on'));
  isMoved = true;
  await expect(checkpoints.save('order-7', later)).rejects.toMatchObject(replaced);
  // What nobody was told is taken back.
  expect((await openStore(gone).checkpoints.load('order-7'))?.stepIndex).toBe(1);
  fs.renameSync(gone, folder);
  isMoved = true;
  await expect(approvals.save(approvalRecord('a-1'))).rejects.toMatchObject(replaced);
});

it('refuses what was stored in a folder that went before it was acknowledged', async () => {
  const parent = tempFolder();
  const [folder, gone] = [path.join(parent, 'store'), path.join(parent, 'gone')];
  let isMoved = false;
  const syncAndMove = async (fd: number): Promise<void> => {
    await nodeFileSystem.sync(fd);
    if (isMoved && fs.existsSync(folder)) fs.renameSync(folder, gone);
  };
  const { checkpoints, approvals } = openOn({ sync: syncAndMove, syncData: syncAndMove }, { folder });
  await checkpoints.save('order-7', inProgress());
  await checkpoints.save('order-7', nextStep(inProgress(), 'on'));
  await approvals.save(approvalRecord('a-1'));
  for (const write of [
    () => checkpoints.save('order-7', later),
    () => approvals.save(approvalRecord('a-2')),
    () => checkpoints.save('order-8', inProgress()),
  ]) {
    isMoved = true;
    await expect(write()).rejects.toMatchObject(replaced);
    isMoved = false;
    fs.renameSync(gone, folder);
  }
});

it('refuses a save whose log was taken away while it was synced', async () => {
  const folder = tempFolder();
  let log = '';
  const { checkpoints } = openOn(
    {
      async syncData(fd) {
        await nodeFileSystem.syncData(fd);
        if (log !== '') fs.renameSync(log, `${log}.mine`);
      },
    },
    { folder },
  );
  await checkpoints.save('order-7', inProgress());
  await checkpoints.save('order-7', nextStep(inProgress(), 'on'));
  log = newestLog(folder, 'order-7');
  await expect(checkpoints.save('order-7', later)).rejects.toMatchObject({ code: 'LOUSHO_STORE_REPLACED' });
});

it('counts a save that was carried over, whose log is gone by the time it is looked at', async () => {
  const folder = tempFolder();
  let takeOver: (() => Promise<void>) | undefined;
  const slow = openOn(
    {
      async write(fd, bytes, position) {
        const written = await nodeFileSystem.write(fd, bytes, position);
        const task = takeOver;
        takeOver = undefined;
        await task?.();
        return written;
      },
    },
    { folder, durability: 'process' },
  );
  await slow.checkpoints.save('order-7', inProgress());
  await slow.checkpoints.save('order-7', nextStep(inProgress(), 'on'));
  const log = newestLog(folder, 'order-7');
  takeOver = async () => {
    const { checkpoints } = openStore(folder);
    await checkpoints.acquireLease('order-7', 'you', TTL_MS);
    await checkpoints.saveIfLeased('order-7', nextStep(later, 'taken'), 'you');
  };
  await slow.checkpoints.save('order-7', later);
  expect(fs.existsSync(log)).toBe(false);
  const history = await openStore(folder).checkpoints.history('order-7');
  expect(history.map(({ checkpoint }) => checkpoint.stepIndex)).toEqual([3, 2, 1, 0]);
});

it('tells a lease that was deleted by another handle from one whose files were taken away', async () => {
  const folder = tempFolder();
  const { checkpoints } = openStore(folder);
  for (const id of ['order-7', 'order-8']) {
    await checkpoints.acquireLease(id, 'me', TTL_MS);
    await checkpoints.saveIfLeased(id, inProgress(), 'me');
  }
  await openStore(folder).checkpoints.delete('order-7');
  expect(await checkpoints.renewLease('order-7', 'me', TTL_MS)).toBe(false);
  expect(await checkpoints.saveIfLeased('order-7', later, 'me')).toBe(false);
  fs.rmSync(path.join(folder, 'runs'), { recursive: true });
  await expect(checkpoints.renewLease('order-8', 'me', TTL_MS)).rejects.toMatchObject(replaced);
  await expect(checkpoints.saveIfLeased('order-8', later, 'me')).rejects.toMatchObject(replaced);
});

const removals = ['.', 'runs', path.join('runs', 'order-7')].flatMap((part) =>
  [1, 2].map((saves) => ({ part, saves })),
);

it.each(removals)('stops a run when "$part" is deleted behind its save $saves', async ({ part, saves }) => {
  const folder = path.join(tempFolder(), 'store');
  const { checkpoints } = openStore(folder);
  await checkpoints.acquireLease('order-7', 'me', TTL_MS);
  let state = inProgress();
  for (let save = 1; save <= saves; save += 1) {
    state = nextStep(state, `step ${save}`);
    expect(await checkpoints.saveIfLeased('order-7', state, 'me')).toBe(true);
  }
  fs.rmSync(path.join(folder, part), { recursive: true });
  const next = nextStep(state, 'on');
  await expect(checkpoints.saveIfLeased('order-7', next, 'me')).rejects.toMatchObject(replaced);
  await expect(checkpoints.renewLease('order-7', 'me', TTL_MS)).rejects.toMatchObject(replaced);
  expect(await openStore(folder).checkpoints.load('order-7')).toBeNull();
});

it.each([
  ['is a file', (file: string) => file],
  ['lies in a file', (file: string) => path.join(file, 'store')],
])('says at the first use that the path %s', async (_what, pathFrom) => {
  const file = path.join(tempFolder(), 'notes.txt');
  fs.writeFileSync(file, 'mine');
  const dir = pathFrom(file);
  const store = openStore(dir);
  const invalid = {
    code: 'LOUSHO_CONFIG_INVALID',
    details: { option: 'dir', got: dir, want: expect.stringContaining('folder') },
    message: expect.stringContaining(dir),
  };
  await expect(store.checkpoints.save('order-7', inProgress())).rejects.toMatchObject(invalid);
  await expect(store.checkpoints.load('order-7')).rejects.toMatchObject(invalid);
  await expect(store.checkpoints.list()).rejects.toMatchObject(invalid);
  await expect(store.checkpoints.acquireLease('order-7', 'me', TTL_MS)).rejects.toMatchObject(invalid);
  await expect(store.approvals.save(approvalRecord('a-1'))).rejects.toMatchObject(invalid);
  await expect(store.sessions.saveIfRevision(sessionRecord('chat'), 0)).rejects.toMatchObject(invalid);
  expect(fs.readFileSync(file, 'utf8')).toBe('mine');
});

it.each([
  ['makeFolders', 'EACCES'],
  ['makeFolders', 'EPERM'],
  ['makeFolders', 'EROFS'],
  ['open', 'EACCES'],
  ['open', 'EROFS'],
] as const)('says at the first use that it may not make its folder: %s ends in %s', async (name, code) => {
  let isForbidden = true;
  const real = nodeFileSystem as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
  const store = openOn({
    [name]: async (...args: unknown[]) => {
      if (isForbidden && (name !== 'open' || args[1] === 'new'))
        throw Object.assign(new Error(`${code}: not allowed`), { code, syscall: name });
      return real[name]?.(...args);
    },
  });
  await expect(store.checkpoints.save('order-7', inProgress())).rejects.toMatchObject({
    code: 'LOUSHO_CONFIG_INVALID',
    details: { option: 'dir', got: store.folder, want: expect.stringContaining('folder') },
    message: expect.stringContaining(store.folder),
    cause: { code },
  });
  isForbidden = false;
  await store.checkpoints.save('order-7', inProgress());
});
