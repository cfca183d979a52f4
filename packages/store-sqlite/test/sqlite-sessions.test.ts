/** Conversations: compare-and-swap, the cost of a turn, and turns that stand on the transcript instead of copying it. */
import { appendFrozen, deepFreeze, isDeepFrozen, type Message, type SessionRecord } from '@lousho/contract';
import { expect, it } from 'vitest';
import type { SqliteStore } from '../src/index.ts';
import { copyOf, finished, hello, inProgress, nextStep, says, sessionRecord } from './support/fixtures.ts';
import { openStore, rawDatabase, tempFile } from './support/temp-store.ts';

/** Bytes of all events in the file. */
function storedBytes(file: string): number {
  return (rawDatabase(file).prepare('SELECT sum(length(data)) FROM events').pluck().get() ?? 0) as number;
}

function textsOf(file: string, id: string): string[] {
  return rawDatabase(file)
    .prepare<[string], string>('SELECT data FROM events JOIN runs ON k >> 24 = key WHERE id = ? ORDER BY k')
    .pluck()
    .all(id);
}

/** The transcript with one more turn, as a session commits it. */
function withTurn(record: SessionRecord, text: string): SessionRecord {
  const messages = appendFrozen(record.messages, [says(text)]);
  return deepFreeze({ ...record, messages, turn: record.turn + 1 });
}

async function givenChat(store: SqliteStore, messages: readonly Message[]): Promise<SessionRecord> {
  await store.sessions.saveIfRevision(sessionRecord('chat', { messages: deepFreeze([...messages]) }), 0);
  const record = await store.sessions.load('chat');
  if (record == null) throw new Error('it was saved');
  return record;
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
  const file = tempFile();
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
  expect(await store.sessions.list()).toEqual(['B', 'a', 'b']);
  expect((await store.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['a']);
  await store.sessions.delete('a');
  await store.sessions.delete('a');
  expect(await store.sessions.list()).toEqual(['B', 'b']);
  expect(await store.checkpoints.load('a')).toEqual(inProgress());
  expect(await store.sessions.saveIfRevision(sessionRecord('a'), 0)).toBe(true);
});

it('refuses malformed ids', async () => {
  const { sessions } = openStore();
  await expect(sessions.load('../x')).rejects.toMatchObject({ code: 'LOUSHO_SESSION_ID_INVALID' });
});

it('writes what a turn adds, over a thousand turns', { timeout: 60_000 }, async () => {
  const file = tempFile();
  const store = openStore(file);
  let record = await givenChat(store, [hello]);
  for (let turn = 0; turn < 1_000; turn += 1) {
    const id = `chat.turn-${turn}`;
    const asked = appendFrozen(record.messages, [{ role: 'user' as const, content: `question ${turn}` }]);
    const run = inProgress({ messages: asked, runInput: { start: record.messages.length, count: 1 } });
    await store.checkpoints.save(id, run);
    const answered = appendFrozen(asked, [says(`answer ${turn}`)]);
    const end = finished({ messages: answered });
    await store.checkpoints.save(id, end);
    const next = deepFreeze({ ...record, messages: answered, turn: turn + 1 });
    const commits = [
      store.sessions.saveIfRevision(next, record.revision),
      store.checkpoints.delete(id),
    ] as const;
    expect(await commits[0]).toBe(true);
    await commits[1];
    record = deepFreeze({ ...next, revision: record.revision + 1 });
  }
  const sizes = textsOf(file, 'session:chat').map((text) => text.length);
  expect(sizes).toHaveLength(1_001);
  expect(Math.max(...sizes)).toBeLessThan(400);
  expect((await openStore(file).sessions.load('chat'))?.messages).toEqual(record.messages);
});

it('lets a turn stand on the transcript that it goes on from', async () => {
  const file = tempFile();
  const store = openStore(file);
  const record = await givenChat(store, long);
  const before = storedBytes(file);
  let turn = inProgress({ messages: appendFrozen(record.messages, [hello]) });
  await store.checkpoints.save('chat.turn-1', turn);
  turn = nextStep(turn, 'answer');
  await store.checkpoints.save('chat.turn-1', turn);
  expect(storedBytes(file) - before).toBeLessThan(800);
  for (const handle of [store, openStore(file)]) {
    expect(await handle.checkpoints.load('chat.turn-1')).toEqual(turn);
    expect((await handle.checkpoints.history('chat.turn-1')).map(({ step }) => step)).toEqual([1, 0]);
    expect((await handle.checkpoints.list()).map(({ checkpoint }) => checkpoint)).toEqual([turn]);
  }
});

