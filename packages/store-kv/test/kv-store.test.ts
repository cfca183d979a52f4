/** What the store is as a whole: options, what a binding without `list` leaves, lists, conversations, and what a prune finds. */
import { childCheckpointId, checkpointHeader, type SessionRecord } from '@lousho/contract';
import { manualClock } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { KVCheckpointStore, KVStore, type KVNamespaceLike, type KVStoreOptions } from '../src/index.ts';
import { ExactKV } from './support/exact-kv.ts';
import { beginRun, last, runOf } from './support/runs.ts';
import { waitingPorts } from './support/waiting-ports.ts';

function givenKV() {
  const clock = manualClock();
  const kv = new ExactKV(clock);
  const open = (options: KVStoreOptions = {}, namespace: KVNamespaceLike = kv) =>
    new KVStore(namespace, { ports: waitingPorts(clock), ...options });
  return { clock, kv, open };
}

describe('options', () => {
  it.each<[string, KVStoreOptions]>([
    ['prefix', { prefix: 'runs' }],
    ['prefix', { prefix: 'a#b/' }],
    ['prefix', { prefix: `${'x'.repeat(200)}/` }],
    ['prefix', { prefix: '\ud83d/' }],
    ['ttlSeconds', { ttlSeconds: 59 }],
    ['ttlSeconds', { ttlSeconds: 60.5 }],
    ['historyLimit', { historyLimit: -1 }],
    ['ttlSecond', { ttlSecond: 60 } as KVStoreOptions],
  ])('refuse a wrong %s at once: %o', (option, options) => {
    expect(() => givenKV().open(options)).toThrowError(
      expect.objectContaining({
        code: 'LOUSHO_CONFIG_INVALID',
        details: expect.objectContaining({ option }),
      }),
    );
  });

  it('refuse what is no namespace, such as a binding that the configuration does not have', () => {
    for (const kv of [undefined, null, {}, 'RUNS'])
      expect(() => new KVStore(kv as never)).toThrowError(/env\.RUNS/);
  });

  it('keep two prefixes apart, also when one begins like the other', async () => {
    const { open } = givenKV();
    const prefixes = ['', 'a/', 'a/b/', 'ab/'];
    for (const prefix of prefixes)
      await open({ prefix }).checkpoints.save('order-7', beginRun({ runId: `of-${prefix}` }));
    for (const prefix of prefixes) {
      const { checkpoints } = open({ prefix });
      const entries = (await checkpoints.list?.()) ?? [];
      expect(entries.map(({ sessionId, checkpoint }) => [sessionId, checkpoint?.runId])).toEqual([
        ['order-7', `of-${prefix}`],
      ]);
    }
    await open({ prefix: '' }).checkpoints.delete('order-7');
    expect(await open({ prefix: 'a/' }).checkpoints.load('order-7')).not.toBeNull();
  });
});

describe('a binding without list', () => {
  it('leaves out what needs one, and says so where the contract asks for it', async () => {
    const { kv, open } = givenKV();
    const namespace: KVNamespaceLike = {
      get: (key) => kv.get(key),
      put: (key, value, options) => kv.put(key, value, options),
      delete: (key) => kv.delete(key),
    };
    const store = open({}, namespace);
    expect(store.checkpoints.claims.list).toBe(false);
    for (const method of ['list', 'listHeaders', 'prune'] as const)
      expect(method in store.checkpoints).toBe(false);
    expect(['prune' in store, 'list' in store.sessions]).toEqual([false, false]);
    await expect(store.approvals.list()).rejects.toMatchObject({ code: 'LOUSHO_STORE_READ_FAILED' });
    for (const state of runOf(100)) await store.checkpoints.save('order-7', state);
    await store.checkpoints.delete('order-7');
    expect(kv.keys()).toEqual([]);
  });
});

describe('lists', () => {
  it('of 2,500 runs take three pages of keys, however many are unfinished, and no get', async () => {
    const { clock, kv, open } = givenKV();
    for (let index = 0; index < 2_500; index += 1)
      await open({ historyLimit: 0 }).checkpoints.save(`order-${index}`, beginRun());
    await open().checkpoints.acquireLease('order-0', 'owner', 30_000);
    kv.calls.length = 0;
    const entries = (await open().checkpoints.listHeaders?.({ status: 'in-progress' })) ?? [];
    expect(entries.length).toBe(2_500);
    expect(entries[0]?.header).toEqual(checkpointHeader(beginRun()));
    expect(kv.count('get')).toBe(0);
    // The namespace of this test has an empty page behind each full one.
    expect(kv.count('list')).toBe(5);
    await clock.advance(0);
  });

  it('read a header that does not fit beside its key, and only when it is asked for', async () => {
    const { kv, open } = givenKV();
    const large = beginRun({ metadata: { note: 'ä'.repeat(600) } });
    const states = runOf(100, { metadata: large.metadata ?? {} });
    for (const state of states) await open({ historyLimit: 0 }).checkpoints.save('order-7', state);
    kv.calls.length = 0;
    expect(await open().checkpoints.listHeaders?.({ status: 'finished' })).toEqual([]);
    expect(kv.count('get')).toBe(0);
    const entries = (await open().checkpoints.listHeaders?.()) ?? [];
    expect(entries.map(({ header }) => header)).toEqual([checkpointHeader(last(states))]);
    expect(kv.count('get')).toBe(1);
  });

  it('show a run of a newer format as one that cannot be read', async () => {
    const { kv, open } = givenKV();
    await kv.put('lousho/order-7', '{"format":2,"sum":"00000000","anything":1}');
    for (const list of ['list', 'listHeaders'] as const)
      expect(await open().checkpoints[list]?.()).toMatchObject([
        { sessionId: 'order-7', error: { code: 'LOUSHO_STORE_VERSION_UNSUPPORTED' } },
      ]);
  });

  it('reject when the namespace does not answer, instead of calling every run damaged', async () => {
    const { kv, open } = givenKV();
    await open().checkpoints.save('order-7', beginRun());
    kv.before = ({ method }) => {
      if (method === 'get') throw new Error('KV GET failed: 503 Service Unavailable');
    };
    await expect(open().checkpoints.list?.()).rejects.toMatchObject({
      code: 'LOUSHO_STORE_READ_FAILED',
      details: { operation: 'list' },
    });
  });
});

