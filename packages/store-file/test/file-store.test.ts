/** What a caller sees of the store as a whole: options, claims, identity of what is saved and loaded, the files, closing. */
import fs from 'node:fs';
import path from 'node:path';
import {
  ConfigurationError,
  deepFreeze,
  isDeepFrozen,
  type Checkpoint,
  type FullAgentStore,
  type Message,
} from '@lousho/contract';
import { expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../src/file-system.ts';
import { FileCheckpointStore, fileStore } from '../src/index.ts';
import { approvalRecord, finished, inProgress, nextStep, says, sessionRecord } from './support/fixtures.ts';
import { newestLog, savesIn } from './support/raw-files.ts';
import { filesIn, openOn, openStore, tempFolder } from './support/temp-store.ts';

it('creates nothing before the first save, and answers all the same', async () => {
  const folder = path.join(tempFolder(), 'deep', 'store');
  const store = openStore(folder);
  expect(await store.checkpoints.load('order-7')).toBeNull();
  expect(await store.checkpoints.history('order-7')).toEqual([]);
  expect(await store.checkpoints.list()).toEqual([]);
  expect(await store.checkpoints.listHeaders()).toEqual([]);
  expect(await store.checkpoints.renewLease('order-7', 'me', 1_000)).toBe(false);
  await store.checkpoints.releaseLease('order-7', 'me');
  await store.checkpoints.delete('order-7');
  expect(await store.approvals.load('a-1')).toBeNull();
  expect(await store.approvals.list()).toEqual([]);
  expect(await store.approvals.delete('a-1')).toBe(false);
  expect(await store.sessions.load('chat')).toBeNull();
  expect(await store.sessions.list?.()).toEqual([]);
  await store.sessions.delete('chat');
  await store.prune({ olderThanMs: 0 });
  await store.close();
  expect(fs.existsSync(path.dirname(folder))).toBe(false);
});

it('leaves the files that its documentation names, and no others', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  await store.checkpoints.save('order-7', inProgress());
  await store.checkpoints.save('Order-8', inProgress());
  await store.checkpoints.acquireLease('order-9', 'me', 1_000);
  await store.sessions.saveIfRevision(sessionRecord('chat'), 0);
  await store.approvals.save(approvalRecord('order-7.apr-abcd1234-1-0'));
  expect(filesIn(folder)).toEqual([
    'approvals/order-7.apr-abcd1234-1-0.json',
    'format.json',
    'runs/order-7/0000000001.jsonl',
    'runs/order-7/0000000001.lease',
    expect.stringMatching(/^runs\/order-8~[0-9a-f]{10}\/0000000001\.jsonl$/),
    expect.stringMatching(/^runs\/order-8~[0-9a-f]{10}\/0000000001\.lease$/),
    'runs/order-9/0000000001.lease',
    'sessions/chat/0000000001.jsonl',
    'unfinished/order-7.0000000001.1',
    expect.stringMatching(/^unfinished\/order-8~[0-9a-f]{10}\.0000000001\.1$/),
  ]);
  for (const id of ['order-7', 'Order-8', 'order-9']) await store.checkpoints.delete(id);
  await store.sessions.delete('chat');
  await store.approvals.delete('order-7.apr-abcd1234-1-0');
  expect(filesIn(folder)).toEqual(['fences/0000000002', 'format.json']);
});

it('writes logs that a person can read, one JSON object a line', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  let run = inProgress();
  for (const text of ['one', 'x'.repeat(9_000), 'three']) {
    await store.checkpoints.save('order-7', run);
    run = nextStep(run, text);
  }
  const lines = fs.readFileSync(newestLog(folder, 'order-7'), 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => Object.keys(JSON.parse(line) as object)[0])).toEqual([
    'format',
    'q',
    'q',
    'd',
    'q',
  ]);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ format: 1, kind: 'run', id: 'order-7', generation: 1 });
  expect(fs.statSync(newestLog(folder, 'order-7')).mode & 0o777).toBe(0o600);
});

