/** What is damaged is said to be damaged: never an empty store, never a record that was not saved. */
import fs from 'node:fs';
import path from 'node:path';
import {
  deepFreeze,
  foldEvents,
  jsonEqual,
  type Checkpoint,
  type FullAgentStore,
  type LogEvent,
} from '@lousho/contract';
import { beforeEach, expect, it } from 'vitest';
import {
  approvalRecord,
  finished,
  hello,
  inProgress,
  nextStep,
  says,
  sessionRecord,
} from './support/fixtures.ts';
import { newestLog } from './support/raw-files.ts';
import { nodeFileSystem, type FileSystem } from '../src/file-system.ts';
import { openOn, openStore, tempFolder } from './support/temp-store.ts';

const DAMAGED = { code: 'LOUSHO_CHECKPOINT_CORRUPT', retryable: false };

let folder: string;
let store: FullAgentStore;
beforeEach(() => {
  folder = tempFolder();
  store = openStore(folder);
});

/** A run of a few saves, the last but one long enough for two lines. */
async function savedStates(id = 'order-7'): Promise<Checkpoint[]> {
  const states: Checkpoint[] = [inProgress({ businessState: { a: 1 } })];
  for (const text of ['one', 'x'.repeat(5_000), 'two'])
    states.push(nextStep(states.at(-1) as Checkpoint, text));
  for (const state of states) await store.checkpoints.save(id, state);
  return states;
}

/** What is loaded of each variant of the log: the number of the state among those that were saved, or the code of the error. Each once. */
async function outcomesOf(
  states: readonly Checkpoint[],
  variants: Iterable<Buffer>,
): Promise<(number | string)[]> {
  let variant: Buffer = Buffer.alloc(0);
  const reader = openOn(
    variantOf(() => variant),
    { folder, durability: 'process' },
  );
  const found = new Set<number | string>();
  for (variant of variants) {
    const loading = reader.checkpoints.load('order-7');
    const outcome = await loading.catch((error: unknown) => (error as { readonly code: string }).code);
    const index = states.findIndex((state) => jsonEqual(state as never, outcome as never));
    found.add(
      index !== -1
        ? index
        : String(typeof outcome === 'string' ? outcome : JSON.stringify(outcome)).slice(0, 200),
    );
  }
  return [...found].sort();
}

/** A file system in which the log holds something else. Not on the disk: there are thousands of variants. */
function variantOf(bytes: () => Buffer): Partial<FileSystem> {
  const fake = -7;
  const names = fs.readdirSync(path.join(folder, 'runs', 'order-7'));
  return {
    list: async () => names,
    open: async (file, mode) => (file.endsWith('.jsonl') ? fake : nodeFileSystem.open(file, mode)),
    stat: async (file) =>
      file === fake
        ? { size: bytes().length, identity: 'variant', isFolder: false, ageMs: 0, writtenAtMs: 0 }
        : nodeFileSystem.stat(file),
    read: async (fd, into, position) =>
      fd === fake ? bytes().copy(into, 0, position) : nodeFileSystem.read(fd, into, position),
    close: async (fd) => (fd === fake ? undefined : nodeFileSystem.close(fd)),
  };
}

it('is the state before or an error when the log is cut anywhere', { timeout: 60_000 }, async () => {
  const states = await savedStates();
  const whole = fs.readFileSync(newestLog(folder, 'order-7'));
  function* cuts(): Iterable<Buffer> {
    for (let length = 0; length < whole.length; length += 1) yield whole.subarray(0, length);
  }
  expect(await outcomesOf(states, cuts())).toEqual([0, 1, 2, DAMAGED.code]);
});

it('is an error when a bit is another one', { timeout: 60_000 }, async () => {
  const states = await savedStates();
  const whole = fs.readFileSync(newestLog(folder, 'order-7'));
  function* flips(): Iterable<Buffer> {
    for (let at = 0; at < whole.length; at += 1) {
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
      yield bytes;
    }
  }
  expect(await outcomesOf(states, flips())).toEqual([DAMAGED.code]);
});

