/** Which keys there are, what lies in them, and what a save puts. */
import type { Checkpoint, Message } from '@lousho/contract';
import { manualClock } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { KVStore, type KVStoreOptions } from '../src/index.ts';
import { bytesOf } from '../src/kv-namespace.ts';
import { ExactKV } from './support/exact-kv.ts';
import { beginRun, last, nextTurn, runOf, withMessages } from './support/runs.ts';
import { waitingPorts } from './support/waiting-ports.ts';

const KIB = 1_024;

function givenStore(options: KVStoreOptions = {}) {
  const clock = manualClock();
  const kv = new ExactKV(clock);
  const open = () => new KVStore(kv, { ports: waitingPorts(clock), ...options });
  return { clock, kv, open, ...open() };
}

async function saveAll(store: Pick<KVStore, 'checkpoints'>, states: readonly Checkpoint[]): Promise<void> {
  for (const state of states) await store.checkpoints.save('order-7', state);
}

describe('a short transcript', () => {
  it('stays whole in the one value of its run', async () => {
    const { kv, checkpoints } = givenStore({ historyLimit: 0 });
    const states = runOf(40);
    await saveAll({ checkpoints }, states);
    expect(kv.keys()).toEqual(['lousho/order-7']);
    const { checkpoint } = JSON.parse(kv.values.get('lousho/order-7')?.value ?? '') as {
      checkpoint: unknown;
    };
    expect(checkpoint).toEqual(last(states));
  });

  it('costs one put a save, and two puts and one get more with a history', async () => {
    const counts = [0, 50].map(async (historyLimit) => {
      const { kv, checkpoints } = givenStore({ historyLimit });
      const [first, second] = runOf(1);
      await checkpoints.save('order-7', first as Checkpoint);
      const before = { puts: kv.count('put'), gets: kv.count('get') };
      await checkpoints.save('order-7', second as Checkpoint);
      return { puts: kv.count('put') - before.puts, gets: kv.count('get') - before.gets };
    });
    expect(await Promise.all(counts)).toEqual([
      { puts: 1, gets: 0 },
      { puts: 3, gets: 1 },
    ]);
  });

  it('is put before its history entry, the entry before the index, and what falls out goes last', async () => {
    const { kv, checkpoints } = givenStore({ historyLimit: 2 });
    await saveAll({ checkpoints }, runOf(1));
    kv.calls.length = 0;
    await checkpoints.save('order-7', last(runOf(2)));
    const written = kv.calls
      .filter(({ method }) => method === 'put' || method === 'delete')
      .map(({ method, key }) => `${method} ${key.replace(/\/\d+\..*$/, '/<entry>')}`);
    expect(written).toEqual([
      'put lousho/order-7',
      'put lousho/order-7#history/<entry>',
      'put lousho/order-7#history',
      'delete lousho/order-7#history/<entry>',
    ]);
  });
});

