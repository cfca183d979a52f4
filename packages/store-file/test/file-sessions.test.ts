/** Conversations: compare-and-swap, the cost of a turn, and turns that stand on the transcript instead of copying it. */
import fs from 'node:fs';
import path from 'node:path';
import {
  appendFrozen,
  deepFreeze,
  isDeepFrozen,
  type FullAgentStore,
  type Message,
  type SessionRecord,
} from '@lousho/contract';
import { expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../src/file-system.ts';
import { copyOf, finished, hello, inProgress, nextStep, says, sessionRecord } from './support/fixtures.ts';
import { bytesIn, newestLog, savesIn } from './support/raw-files.ts';
import { filesIn, openOn, openStore, tempFolder } from './support/temp-store.ts';

/** The transcript with one more turn, as a session commits it. */
function withTurn(record: SessionRecord, text: string): SessionRecord {
  const messages = appendFrozen(record.messages, [says(text)]);
  return deepFreeze({ ...record, messages, turn: record.turn + 1 });
}

async function givenChat(
  store: Pick<FullAgentStore, 'sessions'>,
  messages: readonly Message[],
): Promise<SessionRecord> {
  await store.sessions.saveIfRevision(sessionRecord('chat', { messages: deepFreeze([...messages]) }), 0);
  const record = await store.sessions.load('chat');
  if (record == null) throw new Error('it was saved');
  return record;
}

/** What there is of a run, by kind. */
function filesOf(folder: string, id: string): string[] {
  return fs
    .readdirSync(path.join(folder, 'runs', id))
    .map((name) => path.extname(name).slice(1))
    .sort();
}

const long = Array.from({ length: 20 }, (_, n) => says(`${n} ${'x'.repeat(500)}`));

it('gives back what was saved, frozen, with the fields that this release does not know', async () => {
  const { sessions } = openStore();
  const record = {
    ...sessionRecord('chat', { inputIds: ['i-1'], businessState: { a: null }, turn: 3 }),
    mood: 'blue',
  };
  expect(await sessions.saveIfRevision(record, 0)).toBe(true);
  const loaded = await sessions.load('chat');
  expect(loaded).toEqual({ ...record, revision: 1 });
  expect(isDeepFrozen(loaded)).toBe(true);
  expect(await sessions.load('other')).toBeNull();
});

it('lets one of two commits from the same revision win', async () => {
  const file = tempFolder();
  const [one, two] = [openStore(file).sessions, openStore(file).sessions];
  const first = [one, two].map((sessions) => sessions.saveIfRevision(sessionRecord('chat'), 0));
  expect((await Promise.all(first)).filter(Boolean)).toHaveLength(1);
  const second = [one, two, one].map((sessions) =>
    sessions.saveIfRevision(sessionRecord('chat', { turn: 1 }), 1),
  );
  expect((await Promise.all(second)).filter(Boolean)).toHaveLength(1);
  expect(await one.saveIfRevision(sessionRecord('chat'), 0)).toBe(false);
  expect(await one.saveIfRevision(sessionRecord('chat'), 3)).toBe(false);
  expect(await two.load('chat')).toMatchObject({ revision: 2, turn: 1 });
});

it('lists and deletes conversations, apart from runs of the same name', async () => {
  const store = openStore();
  for (const id of ['b', 'a', 'B']) await store.sessions.saveIfRevision(sessionRecord(id), 0);
  await store.checkpoints.save('a', inProgress());
  expect(await store.sessions.list?.()).toEqual(['B', 'a', 'b']);
  expect((await store.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['a']);
  await store.sessions.delete('a');
  await store.sessions.delete('a');
  expect(await store.sessions.list?.()).toEqual(['B', 'b']);
  expect(await store.checkpoints.load('a')).toEqual(inProgress());
  expect(await store.sessions.saveIfRevision(sessionRecord('a'), 0)).toBe(true);
});

it('refuses malformed ids', async () => {
  const { sessions } = openStore();
  await expect(sessions.load('../x')).rejects.toMatchObject({ code: 'LOUSHO_SESSION_ID_INVALID' });
});

it('writes what a turn adds, however long the conversation is', { timeout: 60_000 }, async () => {
  let written = 0;
  const write: FileSystem['write'] = async (fd, bytes, position) => {
    written += bytes.byteLength;
    return nodeFileSystem.write(fd, bytes, position);
  };
  const store = openOn({ write }, { durability: 'process' });
  let record = await givenChat(store, long);
  const perTurn: number[] = [];
  for (let turn = 0; turn < 200; turn += 1) {
    written = 0;
    const id = `chat.turn-${turn}`;
    const lease = await store.checkpoints.acquireLease(id, 'me', 30_000);
    const asked = appendFrozen(record.messages, [{ role: 'user' as const, content: `question ${turn}` }]);
    const run = inProgress({ messages: asked, runInput: { start: record.messages.length, count: 1 } });
    const answered = appendFrozen(asked, [says(`answer ${turn} ${'x'.repeat(500)}`)]);
    for (const state of [run, finished({ messages: answered })])
      expect(lease && (await store.checkpoints.saveIfLeased(id, state, 'me', lease.fence))).toBe(true);
    const next = deepFreeze({ ...record, messages: answered, turn: turn + 1 });
    expect(await store.sessions.saveIfRevision(next, record.revision)).toBe(true);
    await store.checkpoints.releaseLease(id, 'me');
    await store.checkpoints.delete(id);
    record = deepFreeze({ ...next, revision: record.revision + 1 });
    perTurn.push(written);
  }
  expect(Math.max(...perTurn)).toBeLessThan(6_000);
  expect((await openStore(store.folder).sessions.load('chat'))?.messages).toEqual(record.messages);
  expect(filesIn(store.folder)).toEqual([
    expect.stringMatching(/^fences/),
    'format.json',
    'sessions/chat/0000000001.jsonl',
  ]);
});

it('lets a turn stand on the transcript that it goes on from', async () => {
  const file = tempFolder();
  const store = openStore(file);
  const record = await givenChat(store, long);
  const before = bytesIn(file);
  let turn = inProgress({ messages: appendFrozen(record.messages, [hello]) });
  await store.checkpoints.save('chat.turn-1', turn);
  turn = nextStep(turn, 'answer');
  await store.checkpoints.save('chat.turn-1', turn);
  expect(bytesIn(file) - before).toBeLessThan(1_200);
  for (const handle of [store, openStore(file)]) {
    expect(await handle.checkpoints.load('chat.turn-1')).toEqual(turn);
    expect((await handle.checkpoints.history('chat.turn-1')).map(({ step }) => step)).toEqual([1, 0]);
    expect((await handle.checkpoints.list()).map(({ checkpoint }) => checkpoint)).toEqual([turn]);
  }
});

it('lets a turn stand on what this process saved itself, without loading it', async () => {
  const file = tempFolder();
  const store = openStore(file);
  const record = sessionRecord('chat', { messages: deepFreeze([...long]) });
  await store.sessions.saveIfRevision(record, 0);
  await store.checkpoints.save(
    'chat.turn-1',
    inProgress({ messages: appendFrozen(record.messages, [hello]) }),
  );
  expect(savesIn(newestLog(file, 'chat.turn-1'))[0]?.length).toBeLessThan(500);
});

it('copies the transcript for a turn when it is not surely the same', async () => {
  const file = tempFolder();
  const store = openStore(file);
  const record = await givenChat(store, long);
  const other = openStore(file);
  // Another process commits: what this one knows of the conversation is old.
  await other.sessions.saveIfRevision(sessionRecord('chat', { messages: deepFreeze([hello]) }), 1);
  const turn = inProgress({ messages: appendFrozen(record.messages, [hello]) });
  await store.checkpoints.save('chat.turn-1', turn);
  expect(await other.checkpoints.load('chat.turn-1')).toEqual(turn);
  const foreign = inProgress({ messages: copyOf(record.messages) });
  await store.checkpoints.save('chat.turn-2', foreign);
  expect(await other.checkpoints.load('chat.turn-2')).toEqual(foreign);
});

it('copies the transcript for a turn when another process has changed its end', async () => {
  const file = tempFolder();
  const store = openStore(file);
  const record = await givenChat(store, long);
  const other = openStore(file);
  const theirs = deepFreeze([...long.slice(0, 18), says('of theirs'), says('too')]);
  await other.sessions.saveIfRevision(sessionRecord('chat', { messages: theirs }), 1);
  const turn = inProgress({ messages: appendFrozen(record.messages, [hello]) });
  await store.checkpoints.save('chat.turn-1', turn);
  expect(await other.checkpoints.load('chat.turn-1')).toEqual(turn);
});

/** What may happen to a conversation while a turn stands on it. */
const changes: readonly (readonly [
  string,
  (store: FullAgentStore, record: SessionRecord) => Promise<unknown>,
])[] = [
  ['is deleted', (store) => store.sessions.delete('chat')],
  [
    'is cut',
    (store, record) => {
      const messages = deepFreeze(record.messages.slice(0, 3));
      return store.sessions.saveIfRevision({ ...record, messages }, record.revision);
    },
  ],
  [
    'is cut behind what the turn stands on',
    async (store, record) => {
      const longer = withTurn(record, 'more');
      await store.sessions.saveIfRevision(longer, 1);
      await store.sessions.saveIfRevision({ ...record, messages: copyOf(record.messages) }, 2);
    },
  ],
  [
    'is rewritten',
    (store, record) =>
      store.sessions.saveIfRevision({ ...record, messages: deepFreeze([says('summary')]) }, 1),
  ],
  [
    'is deleted and begun anew',
    async (store) => {
      await store.sessions.delete('chat');
      await store.sessions.saveIfRevision(sessionRecord('chat', { messages: deepFreeze([says('new')]) }), 0);
    },
  ],
  ['goes on', (store, record) => store.sessions.saveIfRevision(withTurn(record, 'more'), 1)],
  ['is pruned', (store) => store.prune({ olderThanMs: 0 })],
];

it.each(changes)('keeps a turn whole when its conversation %s', async (_name, change) => {
  const file = tempFolder();
  const store = openStore(file);
  const record = await givenChat(store, long);
  const turn = inProgress({ messages: appendFrozen(record.messages, [hello]) });
  await store.checkpoints.save('chat.turn-1', turn);
  await change(openStore(file), record);
  expect(await openStore(file).checkpoints.load('chat.turn-1')).toEqual(turn);
  const next = nextStep(turn, 'answer');
  await store.checkpoints.save('chat.turn-1', next);
  expect(await store.checkpoints.load('chat.turn-1')).toEqual(next);
  expect(await openStore(file).checkpoints.history('chat.turn-1')).toHaveLength(2);
});

it('stands on nothing any more once its history begins behind a rewrite', async () => {
  const file = tempFolder();
  const [one, two] = [openStore(file, { historyLimit: 1 }), openStore(file, { historyLimit: 1 })];
  const record = await givenChat(one, long);
  const id = 'chat.turn-1';
  await one.checkpoints.save(id, inProgress({ messages: appendFrozen(record.messages, [hello]) }));
  expect(filesOf(file, id)).toContain('base');
  await one.checkpoints.save(id, inProgress({ messages: deepFreeze([says('summary')]) }));
  // Whoever executes it next goes on in a new log.
  await two.checkpoints.acquireLease(id, 'me', 1_000);
  await two.checkpoints.saveIfLeased(id, inProgress({ messages: deepFreeze([hello]) }), 'me');
  expect(filesOf(file, id)).toEqual(['jsonl', 'lease']);
});

it('stands on the transcript still when another process goes on with the turn', async () => {
  const file = tempFolder();
  const [one, two] = [openStore(file), openStore(file)];
  const record = await givenChat(one, long);
  const turn = inProgress({ messages: appendFrozen(record.messages, [hello]) });
  await one.checkpoints.save('chat.turn-1', turn);
  const before = bytesIn(file);
  await two.checkpoints.acquireLease('chat.turn-1', 'me', 1_000);
  const next = nextStep(turn, 'answer');
  expect(await two.checkpoints.saveIfLeased('chat.turn-1', next, 'me')).toBe(true);
  await one.sessions.delete('chat');
  expect(bytesIn(file) - before).toBeLessThan(1_500);
  expect(filesOf(file, 'chat.turn-1')).toEqual(['base', 'jsonl', 'lease']);
  expect(await openStore(file).checkpoints.load('chat.turn-1')).toEqual(next);
});

it('keeps a turn in the list as damaged when the conversation that it stands on is', async () => {
  const file = tempFolder();
  const store = openStore(file);
  const record = await givenChat(store, long);
  await store.checkpoints.save(
    'chat.turn-1',
    inProgress({ messages: appendFrozen(record.messages, [hello]) }),
  );
  const log = newestLog(file, 'chat', 'sessions');
  fs.writeFileSync(log, fs.readFileSync(log, 'utf8').replace('xxxx', 'xxxy'));
  const other = openStore(file);
  await expect(other.checkpoints.load('chat.turn-1')).rejects.toMatchObject({
    code: 'LOUSHO_CHECKPOINT_CORRUPT',
  });
  // Deleting the damaged conversation is possible all the same.
  await other.sessions.delete('chat');
  await expect(other.checkpoints.load('chat.turn-1')).rejects.toMatchObject({
    code: 'LOUSHO_CHECKPOINT_CORRUPT',
  });
  await other.checkpoints.delete('chat.turn-1');
  expect(await other.checkpoints.list()).toEqual([]);
});

it('lets a fork stand on the entry of the history that it begins with', async () => {
  const file = tempFolder();
  const store = openStore(file);
  let run = inProgress({ messages: deepFreeze([...long]) });
  await store.checkpoints.save('order-7', run);
  run = nextStep(run, 'on');
  await store.checkpoints.save('order-7', run);
  const entry = (await store.checkpoints.history('order-7'))[1];
  if (entry === undefined) throw new Error('there are two entries');
  const fork = deepFreeze({ ...inProgress(), messages: entry.checkpoint.messages, runId: 'fork' });
  await store.checkpoints.save('order-7.fork-1', fork);
  expect(savesIn(newestLog(file, 'order-7.fork-1'))[0]?.length).toBeLessThan(400);
  await store.checkpoints.delete('order-7');
  expect(await openStore(file).checkpoints.load('order-7.fork-1')).toEqual(fork);
});

it('copies for a fork from before a rewrite', async () => {
  const file = tempFolder();
  const store = openStore(file);
  const run = inProgress({ messages: deepFreeze([...long]) });
  await store.checkpoints.save('order-7', run);
  const [entry] = await store.checkpoints.history('order-7');
  if (entry === undefined) throw new Error('there is one entry');
  await store.checkpoints.save('order-7', inProgress({ messages: deepFreeze([hello]) }));
  const fork = deepFreeze({ ...inProgress(), messages: entry.checkpoint.messages, runId: 'fork' });
  await store.checkpoints.save('order-7.fork-1', fork);
  expect(await openStore(file).checkpoints.load('order-7.fork-1')).toEqual(fork);
});

it('does not let a state that changes with each turn pile up', async () => {
  const file = tempFolder();
  const store = openStore(file);
  let record = await givenChat(store, [hello]);
  for (let turn = 0; turn < 200; turn += 1) {
    record = deepFreeze({ ...withTurn(record, 'on'), businessState: { turn, filler: 'x'.repeat(2_000) } });
    await store.sessions.saveIfRevision(record, turn + 1);
  }
  expect(bytesIn(file)).toBeLessThan(150_000);
  expect((await openStore(file).sessions.load('chat'))?.businessState).toMatchObject({ turn: 199 });
});

it('loads and commits a long conversation without reading it again, until somebody else has written to it', async () => {
  const place = tempFolder();
  let bytesRead = 0;
  const counting: Partial<FileSystem> = {
    async read(fd, into, position) {
      const count = await nodeFileSystem.read(fd, into, position);
      bytesRead += count;
      return count;
    },
  };
  const store = openOn(counting, { folder: place });
  let record = await givenChat(store, long);
  for (const text of ['one', 'two', 'three']) {
    bytesRead = 0;
    await store.sessions.saveIfRevision(withTurn(record, text), record.revision);
    record = (await store.sessions.load('chat')) as SessionRecord;
    expect(bytesRead).toBe(0);
    const turn = inProgress({ messages: appendFrozen(record.messages, [hello]) });
    await store.checkpoints.save(`chat.turn-${record.turn}`, turn);
    expect(fs.statSync(newestLog(place, `chat.turn-${record.turn}`)).size).toBeLessThan(2_000);
  }
  const other = openStore(place).sessions;
  await other.saveIfRevision(withTurn(record, 'theirs'), record.revision);
  expect(await store.sessions.load('chat')).toMatchObject({ revision: record.revision + 1 });
});

it('notices damage of a conversation that it knows, also when the file keeps its length', async () => {
  const place = tempFolder();
  const { sessions } = openStore(place);
  await sessions.saveIfRevision(sessionRecord('chat', { messages: [hello] }), 0);
  const file = newestLog(place, 'chat', 'sessions');
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('"user"', '"usex"'));
  // The clock of a file system may stand still for some milliseconds.
  const later = new Date(Date.now() + 1_000);
  fs.utimesSync(file, later, later);
  await expect(sessions.load('chat')).rejects.toMatchObject({ code: 'LOUSHO_CHECKPOINT_CORRUPT' });
});

it('leaves nothing on the disk of what a conversation was emptied of', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const record = await givenChat(store, [says('a secret')]);
  expect(await store.sessions.saveIfRevision({ ...record, messages: [] }, 1)).toBe(true);
  const texts = filesIn(folder).map((file) => fs.readFileSync(path.join(folder, file), 'utf8'));
  expect(texts.join()).not.toContain('a secret');
  expect(await openStore(folder).sessions.load('chat')).toMatchObject({ revision: 2, messages: [] });
});