it('is the state before or an error when the end is zeros', { timeout: 60_000 }, async () => {
  const states = await savedStates();
  const whole = fs.readFileSync(newestLog(folder, 'order-7'));
  function* zeroed(): Iterable<Buffer> {
    for (let from = 0; from < whole.length; from += 1) yield Buffer.from(whole).fill(0, from);
  }
  expect(await outcomesOf(states, zeroed())).toEqual([0, 1, 2, DAMAGED.code]);
});

it('would be noticed if whatever parses counted', { timeout: 60_000 }, async () => {
  const states = await savedStates();
  const whole = fs.readFileSync(newestLog(folder, 'order-7'));
  const wrong = new Set<string>();
  for (let at = 0; at < whole.length; at += 1) {
    const bytes = Buffer.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
    const state = readCarelessly(bytes);
    if (!states.some((one) => jsonEqual(one as never, state as never))) wrong.add(JSON.stringify(state));
  }
  expect(wrong.size).toBeGreaterThan(100);
});

/** A reader as one writes it in a hurry: every line that parses is what was saved. */
function readCarelessly(bytes: Buffer): unknown {
  const events: LogEvent[] = [];
  let content: object = {};
  for (const text of bytes.toString('utf8').split('\n')) {
    try {
      const { d, q, ...line } = JSON.parse(text) as { d?: unknown; q?: unknown };
      if (d !== undefined) content = line;
      if (q === undefined) continue;
      events.push({ ...content, ...line } as LogEvent);
      content = {};
    } catch {
      continue;
    }
  }
  try {
    return foldEvents(events);
  } catch {
    return undefined;
  }
}

it('is an error when a line is missing, twice, in another place or of another log', async () => {
  const states = await savedStates();
  await store.checkpoints.save('order-8', inProgress({ runId: 'other' }));
  await store.checkpoints.save('order-8', inProgress({ runId: 'other', stepIndex: 1 }));
  const log = newestLog(folder, 'order-7');
  const lines = fs.readFileSync(log, 'utf8').split('\n').slice(0, -1);
  const foreign = fs.readFileSync(newestLog(folder, 'order-8'), 'utf8').split('\n')[2] ?? '';
  const text = (changed: readonly string[]): Buffer => Buffer.from(`${changed.join('\n')}\n`);
  const without = lines.slice(1, -1).map((_, index) => text(lines.toSpliced(index + 1, 1)));
  expect(await outcomesOf(states, without)).toEqual([DAMAGED.code]);
  const swapped = text([lines[0] ?? '', lines[2] ?? '', lines[1] ?? '', ...lines.slice(3)]);
  expect(await outcomesOf(states, [swapped, text([...lines.slice(0, 2), foreign])])).toEqual([DAMAGED.code]);
  // A line that is there twice is what a writer leaves that was not the first: the same state.
  expect(await outcomesOf(states, [text([...lines, lines.at(-1) ?? ''])])).toEqual([3]);
});

it('goes on behind a write that was cut off', async () => {
  const states = await savedStates();
  const log = newestLog(folder, 'order-7');
  for (const torn of ['{"q":5,"@":0,"t"', '\0\0\0\0', '{"q":5,"@"\0\0\0":1}\n']) {
    fs.appendFileSync(log, torn);
    const handle = openStore(folder);
    expect(await handle.checkpoints.load('order-7')).toEqual(states.at(-1));
    states.push(nextStep(states.at(-1) as Checkpoint, `behind ${torn.length}`));
    await handle.checkpoints.save('order-7', states.at(-1) as Checkpoint);
    expect(await openStore(folder).checkpoints.load('order-7')).toEqual(states.at(-1));
  }
  expect(await openStore(folder).checkpoints.history('order-7')).toHaveLength(7);
});

it('is never a state that was deleted, also when the end of its history is cut off', async () => {
  await savedStates();
  await store.checkpoints.delete('order-7', { keepHistory: true });
  const log = newestLog(folder, 'order-7');
  const whole = fs.readFileSync(log);
  expect(await openStore(folder).checkpoints.load('order-7')).toBeNull();
  for (const cut of [1, 100, 5_000, whole.length - 20]) {
    fs.writeFileSync(log, whole.subarray(0, whole.length - cut));
    await expect(openStore(folder).checkpoints.load('order-7')).rejects.toMatchObject(DAMAGED);
  }
});