it('lets a turn stand on what this process saved itself, without loading it', async () => {
  const file = tempFile();
  const store = openStore(file);
  const record = sessionRecord('chat', { messages: deepFreeze([...long]) });
  await store.sessions.saveIfRevision(record, 0);
  await store.checkpoints.save(
    'chat.turn-1',
    inProgress({ messages: appendFrozen(record.messages, [hello]) }),
  );
  expect(textsOf(file, 'chat.turn-1')[0]?.length).toBeLessThan(500);
});

it('copies the transcript for a turn when it is not surely the same', async () => {
  const file = tempFile();
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
  const file = tempFile();
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
  (store: SqliteStore, record: SessionRecord) => Promise<unknown>,
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
  const file = tempFile();
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
  const file = tempFile();
  const store = openStore(file, { historyLimit: 1 });
  const record = await givenChat(store, long);
  await store.checkpoints.save(
    'chat.turn-1',
    inProgress({ messages: appendFrozen(record.messages, [hello]) }),
  );
  const standing = (): unknown[] =>
    rawDatabase(file).prepare('SELECT id FROM runs WHERE stands_on IS NOT NULL').pluck().all();
  expect(standing()).toEqual(['chat.turn-1']);
  await store.checkpoints.save('chat.turn-1', inProgress({ messages: deepFreeze([says('summary')]) }));
  expect(standing()).toEqual([]);
});

it('keeps a turn in the list as damaged when the conversation that it stands on is', async () => {
  const file = tempFile();
  const store = openStore(file);
  const record = await givenChat(store, long);
  await store.checkpoints.save(
    'chat.turn-1',
    inProgress({ messages: appendFrozen(record.messages, [hello]) }),
  );
  rawDatabase(file).exec("UPDATE events SET data = replace(data, 'xxxx', 'xxxy') WHERE k < 1 << 25");
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
  const file = tempFile();
  const store = openStore(file);
  let run = inProgress({ messages: deepFreeze([...long]) });
  await store.checkpoints.save('order-7', run);
  run = nextStep(run, 'on');
  await store.checkpoints.save('order-7', run);
  const entry = (await store.checkpoints.history('order-7'))[1];
  if (entry === undefined) throw new Error('there are two entries');
  const fork = deepFreeze({ ...inProgress(), messages: entry.checkpoint.messages, runId: 'fork' });
  await store.checkpoints.save('order-7.fork-1', fork);
  expect(textsOf(file, 'order-7.fork-1')[0]?.length).toBeLessThan(400);
  await store.checkpoints.delete('order-7');
  expect(await openStore(file).checkpoints.load('order-7.fork-1')).toEqual(fork);
});

it('copies for a fork with a change in its transcript only what stands behind the change', async () => {
  const file = tempFile();
  const store = openStore(file);
  let run = inProgress({ messages: deepFreeze([...long]) });
  for (const words of ['one', 'two', 'three']) {
    run = nextStep(run, words);
    await store.checkpoints.save('order-7', run);
  }
  const [newest] = await store.checkpoints.history('order-7');
  if (newest === undefined) throw new Error('there are three entries');
  const kept = newest.checkpoint.messages.slice(0, -1);
  const messages = deepFreeze([...kept, { role: 'user', content: 'another end' } as const]);
  const forkedFrom = { sessionId: 'order-7', step: run.stepIndex };
  const fork = deepFreeze({ ...inProgress(), messages, runId: 'fork', forkedFrom });
  await store.checkpoints.save('order-7.fork-1', fork);
  expect(textsOf(file, 'order-7.fork-1')[0]?.length).toBeLessThan(500);
  expect(await openStore(file).checkpoints.load('order-7.fork-1')).toEqual(fork);
  // What it stands on changes, and goes.
  await store.checkpoints.save('order-7', inProgress({ messages: deepFreeze([hello]) }));
  expect(await openStore(file).checkpoints.load('order-7.fork-1')).toEqual(fork);
  await store.checkpoints.delete('order-7');
  expect(await openStore(file).checkpoints.load('order-7.fork-1')).toEqual(fork);
});

it('copies for a fork from before a rewrite', async () => {
  const file = tempFile();
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
  const file = tempFile();
  const store = openStore(file);
  let record = await givenChat(store, [hello]);
  for (let turn = 0; turn < 200; turn += 1) {
    record = deepFreeze({ ...withTurn(record, 'on'), businessState: { turn, filler: 'x'.repeat(2_000) } });
    await store.sessions.saveIfRevision(record, turn + 1);
  }
  expect(storedBytes(file)).toBeLessThan(150_000);
  expect((await openStore(file).sessions.load('chat'))?.businessState).toMatchObject({ turn: 199 });
});