it('loads what was saved, through every handle on the folder, by whatever path, and after a reopen', async () => {
  const folder = tempFolder();
  const relative = path.relative(process.cwd(), folder);
  const [one, two] = [openStore(folder), openStore(relative)];
  await one.checkpoints.save('order-7', inProgress());
  expect(await two.checkpoints.load('order-7')).toEqual(inProgress());
  await two.checkpoints.save('order-7', finished());
  expect(await one.checkpoints.load('order-7')).toEqual(finished());
  await Promise.all([one.close(), two.close()]);
  expect(await openStore(folder).checkpoints.load('order-7')).toEqual(finished());
});

it('keeps ids apart that differ in case alone, in every part', async () => {
  const store = openStore();
  const { checkpoints, sessions, approvals } = store;
  for (const id of ['Alice', 'alice']) {
    await checkpoints.save(id, inProgress({ runId: id }));
    await sessions.saveIfRevision(sessionRecord(id, { turn: id.length }), 0);
    await approvals.save(approvalRecord(id));
  }
  await checkpoints.delete('Alice');
  await sessions.delete('Alice');
  await approvals.delete('Alice');
  expect(await checkpoints.load('Alice')).toBeNull();
  expect(await checkpoints.load('alice')).toMatchObject({ runId: 'alice' });
  expect(await sessions.list?.()).toEqual(['alice']);
  expect((await approvals.list()).map(({ id }) => id)).toEqual(['alice']);
});

it('takes ids of 300 characters and refuses malformed ones', async () => {
  const { checkpoints, approvals, sessions } = openStore();
  const long = 'X'.repeat(300);
  await checkpoints.save(long, inProgress());
  expect(await checkpoints.acquireLease(long, 'me', 1_000)).toEqual({ fence: 2 });
  expect(await checkpoints.history(long)).toHaveLength(1);
  expect((await checkpoints.list())[0]?.sessionId).toBe(long);
  for (const id of ['../evil', 'a/../../b', 'a/b', '..', '', '.a', 'x'.repeat(301)]) {
    const invalid = { code: 'LOUSHO_SESSION_ID_INVALID' };
    await expect(checkpoints.save(id, inProgress())).rejects.toMatchObject(invalid);
    await expect(checkpoints.load(id)).rejects.toMatchObject(invalid);
    await expect(checkpoints.delete(id)).rejects.toMatchObject(invalid);
    await expect(sessions.load(id)).rejects.toMatchObject(invalid);
    await expect(approvals.save(approvalRecord(id))).rejects.toMatchObject(invalid);
    expect(await approvals.load(id)).toBeNull();
    expect(await approvals.delete(id)).toBe(false);
  }
});

it('gives back frozen values, with the fields that this release does not know', async () => {
  const { checkpoints } = openStore();
  const newer = { ...inProgress(), mood: { colour: 'blue' }, q: 1, '@': 2, c: 'x', d: [1] } as Checkpoint;
  await checkpoints.save('order-7', newer);
  const loaded = await checkpoints.load('order-7');
  expect(loaded).toEqual(newer);
  expect(isDeepFrozen(loaded)).toBe(true);
});

it('is not changed by what happens to a saved object afterwards', async () => {
  const { checkpoints } = openStore();
  const businessState = { total: 1 };
  const mutable = { ...inProgress(), businessState };
  const saving = checkpoints.save('order-7', mutable);
  businessState.total = 2;
  await saving;
  businessState.total = 3;
  await checkpoints.save('order-7', nextStep(inProgress({ businessState: { total: 4 } }), 'on'));
  expect((await checkpoints.history('order-7')).map(({ checkpoint }) => checkpoint.businessState)).toEqual([
    { total: 4 },
    { total: 1 },
  ]);
});

it('stores texts that are not well-formed Unicode, and those that look like a log', async () => {
  const { checkpoints } = openStore();
  const checkpoint = inProgress({
    businessState: {
      text: 'a\ud800b',
      zero: '\u0000',
      line: '\u2028\n{"q":9}\n',
      end: ',"c":"0000000000000000"}',
    },
    messages: [says('\u0000'.repeat(10)), says('\n"}'.repeat(2_000))],
  });
  await checkpoints.save('order-7', checkpoint);
  expect(await checkpoints.load('order-7')).toEqual(checkpoint);
});

