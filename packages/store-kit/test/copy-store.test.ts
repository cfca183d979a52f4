/** A copy is whole, is continued after any failure, takes nothing that somebody executes, and names what it leaves. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  appendFrozen,
  checkpointHeader,
  deepFreeze,
  type AgentStore,
  type Checkpoint,
  type CheckpointStore,
  type Clock,
  type FullAgentStore,
} from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { copyStore, encryptedStore, type CopyProgress } from '../src/index.ts';
import { testKey } from './support/keys.ts';
import { SAVES, contentOf, fill, givenStore } from './support/filled-store.ts';
import { notStores } from './support/not-stores.ts';
import { approvalRecord, inProgress, nextStep, says, sessionRecord, waiting } from './support/records.ts';
import { textStore, threeMethodStore } from './support/text-store.ts';

const [oldKey, newKey] = [testKey('2025-07'), testKey('2026-01')];

describe('copyStore', () => {
  it('copies runs with their history, approvals and sessions, and reports each', async () => {
    for (const to of [
      memoryStore(),
      sqliteStore(),
      encryptedStore(memoryStore(), [newKey]),
      textStore().store,
    ]) {
      const from = await givenStore();
      const progress: CopyProgress[] = [];
      expect(await copyStore(from, to, { onProgress: (step) => progress.push(step) })).toEqual({
        checkpoints: { copied: 3, equal: 0 },
        saves: 2 * SAVES + 2,
        approvals: { copied: 1, equal: 0 },
        sessions: { copied: 1, equal: 0 },
        left: [],
      });
      expect(await contentOf(to)).toEqual(await contentOf(from));
      expect(progress.map(({ done, total, outcome }) => `${done}/${total} ${outcome}`)).toEqual(
        [1, 2, 3, 4, 5].map((done) => `${done}/5 copied`),
      );
    }
  });

  it('copies from every kind of store', async () => {
    for (const from of [sqliteStore(), encryptedStore(memoryStore(), [newKey]), textStore().store]) {
      await fill(from);
      const to = memoryStore();
      expect((await copyStore(from, to)).left).toEqual([]);
      expect(await contentOf(to)).toEqual(await contentOf(from));
    }
  });

  it('writes nothing the second time', async () => {
    const [from, to] = [await givenStore(), sqliteStore()];
    await copyStore(from, to);
    const before = await contentOf(to);
    const writes: string[] = [];
    expect(
      await copyStore(
        from,
        watched(to, (method) => void writes.push(method)),
      ),
    ).toEqual({
      checkpoints: { copied: 0, equal: 3 },
      saves: 0,
      approvals: { copied: 0, equal: 1 },
      sessions: { copied: 0, equal: 1 },
      left: [],
    });
    expect(writes).toEqual([]);
    expect(await contentOf(to)).toEqual(before);
  });

  it('is continued where it was when the target failed at any write, before or after that write', async () => {
    const from = await givenStore();
    const expected = await contentOf(from);
    const writeCount = 2 * SAVES + 2 + 1 + 1;
    for (const moment of ['before', 'after'] as const)
      for (let failsAt = 1; failsAt <= writeCount; failsAt += 1) {
        const to = memoryStore();
        let writes = 0;
        const failing = watched(to, (_method, when) => {
          if (when === moment && (writes += 1) === failsAt) throw new Error('the disk is full');
        });
        await expect(copyStore(from, failing)).rejects.toThrow('the disk is full');
        expect((await copyStore(from, to)).left).toEqual([]);
        expect(await contentOf(to)).toEqual(expected);
      }
  });

  it('ends between two records when it is aborted, and is continued', async () => {
    const from = await givenStore();
    for (let abortedAfter = 1; abortedAfter <= 4; abortedAfter += 1) {
      const to = memoryStore();
      const abort = new AbortController();
      const seen: string[] = [];
      const copying = copyStore(from, to, {
        signal: abort.signal,
        onProgress: ({ id, done }) => {
          seen.push(id);
          if (done === abortedAfter) abort.abort(new Error('stopped'));
        },
      });
      await expect(copying).rejects.toThrow('stopped');
      expect(seen).toHaveLength(abortedAfter);
      const result = await copyStore(from, to);
      const { checkpoints, approvals, sessions } = result;
      expect(checkpoints.equal + approvals.equal + sessions.equal).toBe(abortedAfter);
      expect(await contentOf(to)).toEqual(await contentOf(from));
    }
  });

  it('brings what a run did since the copy, also when both have dropped their oldest saves', async () => {
    const from = memoryStore({ historyLimit: 5 });
    const to = memoryStore({ historyLimit: 3 });
    let state = inProgress();
    for (let round = 0; round < 3; round += 1) {
      for (let save = 0; save < 4; save += 1)
        await from.checkpoints.save('order-7', (state = nextStep(state, `round ${round}, save ${save}`)));
      expect(await copyStore(from, to)).toMatchObject({ checkpoints: { copied: 1 }, saves: 4, left: [] });
      const newest = (await from.checkpoints.history('order-7')).slice(0, 3);
      expect(await to.checkpoints.history('order-7')).toEqual(newest);
    }
  });

  it('takes no run that somebody executes, nor its conversation, and says so', async () => {
    const from = memoryStore();
    await from.checkpoints.save('chat-1.turn-3', inProgress());
    await from.checkpoints.save('order-7', inProgress());
    await from.sessions.saveIfRevision(sessionRecord('chat-1'), 0);
    await from.checkpoints.acquireLease('chat-1.turn-3', 'somebody', 30_000);
    const to = memoryStore();
    const result = await copyStore(from, to);
    expect(result.left).toEqual([
      { record: 'checkpoint', id: 'chat-1.turn-3', reason: 'executing' },
      { record: 'session', id: 'chat-1', reason: 'executing' },
    ]);
    expect(result.checkpoints).toEqual({ copied: 1, equal: 0 });
    expect(await to.checkpoints.load('chat-1.turn-3')).toBeNull();
    expect(await to.sessions.load('chat-1')).toBeNull();
    // Its holder did not notice.
    expect(await from.checkpoints.saveIfLeased('chat-1.turn-3', inProgress(), 'somebody')).toBe(true);
    await from.checkpoints.releaseLease('chat-1.turn-3', 'somebody');
    expect((await copyStore(from, to)).left).toEqual([]);
  });

  it('holds the leases of both stores while it copies a run, and gives them back', async () => {
    const [from, to] = [memoryStore(), memoryStore()];
    await from.checkpoints.save('order-7', inProgress());
    const held: unknown[] = [];
    const watching = watched(to, async (method, when) => {
      if (method !== 'saveIfLeased' || when !== 'before') return;
      for (const { checkpoints } of [from, to])
        held.push(await checkpoints.acquireLease('order-7', 'somebody', 30_000));
    });
    await copyStore(from, watching);
    expect(held).toEqual([false, false]);
    for (const { checkpoints } of [from, to])
      expect(await checkpoints.acquireLease('order-7', 'somebody', 30_000)).not.toBe(false);
    // And where somebody executes the copy already:
    await from.checkpoints.save('order-7', nextStep(inProgress(), 'more'));
    await from.checkpoints.releaseLease('order-7', 'somebody');
    expect((await copyStore(from, to)).left).toEqual([
      { record: 'checkpoint', id: 'order-7', reason: 'executing-in-target' },
    ]);
  });

  it('overwrites nothing that differs, and names it', async () => {
    const [from, to] = [await givenStore(), memoryStore()];
    await to.checkpoints.save('order-7', inProgress({ runId: 'another-run' }));
    await to.approvals.save(approvalRecord('a-1', { args: 'another' }));
    await to.sessions.saveIfRevision(sessionRecord('chat-1', { turn: 9 }), 0);
    const before = await contentOf(to);
    const result = await copyStore(from, to);
    expect(result.left).toEqual([
      // The conversation of the target is another one.
      { record: 'checkpoint', id: 'chat-1.turn-3', reason: 'differs' },
      { record: 'checkpoint', id: 'order-7', reason: 'differs' },
      { record: 'approval', id: 'a-1', reason: 'differs' },
      { record: 'session', id: 'chat-1', reason: 'differs' },
    ]);
    expect(await to.checkpoints.history('order-7')).toEqual(before.runs['order-7']);
    expect([await to.approvals.list(), await to.sessions.load('chat-1')]).toEqual([
      before.approvals,
      before.sessions[0],
    ]);
  });

  it('names what cannot be read, with the reason, and copies the rest', async () => {
    const below = memoryStore();
    await encryptedStore(below, [oldKey]).checkpoints.save('lost-key', inProgress());
    await below.checkpoints.save('plain', inProgress());
    const from = encryptedStore(below, [newKey]);
    await from.checkpoints.save('order-7', inProgress());
    const to = memoryStore();
    const result = await copyStore(from, to);
    expect(result.left.map(({ id, reason, error }) => [id, reason, error?.code])).toEqual([
      ['lost-key', 'unreadable', 'LOUSHO_STORE_KEY_UNKNOWN'],
      ['plain', 'unreadable', 'LOUSHO_STORE_NOT_SEALED'],
    ]);
    expect((await to.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['order-7']);
  });

  it('names the approvals that a run waits for and that cannot be opened, though no list shows them', async () => {
    const below = textStore();
    const { approvals, checkpoints, sessions } = encryptedStore(below.store, [newKey]);
    for (const id of ['lost-key', 'plain', 'whole', 'not-there'])
      await checkpoints?.save(id, waiting(`${id}.apr`));
    await encryptedStore(below.store, [oldKey]).approvals?.save(approvalRecord('lost-key.apr'));
    await below.store.approvals?.save(approvalRecord('plain.apr'));
    await approvals?.save(approvalRecord('whole.apr'));
    // One way of listing the runs, and the other.
    for (const list of [{}, { listHeaders: headersOf(checkpoints) }]) {
      const from: AgentStore = {
        ...(approvals && { approvals }),
        ...(sessions && { sessions }),
        ...(checkpoints && { checkpoints: { ...checkpoints, ...list } }),
      };
      const to = memoryStore();
      const result = await copyStore(from, to);
      expect(result.left.map(({ record, id, reason, error }) => [record, id, reason, error?.code])).toEqual([
        ['approval', 'lost-key.apr', 'unreadable', 'LOUSHO_STORE_KEY_UNKNOWN'],
        ['approval', 'plain.apr', 'unreadable', 'LOUSHO_STORE_NOT_SEALED'],
      ]);
      expect(result.approvals).toEqual({ copied: 1, equal: 0 });
      expect(await to.approvals.list()).toEqual([approvalRecord('whole.apr')]);
    }
  });

  it('encrypts what was not, and seals everything with the new key, history included', async () => {
    const plain = await givenStore();
    const [first, second] = [textStore(), textStore()];
    await copyStore(plain, encryptedStore(first.store, [oldKey]));
    await copyStore(encryptedStore(first.store, [oldKey]), encryptedStore(second.store, [newKey]));
    const texts = [
      ...[...second.saves.values()].flat(),
      ...second.approvals.values(),
      ...second.sessions.values(),
    ];
    expect(texts.join('\n')).not.toMatch(/secret|2025-07/);
    expect(await contentOf(encryptedStore(second.store, [newKey]))).toEqual(await contentOf(plain));
  });

  it('says when the target does not give back what it was given', async () => {
    const from = await givenStore();
    const forgetful: readonly ((store: FullAgentStore) => AgentStore)[] = [
      (store) => ({
        ...store,
        checkpoints: { ...store.checkpoints, load: async (id) => changed(await store.checkpoints.load(id)) },
      }),
      (store) => ({
        ...store,
        checkpoints: {
          ...store.checkpoints,
          history: async () =>
            (await store.checkpoints.history('order-7'))
              .slice(0, 1)
              .concat((await store.checkpoints.history('order-7')).slice(2)),
        },
      }),
      (store) => ({ ...store, approvals: { ...store.approvals, load: async () => null } }),
      (store) => ({ ...store, sessions: { ...store.sessions, load: async () => null } }),
    ];
    for (const forget of forgetful)
      await expect(copyStore(from, forget(memoryStore()))).rejects.toMatchObject({
        code: 'LOUSHO_STORE_WRITE_FAILED',
        retryable: false,
      });
  });

  it('says when a run was saved in a source without leases while it was being copied', async () => {
    const from = textStore().store;
    await from.checkpoints?.save('order-7', inProgress());
    const to = memoryStore();
    const meanwhile = watched(to, async (_method, when) => {
      if (when === 'after') await from.checkpoints?.save('order-7', nextStep(inProgress(), 'meanwhile'));
    });
    expect((await copyStore(from, meanwhile)).left).toEqual([
      { record: 'checkpoint', id: 'order-7', reason: 'changed' },
    ]);
    // The next copy brings the rest.
    expect(await copyStore(from, to)).toMatchObject({ saves: 1, left: [] });
  });

  it('stops at a run that is deleted or taken over while its history is copied', async () => {
    const cases = {
      changed: (from: FullAgentStore) => from.checkpoints.delete('order-7'),
      'executing-in-target': (_from: FullAgentStore, to: FullAgentStore) => to.checkpoints.delete('order-7'),
    };
    for (const [reason, interfere] of Object.entries(cases)) {
      const [from, to] = [memoryStore(), memoryStore()];
      let state = inProgress();
      for (let save = 0; save < 45; save += 1)
        await from.checkpoints.save('order-7', (state = nextStep(state, `save ${save}`)));
      let writes = 0;
      const watching = watched(to, async (method, when) => {
        if (method === 'saveIfLeased' && when === 'after' && (writes += 1) === 3) await interfere(from, to);
      });
      expect((await copyStore(from, watching)).left).toEqual([
        { record: 'checkpoint', id: 'order-7', reason },
      ]);
      expect(writes).toBeLessThan(20);
    }
  });

  it('asks a target that shows writes late until it does, and gives up after three minutes', async () => {
    for (const isVisible of [true, false]) {
      const below = memoryStore();
      let nowMs = 0;
      const clock: Clock = {
        wallMs: () => nowMs,
        monotonicMs: () => nowMs,
        setTimer(callback, delayMs) {
          nowMs += delayMs;
          queueMicrotask(callback);
          return () => undefined;
        },
      };
      const { claims } = below.checkpoints;
      const to: AgentStore = {
        checkpoints: {
          claims: { ...claims, consistency: 'eventual' },
          save: (id, checkpoint) => below.checkpoints.save(id, checkpoint),
          load: async (id) => (isVisible && nowMs > 60_000 ? below.checkpoints.load(id) : null),
          delete: (id) => below.checkpoints.delete(id),
        },
      };
      const from = memoryStore();
      await from.checkpoints.save('order-7', inProgress());
      const copying = copyStore(from, to, { ports: { clock } });
      if (isVisible) expect((await copying).left).toEqual([]);
      else await expect(copying).rejects.toMatchObject({ code: 'LOUSHO_STORE_WRITE_FAILED' });
      expect(nowMs).toBe(isVisible ? 61_000 : 180_000);
    }
  });

  it('does not leave an approval that was decided while it was being copied', async () => {
    const from = memoryStore();
    await from.approvals.save(approvalRecord('a-1'));
    const to = memoryStore();
    const meanwhile = watched(to, async (method, when) => {
      if (method === 'approvals.save' && when === 'after') await from.approvals.delete('a-1');
    });
    expect(await copyStore(from, meanwhile)).toMatchObject({ approvals: { copied: 0, equal: 0 }, left: [] });
    expect(await to.approvals.list()).toEqual([]);
  });

  it('copies the newest state into a store of three methods, and continues', async () => {
    const from = memoryStore();
    const to = threeMethodStore();
    await from.checkpoints.save('order-7', inProgress());
    await copyStore(from, to);
    const next = nextStep(inProgress(), 'more');
    await from.checkpoints.save('order-7', next);
    expect(await copyStore(from, to)).toMatchObject({ checkpoints: { copied: 1 }, saves: 1, left: [] });
    expect(await to.checkpoints?.load('order-7')).toEqual(next);
    expect(await copyStore(from, to)).toMatchObject({ checkpoints: { equal: 1 }, saves: 0 });
  });

  it('refuses at once what cannot be copied whole', async () => {
    const from = await givenStore();
    await expect(copyStore(from, threeMethodStore())).rejects.toMatchObject({
      code: 'LOUSHO_CONFIG_INVALID',
      details: { option: 'to', want: 'a store that has approvals, as the other has' },
    });
    await expect(copyStore(threeMethodStore(), memoryStore())).rejects.toMatchObject({
      code: 'LOUSHO_CONFIG_INVALID',
      details: { option: 'from' },
    });
    await expect(copyStore(from, from)).rejects.toMatchObject({ details: { option: 'to' } });
  });

  it('refuses what is no store, on either side, and never calls it an empty one', async () => {
    const other = await givenStore();
    for (const [name, given, { option, got, want }] of notStores(memoryStore().checkpoints)) {
      const wrong = given as AgentStore;
      const refused = (side: 'from' | 'to') => ({
        code: 'LOUSHO_CONFIG_INVALID',
        details: { option: `${side}${option}`, got, want },
      });
      await expect(copyStore(wrong, other), name).rejects.toMatchObject(refused('from'));
      await expect(copyStore(other, wrong), name).rejects.toMatchObject(refused('to'));
      await expect(copyStore(wrong, wrong), name).rejects.toMatchObject(refused('from'));
    }
    await expect(copyStore(undefined as unknown as AgentStore, other)).rejects.toMatchObject({
      details: { option: 'from', want: 'an AgentStore, for example memoryStore()' },
    });
  });

  it('works on one run at a time', async () => {
    const from = memoryStore();
    const ids = Array.from({ length: 5 }, (_none, index) => `order-${index}`);
    for (const id of ids) await from.checkpoints.save(id, inProgress());
    const seen: string[] = [];
    const note = (id: string): void => {
      if (seen.at(-1) !== id) seen.push(id);
    };
    const watching: CheckpointStore = {
      ...from.checkpoints,
      load: async (id) => (note(id), from.checkpoints.load(id)),
      history: async (id) => (note(id), from.checkpoints.history(id)),
      list: () => Promise.reject(new Error('a list holds every transcript')),
    };
    await copyStore({ checkpoints: watching }, memoryStore());
    expect(seen).toEqual(ids);
  });
});

function headersOf(checkpoints: CheckpointStore | undefined): NonNullable<CheckpointStore['listHeaders']> {
  return async (options) =>
    ((await checkpoints?.list?.(options)) ?? []).map(({ checkpoint, ...entry }) => ({
      ...entry,
      header: checkpoint === null ? null : checkpointHeader(checkpoint),
    }));
}

function changed(checkpoint: Checkpoint | null): Checkpoint | null {
  return (
    checkpoint && deepFreeze({ ...checkpoint, messages: appendFrozen(checkpoint.messages, [says('extra')]) })
  );
}

function sqliteStore(): SqliteStore {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-copy-'));
  const store = new SqliteStore(path.join(folder, 'runs.db'), { durability: 'process' });
  onTestFinished(async () => {
    await store.close();
    fs.rmSync(folder, { recursive: true, force: true });
  });
  return store;
}

/** Told of each write, before and after it. Leases are no writes of the copy. */
function watched(
  store: FullAgentStore,
  tell: (method: string, when: 'before' | 'after') => void | Promise<void>,
): AgentStore {
  const around =
    <Args extends readonly unknown[], Result>(method: string, write: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      await tell(method, 'before');
      const result = await write(...args);
      await tell(method, 'after');
      return result;
    };
  const { checkpoints, approvals, sessions } = store;
  return {
    checkpoints: {
      claims: checkpoints.claims,
      load: (id) => checkpoints.load(id),
      delete: (id, options) => checkpoints.delete(id, options),
      history: (id, options) => checkpoints.history(id, options),
      acquireLease: (...args) => checkpoints.acquireLease(...args),
      renewLease: (...args) => checkpoints.renewLease(...args),
      releaseLease: (...args) => checkpoints.releaseLease(...args),
      save: around('save', async (id: string, checkpoint: Checkpoint) => checkpoints.save(id, checkpoint)),
      saveIfLeased: around(
        'saveIfLeased',
        async (id: string, checkpoint: Checkpoint, owner: string, fence?: number) =>
          checkpoints.saveIfLeased(id, checkpoint, owner, fence),
      ),
    },
    approvals: {
      load: (id) => approvals.load(id),
      list: (options) => approvals.list(options),
      delete: (id) => approvals.delete(id),
      save: around('approvals.save', async (record) => approvals.save(record)),
    },
    sessions: {
      load: (id) => sessions.load(id),
      delete: (id) => sessions.delete(id),
      saveIfRevision: around('saveIfRevision', async (record, expected: number) =>
        sessions.saveIfRevision(record, expected),
      ),
    },
  };
}