describe('a long transcript', () => {
  it('is a header and parts that are put once and never again', async () => {
    const { kv, open, checkpoints } = givenStore({ historyLimit: 0 });
    const states = runOf(200);
    await saveAll({ checkpoints }, states);
    const putParts = kv.calls.filter(({ method, key }) => method === 'put' && key.includes('#t/'));
    const names = putParts.map(({ key }) => key);
    expect(names.length).toBeGreaterThan(5);
    expect(new Set(names).size).toBe(names.length);
    expect(kv.keys()).toEqual(['lousho/order-7', ...names.sort()]);
    expect(await open().checkpoints.load('order-7')).toEqual(last(states));
  });

  it('never makes a value of a run much larger than what stays whole', async () => {
    const { kv, checkpoints } = givenStore();
    await saveAll({ checkpoints }, runOf(300));
    const largest = Math.max(...kv.calls.map(({ bytes }) => bytes));
    expect(largest).toBeLessThan(70 * KIB);
  });

  it.each([
    ['no history', 0],
    ['a history of 50', 50],
  ])('costs as much a turn at 1,000 turns as at 50, with %s', async (_name, historyLimit) => {
    const bytesATurn = async (turns: number): Promise<number> => {
      const { kv, checkpoints } = givenStore({ historyLimit });
      await saveAll({ checkpoints }, runOf(turns));
      return kv.calls.reduce((sum, { bytes }) => sum + bytes, 0) / turns;
    };
    const [short, long] = [await bytesATurn(50), await bytesATurn(1_000)];
    expect(long / short).toBeLessThanOrEqual(1.05);
  });

  it('is loaded with one get for the header and one for each part, and by the one who wrote it with one', async () => {
    const { kv, open, checkpoints } = givenStore();
    await saveAll({ checkpoints }, runOf(300));
    const parts = kv.keys().filter((key) => key.includes('#t/')).length;
    kv.calls.length = 0;
    await open().checkpoints.load('order-7');
    expect(kv.count('get')).toBe(1 + parts);
    kv.calls.length = 0;
    await checkpoints.load('order-7');
    expect(kv.count('get')).toBe(1);
  });

  it('keeps the parts in front of a message that changes, and leaves none of the others behind', async () => {
    const { clock, kv, open, checkpoints } = givenStore({ historyLimit: 3 });
    const states = runOf(200);
    await saveAll({ checkpoints }, states);
    const before = kv.keys().filter((key) => key.includes('#t/'));
    const newest = last(states);
    const changed: Message = { role: 'user', content: 'Something else.' };
    const rewritten = { ...newest, messages: Object.freeze(newest.messages.with(200, changed)) };
    kv.calls.length = 0;
    await checkpoints.save('order-7', rewritten);
    expect(await open().checkpoints.load('order-7')).toEqual(rewritten);
    const kept = before.filter((key) => kv.keys().includes(key));
    expect(kept).toEqual(before);
    // The history still shows what was before, until it has fallen out and nobody can see it any more.
    const history = await open().checkpoints.history('order-7');
    expect(history.map(({ checkpoint }) => checkpoint)).toEqual([rewritten, ...states.slice(-2).reverse()]);
    await clock.advance(11 * 60_000);
    let state: Checkpoint = withMessages(rewritten, [{ role: 'user', content: 'Go on.' }]);
    await checkpoints.save('order-7', state);
    const still = await open().checkpoints.history('order-7');
    expect(still.map(({ checkpoint }) => checkpoint)).toEqual([state, rewritten, last(states)]);
    for (let save = 0; save < 4; save += 1) {
      state = withMessages(state, [{ role: 'user', content: `More ${save}.` }]);
      await open().checkpoints.save('order-7', state);
      await open().checkpoints.load('order-7');
    }
    expect(await open().checkpoints.load('order-7')).toEqual(state);
    const record = kv.values.get('lousho/order-7')?.value ?? '';
    const named = (JSON.parse(record) as { chunks: [string][] }).chunks.map(([name]) => name);
    const dead = ((JSON.parse(record) as { dead?: [string][] }).dead ?? []).map(([name]) => name);
    const stored = kv.keys().flatMap((key) => (key.includes('#t/') ? [key.split('#t/')[1] as string] : []));
    expect(new Set(stored)).toEqual(new Set([...named, ...dead]));
    expect(before.filter((key) => !kv.keys().includes(key)).length).toBeGreaterThan(0);
  });

  it('takes the parts of no deleted run, however alike the new run is', async () => {
    const { open, checkpoints } = givenStore();
    const states = runOf(100);
    await saveAll({ checkpoints }, states);
    await open().checkpoints.delete('order-7');
    const [next] = nextTurn(last(states));
    await checkpoints.save('order-7', next);
    expect(await open().checkpoints.load('order-7')).toEqual(next);
    // Nor those that it named before another run of that name had parts of its own.
    const other = open().checkpoints;
    await other.delete('order-7');
    await saveAll({ checkpoints: other }, runOf(100, { runId: 'another' }));
    const [later] = nextTurn(next);
    await checkpoints.save('order-7', later);
    expect(await open().checkpoints.load('order-7')).toEqual(later);
  });

  it('that is deleted while it is loaded is gone, not damaged', async () => {
    const { kv, open, checkpoints } = givenStore();
    await saveAll({ checkpoints }, runOf(100));
    let deleted: Promise<void> | undefined;
    kv.before = async ({ method, key }) => {
      if (method !== 'get' || !key.includes('#t/') || deleted !== undefined) return;
      deleted = open().checkpoints.delete('order-7');
      await deleted;
    };
    expect(await open().checkpoints.load('order-7')).toBeNull();
    expect(deleted).toBeDefined();
  });

  it('counts what the ids of inputs take', async () => {
    const { kv, open, checkpoints } = givenStore({ historyLimit: 0 });
    let state = beginRun();
    for (let turn = 0; turn < 120; turn += 1) {
      const inputIds = Object.freeze([...state.inputIds, `input-${turn}-${'x'.repeat(80)}`]);
      state = { ...last(nextTurn(state)), inputIds };
      await checkpoints.save('order-7', state);
    }
    expect(await open().checkpoints.load('order-7')).toEqual(state);
    expect(last(kv.calls.filter(({ key }) => key === 'lousho/order-7')).bytes).toBeLessThan(45 * KIB);
  });
});