it('says what it guarantees', () => {
  const claims = { leases: 'atomic', history: true, list: true, consistency: 'strong' };
  expect(fileStore(tempFolder()).checkpoints.claims).toEqual({ ...claims, durable: 'power' });
  expect(openStore().checkpoints.claims).toEqual({ ...claims, durable: 'process' });
  expect(openStore().contractVersion).toBe(1);
});

it.each([
  { historyLimit: -1 },
  { historyLimit: 1.5 },
  { historyMaxBytes: -1 },
  { retentionMs: Number.NaN },
  { durability: 'maybe' },
  { durabilty: 'process' },
])('refuses the options %j', (options) => {
  for (const open of [fileStore, (dir: string, given: never) => new FileCheckpointStore(dir, given)]) {
    expect(() => open(tempFolder(), options as never)).toThrow(ConfigurationError);
    expect(() => open(tempFolder(), options as never)).toThrow(Object.keys(options)[0]);
  }
});

it.each([undefined, '', ' runs', 7])('refuses the folder %j', (dir) => {
  expect(() => fileStore(dir as never)).toThrow(ConfigurationError);
});

it('offers the checkpoint part alone, on the same files', async () => {
  const folder = tempFolder();
  await using checkpoints = new FileCheckpointStore(folder, { durability: 'process' });
  const lease = await checkpoints.acquireLease('order-7', 'me', 1_000);
  expect(lease && (await checkpoints.saveIfLeased('order-7', inProgress(), 'me', lease.fence))).toBe(true);
  expect(await checkpoints.renewLease('order-7', 'me', 1_000)).toBe(true);
  await checkpoints.releaseLease('order-7', 'me');
  await checkpoints.save('order-8', finished());
  const store = openStore(folder);
  expect(await store.checkpoints.load('order-7')).toEqual(inProgress());
  expect(await checkpoints.load('order-8')).toEqual(finished());
  expect(await checkpoints.list()).toEqual(await store.checkpoints.list());
  expect(await checkpoints.listHeaders({ status: 'finished' })).toHaveLength(1);
  expect(await checkpoints.history('order-7')).toHaveLength(1);
  expect(await checkpoints.prune({ olderThanMs: 0 })).toMatchObject({ checkpoints: 1 });
  await checkpoints.delete('order-7');
  expect(await store.checkpoints.load('order-7')).toBeNull();
  expect(checkpoints.claims).toEqual(store.checkpoints.claims);
});

it('waits for what is under way when it is closed, and refuses what comes then', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const saves = Array.from({ length: 20 }, (_, n) => store.checkpoints.save(`order-${n}`, inProgress()));
  const closing = store.close();
  const closed = { code: 'LOUSHO_STORE_CLOSED', retryable: false };
  await expect(store.checkpoints.load('order-1')).rejects.toMatchObject(closed);
  await Promise.all([...saves, closing, store.close(), store[Symbol.asyncDispose]()]);
  expect(await openStore(folder).checkpoints.list()).toHaveLength(20);
  await expect(store.prune({ olderThanMs: 0 })).rejects.toMatchObject(closed);
});

it('keeps the saves of a run in their order, however many are under way', async () => {
  const { checkpoints } = openStore();
  let run = inProgress();
  const saves: Promise<void>[] = [];
  for (let step = 0; step < 30; step += 1) {
    saves.push(checkpoints.save('order-7', run));
    run = nextStep(run, `step ${step}`);
  }
  await Promise.all(saves);
  expect((await checkpoints.history('order-7')).map(({ step }) => step)).toEqual(
    Array.from({ length: 30 }, (_, n) => 29 - n),
  );
});