it('is not another run whose files were put in its place', async () => {
  await store.checkpoints.save('order-7', inProgress());
  await store.checkpoints.save('order-8', inProgress());
  const [from, to] = ['order-8', 'order-7'].map((id) => path.join(folder, 'runs', id)) as [string, string];
  fs.rmSync(to, { recursive: true });
  fs.renameSync(from, to);
  await expect(openStore(folder).checkpoints.load('order-7')).rejects.toMatchObject(DAMAGED);
  expect(
    (await openStore(folder).checkpoints.list()).map(({ sessionId, checkpoint }) => [sessionId, checkpoint]),
  ).toEqual([['order-7', null]]);
});

it('is one entry of the lists, and the others are listed as ever', async () => {
  await savedStates('damaged');
  await store.checkpoints.save('a', finished());
  await store.checkpoints.save('Empty', inProgress());
  fs.truncateSync(newestLog(folder, 'Empty'));
  const log = newestLog(folder, 'damaged');
  fs.writeFileSync(log, fs.readFileSync(log, 'utf8').replace('"s":3', '"s":4'));
  const entries = [await store.checkpoints.list(), await store.checkpoints.listHeaders()] as const;
  for (const list of entries) {
    expect(list.map(({ sessionId, status, error }) => [sessionId, status, error?.code])).toEqual([
      ['a', 'finished', undefined],
      ['Empty', 'in-progress', DAMAGED.code],
      ['damaged', 'in-progress', DAMAGED.code],
    ]);
  }
  expect(entries[0].map(({ checkpoint }) => checkpoint)).toEqual([finished(), null, null]);
});

it('says so of the history too', async () => {
  await savedStates();
  const log = newestLog(folder, 'order-7');
  fs.writeFileSync(log, fs.readFileSync(log, 'utf8').replace('"s":1', '"s":4'));
  await expect(store.checkpoints.history('order-7')).rejects.toMatchObject({
    ...DAMAGED,
    details: { id: 'order-7', record: 'history' },
  });
});

it('can be deleted, and is healed by a save', async () => {
  for (const damage of ['', '{"format":1,"kind":"run"', 'x'.repeat(9_000)]) {
    await savedStates();
    fs.writeFileSync(newestLog(folder, 'order-7'), damage);
    await openStore(folder).checkpoints.delete('order-7');
    expect(await store.checkpoints.load('order-7')).toBeNull();
    await savedStates();
    fs.writeFileSync(newestLog(folder, 'order-7'), damage);
    const other = openStore(folder);
    await other.checkpoints.save('order-7', inProgress({ runId: 'healed' }));
    expect(await openStore(folder).checkpoints.load('order-7')).toEqual(inProgress({ runId: 'healed' }));
    expect(await other.checkpoints.history('order-7')).toHaveLength(1);
  }
});

it('stays an error for whoever takes the run over, who may then replace it', async () => {
  const lease = await store.checkpoints.acquireLease('order-7', 'a', 1_000);
  await store.checkpoints.saveIfLeased('order-7', inProgress(), 'a');
  const log = newestLog(folder, 'order-7');
  fs.writeFileSync(log, fs.readFileSync(log, 'utf8').replace('"s":0', '"s":1'));
  await store.checkpoints.releaseLease('order-7', 'a');
  const other = openStore(folder);
  const next = await other.checkpoints.acquireLease('order-7', 'b', 1_000);
  await expect(other.checkpoints.load('order-7')).rejects.toMatchObject(DAMAGED);
  // Who had it before knows the log as it was, and must not go on in it.
  expect(await store.checkpoints.saveIfLeased('order-7', nextStep(inProgress(), 'of a'), 'a')).toBe(false);
  expect(next && lease && next.fence > lease.fence).toBe(true);
  const healed = inProgress({ messages: deepFreeze([hello, says('of b')]) });
  expect(await other.checkpoints.saveIfLeased('order-7', healed, 'b')).toBe(true);
  expect(await openStore(folder).checkpoints.load('order-7')).toEqual(healed);
});