describe('values and keys', () => {
  it('grow with the number of history entries in the index alone', async () => {
    const { kv, checkpoints } = givenStore({ historyLimit: 200 });
    const state = beginRun();
    for (let save = 0; save < 200; save += 1)
      await checkpoints.save('order-7', { ...state, traceparent: String(save) });
    const largest = (part: RegExp): number =>
      Math.max(...kv.calls.filter(({ key }) => part.test(key)).map(({ bytes }) => bytes));
    expect(largest(/#history\/|order-7$/)).toBeLessThan(KIB);
    expect(largest(/#history$/)).toBeGreaterThan(KIB);
  });

  it('fit into the 512 bytes of a key with the longest prefix and id', async () => {
    const { kv, checkpoints, approvals, sessions } = givenStore({ prefix: `${'ä'.repeat(63)}x/` });
    const id = 'i'.repeat(300);
    for (const state of runOf(60)) await checkpoints.save(id, state);
    await checkpoints.acquireLease(id, 'owner', 30_000);
    const record = {
      ...beginRun(),
      kind: 'tool',
      id,
      toolCallId: 'c',
      toolName: 't',
      args: {},
      argsHash: '',
    };
    await approvals.save({ ...record, kind: 'tool', checkpointId: id, createdAt: record.savedAt });
    await approvals.delete(id);
    await sessions.saveIfRevision({ ...last(runOf(60)), id, revision: 0, turn: 1 }, 0);
    // `ExactKV` refuses longer ones, as KV does.
    expect(Math.max(...kv.calls.map(({ key }) => bytesOf(key)))).toBeGreaterThan(450);
  });

  it('hold text that is not well-formed, and come back equal', async () => {
    const { open, checkpoints } = givenStore();
    const content = 'half a pair: \ud83d and \udcda';
    const state = withMessages(beginRun({ metadata: { content } }), [{ role: 'user', content }]);
    await checkpoints.save('order-7', state);
    expect(await open().checkpoints.load('order-7')).toEqual(state);
    const [entry] = (await open().checkpoints.listHeaders?.()) ?? [];
    expect(entry?.header?.metadata).toEqual({ content });
  });

  it('are read as they were written before values had a checksum or a history', async () => {
    const { kv, open, checkpoints } = givenStore();
    const state = beginRun();
    await kv.put('lousho/order-7', JSON.stringify(state));
    expect(await checkpoints.load('order-7')).toEqual(state);
    expect(await checkpoints.history('order-7')).toEqual([]);
    expect((await open().checkpoints.listHeaders?.())?.map(({ status }) => status)).toEqual(['in-progress']);
    const [next] = nextTurn(state);
    await open().checkpoints.save('order-7', next);
    const history = await open().checkpoints.history('order-7');
    expect(history.map(({ checkpoint }) => checkpoint)).toEqual([next]);
  });

  it('of a newer format are refused and stay as they are', async () => {
    const { kv, open } = givenStore();
    const text = '{"format":2,"sum":"00000000","anything":1}';
    await kv.put('lousho/order-7', text);
    const newer = { code: 'LOUSHO_STORE_VERSION_UNSUPPORTED' };
    await expect(open().checkpoints.load('order-7')).rejects.toMatchObject(newer);
    await expect(open().checkpoints.save('order-7', beginRun())).rejects.toMatchObject(newer);
    expect(kv.values.get('lousho/order-7')?.value).toBe(text);
  });

  it('over 25 MiB are refused before anything is put', async () => {
    const { kv, checkpoints } = givenStore();
    const state = beginRun();
    await checkpoints.save('order-7', state);
    const puts = kv.count('put');
    const large = withMessages(state, [{ role: 'user', content: 'x'.repeat(26 * KIB * KIB) }]);
    await expect(checkpoints.save('order-7', large)).rejects.toMatchObject({
      code: 'LOUSHO_CHECKPOINT_TOO_LARGE',
      details: { id: 'order-7', maxBytes: 25 * KIB * KIB },
    });
    expect(kv.count('put')).toBe(puts);
    expect(await checkpoints.load('order-7')).toEqual(state);
  });
});

describe('damage', () => {
  it('of a part names its key', async () => {
    const { kv, open, checkpoints } = givenStore();
    await saveAll({ checkpoints }, runOf(100));
    const [part] = kv.keys().filter((key) => key.includes('#t/'));
    const corrupt = {
      code: 'LOUSHO_CHECKPOINT_CORRUPT',
      message: expect.stringContaining(part as string),
    };
    kv.damage(part as string);
    await expect(open().checkpoints.load('order-7')).rejects.toMatchObject(corrupt);
    kv.values.delete(part as string);
    await expect(open().checkpoints.load('order-7')).rejects.toMatchObject(corrupt);
    await open().checkpoints.delete('order-7');
    expect(kv.keys()).toEqual([]);
  });

  it('of the index of a history is named, and mended by the next save', async () => {
    const { kv, open, checkpoints } = givenStore();
    const [first, second] = runOf(1);
    await checkpoints.save('order-7', first as Checkpoint);
    kv.damage('lousho/order-7#history');
    await expect(open().checkpoints.history('order-7')).rejects.toMatchObject({
      code: 'LOUSHO_CHECKPOINT_CORRUPT',
      details: { record: 'history' },
    });
    await open().checkpoints.save('order-7', second as Checkpoint);
    expect((await open().checkpoints.history('order-7')).map(({ checkpoint }) => checkpoint)).toEqual([
      second,
    ]);
  });

  it('of an entry that is listed but not there yet leaves that entry out', async () => {
    const { kv, open, checkpoints } = givenStore();
    const states = runOf(1);
    await saveAll({ checkpoints }, states);
    const [, second] = kv.keys().filter((key) => key.includes('#history/'));
    kv.values.delete(second as string);
    const history = await open().checkpoints.history('order-7');
    expect(history.map(({ checkpoint }) => checkpoint)).toEqual([states[2], states[0]]);
  });
});

describe('a time to live', () => {
  it('stands on every value, and no part goes before the record that names it', async () => {
    const ttlSeconds = 3_600;
    const { clock, kv, open, checkpoints } = givenStore({ ttlSeconds, historyLimit: 2 });
    const states = runOf(120);
    for (const state of states) {
      await checkpoints.save('order-7', state);
      await clock.advance(5 * 60_000);
    }
    // 20 hours later than the first parts were put.
    expect(await open().checkpoints.load('order-7')).toEqual(last(states));
    expect((await open().checkpoints.history('order-7')).length).toBe(2);
    await clock.advance(54 * 60_000);
    expect(await open().checkpoints.load('order-7')).toEqual(last(states));
    await clock.advance(ttlSeconds * 2_000);
    expect(kv.keys()).toEqual([]);
    expect(
      kv.calls.filter(({ method }) => method === 'put').every(({ options }) => options.expirationTtl),
    ).toBe(true);
  });
});
