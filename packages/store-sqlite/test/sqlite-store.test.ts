/** What a caller sees of the store as a whole: options, claims, identity of what is saved and loaded, closing. */
import {
  ConfigurationError,
  deepFreeze,
  isDeepFrozen,
  nextEvent,
  SDKError,
  type Checkpoint,
  type Message,
} from '@lousho/contract';
import { expect, it } from 'vitest';
import { SqliteStore } from '../src/index.ts';
import { eventText } from '../src/packed-event.ts';
import {
  approvalRecord,
  awaitingApproval,
  finished,
  hello,
  inProgress,
  nextStep,
  sessionRecord,
} from './support/fixtures.ts';
import { openStore, rawDatabase, tempFile } from './support/temp-store.ts';

it('loads what was saved, through every handle on the file and after a reopen', async () => {
  const file = tempFile();
  const [one, two] = [openStore(file), openStore(file)];
  const checkpoint = awaitingApproval('order-7.apr-abcd1234-1-0');
  await one.checkpoints.save('order-7', checkpoint);
  expect(await one.checkpoints.load('order-7')).toEqual(checkpoint);
  expect(await two.checkpoints.load('order-7')).toEqual(checkpoint);
  await Promise.all([one.close(), two.close()]);
  expect(await openStore(file).checkpoints.load('order-7')).toEqual(checkpoint);
});

it('gives null for an id that it does not hold, and forgets what is deleted', async () => {
  const { checkpoints } = openStore();
  expect(await checkpoints.load('order-7')).toBeNull();
  await checkpoints.save('order-7', inProgress());
  await checkpoints.delete('order-7');
  expect(await checkpoints.load('order-7')).toBeNull();
  expect(await checkpoints.history('order-7')).toEqual([]);
  await checkpoints.delete('order-7');
});

it('keeps ids apart that differ in case alone', async () => {
  const { checkpoints } = openStore();
  await checkpoints.save('Alice', inProgress({ runId: 'upper' }));
  await checkpoints.save('alice', inProgress({ runId: 'lower' }));
  await checkpoints.delete('Alice');
  expect(await checkpoints.load('Alice')).toBeNull();
  expect(await checkpoints.load('alice')).toMatchObject({ runId: 'lower' });
});

it('takes ids of 300 characters and refuses malformed ones', async () => {
  const { checkpoints } = openStore();
  const long = 'x'.repeat(300);
  await checkpoints.save(long, inProgress());
  expect(await checkpoints.acquireLease(long, 'me', 1_000)).toEqual({ fence: 1 });
  expect(await checkpoints.history(long)).toHaveLength(1);
  for (const id of ['../evil', 'a/b', '..', '', 'x'.repeat(301), 'session:a'])
    await expect(checkpoints.save(id, inProgress())).rejects.toMatchObject({
      code: 'LOUSHO_SESSION_ID_INVALID',
    });
});