it('names the record of a session and of an approval', async () => {
  await store.sessions.saveIfRevision(sessionRecord('chat'), 0);
  const log = newestLog(folder, 'chat', 'sessions');
  fs.writeFileSync(log, fs.readFileSync(log, 'utf8').replace('Hello', 'Hellp'));
  await expect(openStore(folder).sessions.load('chat')).rejects.toMatchObject({
    ...DAMAGED,
    details: { id: 'chat', record: 'session' },
  });
  expect(await store.sessions.list?.()).toEqual(['chat']);
  for (const id of ['a-1', 'a-2']) await store.approvals.save(approvalRecord(id));
  const file = path.join(folder, 'approvals', 'a-1.json');
  for (const text of ['', fs.readFileSync(file, 'utf8').replace('charge', 'refund'), '{"id":"a-1"}']) {
    fs.writeFileSync(file, text);
    await expect(store.approvals.load('a-1')).rejects.toMatchObject({
      ...DAMAGED,
      details: { id: 'a-1', record: 'approval' },
    });
    expect((await store.approvals.list()).map(({ id }) => id)).toEqual(['a-2']);
  }
  expect(await store.approvals.delete('a-1')).toBe(true);
  expect(await store.approvals.load('a-1')).toBeNull();
});

it('is left as it is when a newer release wrote it', async () => {
  await store.checkpoints.save('order-7', inProgress());
  const format = path.join(folder, 'format.json');
  fs.writeFileSync(format, '{"format":2}\n');
  const before = fs.readFileSync(newestLog(folder, 'order-7'));
  const other = openStore(folder);
  const newer = { code: 'LOUSHO_STORE_VERSION_UNSUPPORTED', details: { found: 2, supported: 1 } };
  for (const call of [
    () => other.checkpoints.load('order-7'),
    () => other.checkpoints.save('order-7', finished()),
    () => other.checkpoints.delete('order-7'),
    () => other.checkpoints.list(),
    () => other.checkpoints.acquireLease('order-7', 'me', 1_000),
    () => other.sessions.load('chat'),
    () => other.approvals.delete('a-1'),
    () => other.prune({ olderThanMs: 0 }),
  ])
    await expect(call()).rejects.toMatchObject(newer);
  expect(fs.readFileSync(newestLog(folder, 'order-7'))).toEqual(before);
  fs.writeFileSync(format, 'what?');
  await expect(openStore(folder).checkpoints.load('order-7')).rejects.toMatchObject({
    code: 'LOUSHO_STORE_READ_FAILED',
  });
});

it('comes back in the shape of today when an older release saved it', async () => {
  const { version: _version, status: _status, ...old } = inProgress();
  await store.checkpoints.save('order-7', old as unknown as Checkpoint);
  expect(await store.checkpoints.load('order-7')).toEqual(inProgress({ agentName: 'agent' }));
  const [header] = await store.checkpoints.listHeaders();
  expect(header).toMatchObject({ status: 'in-progress', header: { version: 1, messageCount: 1 } });
});

it('is refused, and left alone, when its checkpoint is of a newer version', async () => {
  await store.checkpoints.save('order-7', { ...inProgress(), version: 99 });
  const newer = { code: 'LOUSHO_STORE_VERSION_UNSUPPORTED', details: { found: 99, supported: 1 } };
  await expect(openStore(folder).checkpoints.load('order-7')).rejects.toMatchObject(newer);
  await expect(openStore(folder).checkpoints.save('order-7', inProgress())).rejects.toMatchObject(newer);
  await expect(openStore(folder).checkpoints.history('order-7')).rejects.toMatchObject(newer);
  await openStore(folder).checkpoints.acquireLease('order-7', 'me', 1_000);
  await expect(openStore(folder).checkpoints.load('order-7')).rejects.toMatchObject(newer);
});