describe('a long conversation', () => {
  it('is cut into parts like a run, and goes with all of them', async () => {
    const { kv, open } = givenKV();
    const { sessions } = open();
    let bytesOfLast = 0;
    const states = runOf(200);
    for (const [revision, { messages, usage, savedAt }] of states.entries()) {
      const record: SessionRecord = {
        ...{ id: 'chat-1', revision, turn: revision, messages, inputIds: [], usage, savedAt },
      };
      kv.calls.length = 0;
      expect(await sessions.saveIfRevision(record, revision)).toBe(true);
      bytesOfLast = kv.calls.reduce((sum, { bytes }) => sum + bytes, 0);
    }
    expect(bytesOfLast).toBeLessThan(70 * 1_024);
    const loaded = await open().sessions.load('chat-1');
    expect(loaded?.messages).toEqual(last(states).messages);
    expect(loaded?.revision).toBe(states.length);
    await open().sessions.delete('chat-1');
    expect(kv.keys()).toEqual([]);
  });
});

describe('prune', () => {
  it('counts and removes what crashes left, and keeps what a run still names', async () => {
    const { clock, kv, open } = givenKV();
    const store = open();
    for (const state of runOf(100)) await store.checkpoints.save('order-7', state);
    const parts = kv.keys().filter((key) => key.includes('#t/'));
    const stray = 'lousho/gone#t/0.left';
    await kv.put(stray, 'anything', { metadata: { t: clock.wallMs() } });
    await clock.advance(3_600_000);
    expect(await store.prune?.({ olderThanMs: 1_000, dryRun: true })).toMatchObject({ checkpoints: 0 });
    expect(kv.keys()).toContain(stray);
    await store.prune?.({ olderThanMs: 1_000 });
    expect(kv.keys()).not.toContain(stray);
    expect(kv.keys().filter((key) => key.includes('#t/'))).toEqual(parts);
  });

  it('removes old conversations without a turn under way, and the claims of schedules', async () => {
    const { clock, kv, open } = givenKV();
    const store = open();
    const old = new Date(clock.wallMs()).toISOString();
    const { messages, usage } = beginRun();
    for (const id of ['chat-1', 'chat-2'])
      await store.sessions.saveIfRevision(
        { id, revision: 0, turn: 1, messages, inputIds: [], usage, savedAt: old },
        0,
      );
    await store.checkpoints.save('chat-2.turn-1', beginRun({ savedAt: old }));
    await store.checkpoints.save('nightly.fire', beginRun({ savedAt: old }));
    const child = childCheckpointId('gone', { runId: 'run00001', step: 1, index: 0 });
    await store.checkpoints.save(child, beginRun({ savedAt: old }));
    await clock.advance(3_600_000);
    expect(await store.prune?.({ olderThanMs: 1_000 })).toMatchObject({ checkpoints: 2, sessions: 1 });
    expect(await store.sessions.list?.()).toEqual(['chat-2']);
    expect(kv.keys().filter((key) => key.includes('fire') || key.includes('gone'))).toEqual([]);
    await expect(store.prune?.({ olderThanMs: -1 })).rejects.toMatchObject({ code: 'LOUSHO_CONFIG_INVALID' });
  });

  it('keeps the end of a turn that its conversation may not hold yet, as long as that stays', async () => {
    const { clock, open } = givenKV();
    const store = open();
    const now = () => new Date(clock.wallMs()).toISOString();
    const finished = () =>
      ({ ...beginRun({ savedAt: now() }), status: 'finished', finishReason: 'stop' }) as const;
    const commit = async (id: string, revision: number) => {
      const { messages, usage } = beginRun();
      const record = { id, revision, turn: 1, messages, inputIds: [], usage, savedAt: now() };
      expect(await store.sessions.saveIfRevision(record, revision)).toBe(true);
    };
    await commit('chat', 0);
    await commit('over', 0);
    for (const id of ['chat.turn-1', 'over.turn-1', 'new.turn-0', 'talk.turn-1'])
      await store.checkpoints.save(id, finished());
    await store.checkpoints.save('talk.transcript', beginRun({ savedAt: now() }));
    await clock.advance(3_600_000);
    await commit('chat', 1);
    expect(await store.prune?.({ olderThanMs: 1_000 })).toMatchObject({ checkpoints: 2, sessions: 1 });
    const left = (await store.checkpoints.list?.())?.map(({ sessionId }) => sessionId);
    expect(left).toEqual(['chat.turn-1', 'talk.transcript', 'talk.turn-1']);
    expect(await store.sessions.list?.()).toEqual(['chat']);
  });
});

it('is one handle with its checkpoint part, which can also be opened alone', async () => {
  const { clock, kv, open } = givenKV();
  const store = open();
  await store.checkpoints.close();
  await expect(store.approvals.list()).rejects.toMatchObject({ code: 'LOUSHO_STORE_CLOSED' });
  const alone = new KVCheckpointStore(kv, { ports: waitingPorts(clock) });
  await alone.save('order-7', beginRun());
  expect(await open().checkpoints.load('order-7')).toEqual(beginRun());
});