it('gives back frozen values, with the fields that this release does not know', async () => {
  const { checkpoints } = openStore();
  const newer = { ...inProgress(), mood: { colour: 'blue' }, ['__proto__x']: 1 } as Checkpoint;
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

it('stores texts that are not well-formed Unicode', async () => {
  const { checkpoints } = openStore();
  const checkpoint = inProgress({ businessState: { text: 'a\ud800b', zero: '\u0000', line: '\u2028' } });
  await checkpoints.save('order-7', checkpoint);
  expect(await checkpoints.load('order-7')).toEqual(checkpoint);
});

it('says of a save that no record can hold how much too large it is', () => {
  const event = nextEvent(undefined, inProgress({ businessState: 'x'.repeat(100) }));
  expect(() => eventText('order-7', event, 200)).toThrow(
    expect.objectContaining({
      code: 'LOUSHO_CHECKPOINT_TOO_LARGE',
      details: { id: 'order-7', bytes: eventText('order-7', event).length, maxBytes: 200 },
    }),
  );
});

it('says what it guarantees', () => {
  const claims = { leases: 'atomic', history: true, list: true, consistency: 'strong' };
  expect(openStore(tempFile(), { durability: 'power' }).checkpoints.claims).toEqual({
    ...claims,
    durable: 'power',
  });
  expect(openStore().checkpoints.claims).toEqual({ ...claims, durable: 'process' });
  expect(openStore(':memory:').checkpoints.claims).toEqual({ ...claims, durable: 'memory' });
  expect(openStore().contractVersion).toBe(1);
});

it.each([
  { historyLimit: -1 },
  { historyLimit: 1.5 },
  { historyMaxBytes: -1 },
  { retentionMs: Number.NaN },
  { durability: 'maybe' },
  { journalMode: 'off' },
  { durabilty: 'process' },
])('refuses the options %j', (options) => {
  const file = tempFile();
  expect(() => new SqliteStore(file, options as never)).toThrow(ConfigurationError);
  expect(() => new SqliteStore(file, options as never)).toThrow(Object.keys(options)[0]);
});

it('keeps everything of `:memory:` to itself', async () => {
  const [one, two] = [openStore(':memory:'), openStore(':memory:')];
  await one.checkpoints.save('order-7', finished());
  expect(await one.checkpoints.load('order-7')).toEqual(finished());
  expect(await two.checkpoints.load('order-7')).toBeNull();
});

it.each([true, false])(
  'notices that another handle deleted the run (keepHistory: %s)',
  async (keepHistory) => {
    const file = tempFile();
    const [one, two] = [openStore(file).checkpoints, openStore(file).checkpoints];
    await one.save('order-7', inProgress());
    await two.delete('order-7', { keepHistory });
    if (!keepHistory) await two.save('order-8', inProgress());
    const next = nextStep(inProgress(), 'on');
    await one.save('order-7', next);
    expect(await two.load('order-7')).toEqual(next);
    expect((await two.list()).map(({ sessionId }) => sessionId)).toContain('order-7');
    expect(await two.history('order-7')).toHaveLength(keepHistory ? 2 : 1);
  },
);

it('makes what it accepted durable when it is closed, and refuses what comes later by name', async () => {
  const file = tempFile();
  const store = openStore(file);
  const saving = store.checkpoints.save('order-7', inProgress());
  const closing = store.close();
  const refused: readonly [string, () => Promise<unknown>][] = [
    ['save', () => store.checkpoints.save('a', inProgress())],
    ['saveIfLeased', () => store.checkpoints.saveIfLeased('a', inProgress(), 'me')],
    ['load', () => store.checkpoints.load('a')],
    ['delete', () => store.checkpoints.delete('a')],
    ['history', () => store.checkpoints.history('a')],
    ['history', () => store.checkpoints.history('a', { limit: 0 })],
    ['list', () => store.checkpoints.list()],
    ['listHeaders', () => store.checkpoints.listHeaders()],
    ['acquireLease', () => store.checkpoints.acquireLease('a', 'me', 1_000)],
    ['renewLease', () => store.checkpoints.renewLease('a', 'me', 1_000)],
    ['releaseLease', () => store.checkpoints.releaseLease('a', 'me')],
    ['prune', () => store.checkpoints.prune({ olderThanMs: 0 })],
    ['approvals.save', () => store.approvals.save(approvalRecord('a'))],
    ['approvals.load', () => store.approvals.load('a')],
    ['approvals.list', () => store.approvals.list()],
    ['approvals.delete', () => store.approvals.delete('a')],
    ['sessions.load', () => store.sessions.load('a')],
    ['sessions.saveIfRevision', () => store.sessions.saveIfRevision(sessionRecord('a'), 0)],
    ['sessions.delete', () => store.sessions.delete('a')],
    ['sessions.list', () => store.sessions.list()],
    ['prune', () => store.prune({ olderThanMs: 0 })],
  ];
  const expectRefusal = async ([operation, call]: (typeof refused)[number]): Promise<void> => {
    await expect(call()).rejects.toMatchObject({ code: 'LOUSHO_STORE_CLOSED', details: { operation } });
  };
  for (const one of refused) await expectRefusal(one);
  await saving;
  await closing;
  for (const one of refused) await expectRefusal(one);
  await store.close();
  await store.checkpoints.close();
  expect(await openStore(file).checkpoints.load('order-7')).toEqual(inProgress());
});

it('is closed by `await using`, and leaves one file behind', async () => {
  const file = tempFile();
  const store = new SqliteStore(file);
  await store.checkpoints.save('order-7', inProgress());
  await store[Symbol.asyncDispose]();
  await expect(store.checkpoints.load('order-7')).rejects.toBeInstanceOf(SDKError);
  const raw = rawDatabase(file);
  expect(raw.prepare('SELECT count(*) FROM events').pluck().get()).toBe(1);
});

it('stores each message of a run once, however often it is saved', async () => {
  const file = tempFile();
  const { checkpoints } = openStore(file);
  let run = inProgress({ messages: deepFreeze([hello]) });
  for (let step = 0; step < 300; step += 1) {
    run = nextStep(run, `needle-${step} ${'x'.repeat(100)}`);
    await checkpoints.save('order-7', run);
  }
  const raw = rawDatabase(file);
  const texts = raw.prepare<[], string>('SELECT data FROM events').pluck().all();
  expect(texts.filter((text) => text.includes('needle-7 '))).toHaveLength(1);
  expect(Math.max(...texts.slice(1).map((text) => text.length))).toBeLessThan(300);
  expect(raw.prepare('SELECT count(*) FROM runs').pluck().get()).toBe(1);
});

/** A message that counts how often its content is looked at. */
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

it('never looks at stored messages again to find out what a save adds', async () => {
  const { checkpoints } = openStore();
  const { message, looks } = watched();
  let run = inProgress({ messages: deepFreeze([message]) });
  await checkpoints.save('order-7', run);
  const before = looks();
  for (let step = 0; step < 5; step += 1) {
    run = nextStep(run, 'on');
    await checkpoints.save('order-7', run);
    // Somebody looks at the run meanwhile: that must not make the next save compare.
    await checkpoints.load('order-7');
    await checkpoints.history('order-7');
  }
  expect(looks()).toBe(before);
});

it('appends to what it loaded as to what it wrote itself', async () => {
  const { checkpoints } = openStore();
  const { message, looks } = watched();
  await checkpoints.save('order-7', inProgress({ messages: deepFreeze([message]) }));
  const loaded = await checkpoints.load('order-7');
  if (loaded === null) throw new Error('it was saved');
  const before = looks();
  await checkpoints.save('order-7', nextStep(loaded, 'on'));
  expect(looks()).toBe(before);
});