it('opens no more files than a few, however many runs it saves to', async () => {
  let open = 0;
  let most = 0;
  const files: Partial<FileSystem> = {
    async open(name, mode) {
      const fd = await nodeFileSystem.open(name, mode);
      most = Math.max(most, (open += 1));
      return fd;
    },
    async close(fd) {
      open -= 1;
      await nodeFileSystem.close(fd);
    },
  };
  const store = openOn(files, { durability: 'process' });
  const ids = Array.from({ length: 150 }, (_, n) => `order-${n}`);
  for (const id of ids) await store.checkpoints.save(id, inProgress());
  for (const id of ids) await store.checkpoints.save(id, nextStep(inProgress(), 'on'));
  await store.checkpoints.list();
  await store.checkpoints.listHeaders();
  expect(most).toBeLessThan(80);
  await store.close();
  expect(open).toBe(0);
});

it('lists headers without reading transcripts', async () => {
  let bytesRead = 0;
  const read: FileSystem['read'] = async (fd, into, position) => {
    const count = await nodeFileSystem.read(fd, into, position);
    bytesRead += count;
    return count;
  };
  const store = openOn({ read }, { durability: 'process' });
  for (const id of ['a', 'b', 'c']) {
    await store.checkpoints.acquireLease(id, 'me', 1_000);
    let run = inProgress({ metadata: { id } });
    const save = (): Promise<boolean> => store.checkpoints.saveIfLeased(id, run, 'me');
    // The facts are far from both ends, and the last save is long itself.
    await save();
    for (const filler of ['x', 'y', 'z']) {
      run = nextStep(run, filler.repeat(100_000));
      await save();
    }
    run = nextStep(run, 'w'.repeat(100_000), { metadata: { id, changed: true } });
    await save();
    run = nextStep(run, 'v'.repeat(100_000));
    await save();
  }
  bytesRead = 0;
  const headers = await store.checkpoints.listHeaders();
  expect(bytesRead).toBeLessThan(3 * 20_000);
  expect(headers.map(({ sessionId, header }) => [sessionId, header?.metadata, header?.messageCount])).toEqual(
    ['a', 'b', 'c'].map((id) => [id, { id, changed: true }, 6]),
  );
  expect(headers).toEqual(
    (await store.checkpoints.list()).map(({ sessionId, status, checkpoint }) => {
      if (checkpoint === null) throw new Error('it was saved');
      const {
        messages,
        inputIds: _i,
        heldInput: _h,
        settledResults: _r,
        businessState: _b,
        ...rest
      } = checkpoint;
      return { sessionId, status, header: { ...rest, messageCount: messages.length } };
    }),
  );
});

it('takes no notice of what others put into its folders', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  await store.checkpoints.save('order-7', inProgress());
  await store.approvals.save(approvalRecord('a-1'));
  await store.sessions.saveIfRevision(sessionRecord('chat'), 0);
  for (const root of ['runs', 'approvals', 'sessions']) {
    fs.writeFileSync(path.join(folder, root, 'notes'), 'mine');
    fs.mkdirSync(path.join(folder, root, 'Holiday Photos'));
    fs.mkdirSync(path.join(folder, root, 'empty'));
    fs.writeFileSync(path.join(folder, root, '.DS_Store'), '');
  }
  fs.writeFileSync(path.join(folder, 'runs', 'order-7', 'notes.txt'), 'mine');
  expect(await store.checkpoints.list()).toHaveLength(1);
  expect(await store.checkpoints.listHeaders()).toHaveLength(1);
  expect(await store.approvals.list()).toHaveLength(1);
  expect(await store.sessions.list?.()).toEqual(['chat']);
  await store.checkpoints.delete('order-7');
  await store.checkpoints.save('order-7', inProgress());
  expect(await store.checkpoints.load('order-7')).toEqual(inProgress());
});

it('begins a run in the folder that a dead process left, and beside the files of others', async () => {
  const folder = tempFolder();
  const [one, two] = [openStore(folder), openStore(folder)];
  await one.checkpoints.save('order-1', inProgress());
  for (const id of ['order-7', 'order-8', 'order-9']) fs.mkdirSync(path.join(folder, 'runs', id));
  fs.writeFileSync(path.join(folder, 'runs', 'order-8', '.tmp-dead'), '');
  fs.writeFileSync(path.join(folder, 'runs', 'order-9', '.deleted-but-open'), 'mine');
  for (const id of ['order-7', 'order-8', 'order-9']) {
    const taken = await Promise.all(
      [one, two, one].map(({ checkpoints }, n) => checkpoints.acquireLease(id, `owner-${n}`, 60_000)),
    );
    expect(taken.filter((lease) => lease !== false)).toHaveLength(1);
    await one.checkpoints.delete(id);
    await Promise.all([one, two].map(({ checkpoints }) => checkpoints.save(id, inProgress())));
    expect(await two.checkpoints.history(id)).toHaveLength(2);
  }
  expect(fs.readdirSync(path.join(folder, 'runs', 'order-9'))).toContain('.deleted-but-open');
});

