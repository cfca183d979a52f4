/** What a browser's storage does to a store: it fills up, other scripts use it too, and a page is closed at any moment. */
import { appendFrozen, deepFreeze, type Checkpoint, type Message } from '@lousho/contract';
import { expect, it } from 'vitest';
import { LocalStorageCheckpointStore } from '../src/index.ts';
import { FakeStorage } from './fake-storage.ts';
import { finished, hello, inProgress } from './fixtures.ts';

function grownRun(saves: number, unitsASave = 200): readonly Checkpoint[] {
  let messages: readonly Message[] = appendFrozen(deepFreeze([]), [hello]);
  return Array.from({ length: saves }, (_none, index) => {
    const content = `${index} ${'x'.repeat(unitsASave)}`;
    messages = appendFrozen(messages, [{ role: 'user', content }]);
    return inProgress({ messages, stepIndex: index });
  });
}

async function saveAll(store: LocalStorageCheckpointStore, states: readonly Checkpoint[]): Promise<void> {
  for (const state of states) await store.save('order-7', state);
}
const savesIn = async (store: LocalStorageCheckpointStore): Promise<Checkpoint[]> =>
  (await store.history('order-7')).map(({ checkpoint }) => checkpoint);

it('keeps a message once in the history, however many entries there are', async () => {
  const storage = new FakeStorage();
  const store = new LocalStorageCheckpointStore(storage);
  const states = grownRun(50, 1_000);
  await saveAll(store, states);
  expect(await savesIn(store)).toEqual([...states].reverse());
  expect(storage.getItem('lousho/order-7#history')?.length).toBeLessThan(70_000);
});

it('gives up old entries of the history before it refuses a save', async () => {
  const storage = new FakeStorage(40_000);
  const store = new LocalStorageCheckpointStore(storage);
  const states = grownRun(60, 500);
  await saveAll(store, states);
  expect(await store.load('order-7')).toEqual(states.at(-1));
  const kept = await savesIn(store);
  expect(kept.length).toBeLessThan(50);
  expect(kept).toEqual([...states].reverse().slice(0, kept.length));
});

it('leaves everything as it was when a save finds no room at all', async () => {
  const storage = new FakeStorage(40_000);
  const store = new LocalStorageCheckpointStore(storage);
  const states = grownRun(10, 500);
  await saveAll(store, states);
  const before = new Map(storage.items);
  const [, large] = grownRun(2, 50_000);
  await expect(store.save('order-7', large as Checkpoint)).rejects.toMatchObject({
    code: 'LOUSHO_STORE_WRITE_FAILED',
    message: expect.stringContaining('full'),
    details: { operation: 'save', id: 'order-7' },
  });
  expect(storage.items).toEqual(before);
});

it('shows the state before or after when the page is closed between two writes', async () => {
  const [first, second, third] = grownRun(3) as [Checkpoint, Checkpoint, Checkpoint];
  for (const writes of [0, 1, 2]) {
    const storage = new FakeStorage();
    await saveAll(new LocalStorageCheckpointStore(storage), [first]);
    let left = writes;
    const closing = new LocalStorageCheckpointStore({
      getItem: (key) => storage.getItem(key),
      setItem: (key, value) => void ((left -= 1) >= 0 && storage.setItem(key, value)),
      removeItem: (key) => void ((left -= 1) >= 0 && storage.removeItem(key)),
    });
    await closing.save('order-7', second);
    const next = new LocalStorageCheckpointStore(storage);
    expect(await next.load('order-7')).toEqual(writes === 0 ? first : second);
    expect(await savesIn(next)).toEqual(writes === 2 ? [second, first] : [first]);
    await next.save('order-7', third);
    expect((await savesIn(next))[0]).toEqual(third);
  }
});

it('reads what was stored before values had a checksum, and refuses what a later release stored', async () => {
  const storage = new FakeStorage();
  const store = new LocalStorageCheckpointStore(storage);
  storage.setItem('lousho/order-7', JSON.stringify(inProgress()));
  expect(await store.load('order-7')).toEqual(inProgress());
  const newer = '{"format":2,"sum":"00000000","anything":1}';
  storage.setItem('lousho/order-7', newer);
  const refusal = { code: 'LOUSHO_STORE_VERSION_UNSUPPORTED' };
  await expect(store.load('order-7')).rejects.toMatchObject(refusal);
  await expect(store.save('order-7', inProgress())).rejects.toMatchObject(refusal);
  expect(storage.getItem('lousho/order-7')).toBe(newer);
});

it('begins a history anew that cannot be read, and names the damage until then', async () => {
  const storage = new FakeStorage();
  const store = new LocalStorageCheckpointStore(storage);
  const [first, second] = grownRun(2) as [Checkpoint, Checkpoint];
  await store.save('order-7', first);
  storage.damage('lousho/order-7#history');
  await expect(store.history('order-7')).rejects.toMatchObject({ details: { record: 'history' } });
  await store.save('order-7', second);
  expect(await savesIn(store)).toEqual([second]);
});

it('leaves alone what other scripts of the page store', async () => {
  const storage = new FakeStorage();
  storage.setItem('theme', 'dark');
  storage.setItem('lousho/settings of another script', '{}');
  const store = new LocalStorageCheckpointStore(storage);
  const other = new LocalStorageCheckpointStore(storage, { prefix: 'other/' });
  await store.save('order-7', finished({ savedAt: '2020-01-01T00:00:00.000Z' }));
  await other.save('order-8', inProgress());
  expect((await store.list?.())?.map(({ sessionId }) => sessionId)).toEqual(['order-7']);
  expect(await store.prune?.({ olderThanMs: 0 })).toMatchObject({ checkpoints: 1, historyEntries: 1 });
  expect([...storage.items.keys()].sort()).toEqual([
    'lousho/settings of another script',
    'other/order-8',
    'other/order-8#history',
    'theme',
  ]);
});

it('gives a code to what a browser throws that lets the page store nothing', async () => {
  const refuse = (): never => {
    throw new DOMException('The user denied it.', 'SecurityError');
  };
  const store = new LocalStorageCheckpointStore({ getItem: refuse, setItem: refuse, removeItem: refuse });
  await expect(store.load('order-7')).rejects.toMatchObject({ code: 'LOUSHO_STORE_READ_FAILED' });
  await expect(store.delete('order-7')).rejects.toMatchObject({ code: 'LOUSHO_STORE_WRITE_FAILED' });
});

it('refuses what is no storage, and a prefix that could mix with another', () => {
  const invalid = expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' });
  for (const storage of [undefined, null, {}, 'localStorage'])
    expect(() => new LocalStorageCheckpointStore(storage as never)).toThrowError(invalid);
  for (const prefix of ['runs', 'a#b/'])
    expect(() => new LocalStorageCheckpointStore(new FakeStorage(), { prefix })).toThrowError(invalid);
});