it('takes away what dead processes left in the middle of a write, once it is old', async () => {
  const folder = tempFolder();
  await openStore(folder).checkpoints.save('order-7', inProgress());
  await openStore(folder).approvals.save(approvalRecord('a-1'));
  const old = new Date(Date.now() - 2 * 60 * 60_000);
  const temps = ['runs/.tmp-old/0000000001.lease', 'approvals/.tmp-old', 'runs/.tmp-new', '.tmp-old'];
  fs.mkdirSync(path.join(folder, 'runs/.tmp-old'));
  for (const temp of temps) fs.writeFileSync(path.join(folder, temp), 'x');
  for (const temp of ['runs/.tmp-old', 'approvals/.tmp-old', '.tmp-old'])
    fs.utimesSync(path.join(folder, temp), old, old);
  const store = openStore(folder);
  await store.checkpoints.load('order-7');
  expect(filesIn(folder)).toEqual(expect.arrayContaining(temps));
  await store.checkpoints.save('order-7', inProgress());
  expect(filesIn(folder).filter((name) => name.includes('.tmp-'))).toEqual(['runs/.tmp-new']);
});

/** A message that tells how often its content is looked at. */
function watched(): { readonly message: Message; readonly looks: () => number } {
  let count = 0;
  const message = Object.defineProperty({ role: 'user' } as { role: 'user'; content: string }, 'content', {
    enumerable: true,
    get: () => {
      count += 1;
      return 'Hello';
    },
  });
  return { message: deepFreeze(message), looks: () => count };
}

async function saveAndLook(store: FullAgentStore, run: Checkpoint): Promise<Checkpoint> {
  await store.checkpoints.save('order-7', run);
  // Somebody looks at the run meanwhile: that must not make the next save compare.
  await store.checkpoints.load('order-7');
  await store.checkpoints.history('order-7');
  return nextStep(run, 'on');
}

it('warns once when the folder lies on a network, and not of a local disk', async () => {
  const remote = openOn({}, { networkKindOf: () => 'NFS' });
  await remote.checkpoints.save('order-7', inProgress());
  await remote.checkpoints.save('order-7', inProgress({ stepIndex: 2 }));
  expect(remote.warnings).toEqual([expect.stringContaining(`"${remote.folder}" lies on NFS`)]);
  const local = openOn({});
  await local.checkpoints.save('order-7', inProgress());
  expect(local.warnings).toEqual([]);
});

it('never looks at stored messages again to find out what a save adds', async () => {
  const store = openStore();
  const { message, looks } = watched();
  let run: Checkpoint = inProgress({ messages: deepFreeze([message]) });
  await store.checkpoints.save('order-7', run);
  const before = looks();
  for (let step = 0; step < 5; step += 1) run = await saveAndLook(store, nextStep(run, 'on'));
  expect(looks()).toBe(before);
});

it('appends to what it loaded as to what it wrote itself', async () => {
  const folder = tempFolder();
  await openStore(folder).checkpoints.save(
    'order-7',
    inProgress({ messages: Array.from({ length: 20 }, (_, n) => says(`${n}`)) }),
  );
  const { checkpoints } = openStore(folder);
  const loaded = await checkpoints.load('order-7');
  if (loaded === null) throw new Error('it was saved');
  await checkpoints.save('order-7', nextStep(loaded, 'on'));
  const [whole = '', added = ''] = savesIn(newestLog(folder, 'order-7'));
  expect(whole.length).toBeGreaterThan(1_000);
  expect(added.length).toBeLessThan(300);
});
