import type { AgentStore } from '@lousho/contract';
import { expect, it } from 'vitest';
import { crashingStore, referenceStore, type StoreCall } from '../src/crash.ts';
import { settle } from '../src/settle-clock.ts';
import { checkpointOf } from './fixtures.ts';

async function hasSettled(work: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  void work.finally(() => (isSettled = true)).catch(() => undefined);
  await settle();
  return isSettled;
}

it('does not carry out the call that it dies before, and never answers again', async () => {
  const data = referenceStore();
  const dying = crashingStore(data, { point: { call: 'save#2', when: 'before' } });
  const { checkpoints, approvals } = dying.store;
  await checkpoints?.save('a', checkpointOf({}));
  expect(await hasSettled(checkpoints?.save('b', checkpointOf({})) ?? Promise.resolve())).toBe(false);
  expect(dying.isDead).toBe(true);
  expect(await hasSettled(approvals?.list() ?? Promise.resolve())).toBe(false);
  expect(await data.checkpoints.load('a')).not.toBeNull();
  expect(await data.checkpoints.load('b')).toBeNull();
  expect(dying.calls).toEqual(['save#1', 'save#2']);
});

it('carries out the call that it dies after, and does not say so', async () => {
  const data = referenceStore();
  const performed: StoreCall[] = [];
  const dying = crashingStore(data, {
    point: { call: 'sessions.list#1', when: 'after' },
    onPerformed: (call) => performed.push(call),
  });
  expect(await hasSettled(dying.store.sessions?.list?.() ?? Promise.resolve())).toBe(false);
  expect(performed).toEqual([{ method: 'sessions.list', args: [], result: [] }]);
  expect(dying.isDead).toBe(true);
});

it('leaves calls unanswered that were under way when the process died', async () => {
  const dying = crashingStore(referenceStore());
  const loading = dying.store.checkpoints?.load('a');
  dying.kill();
  expect(await hasSettled(loading ?? Promise.resolve())).toBe(false);
});

it('passes on what the store rejects with', async () => {
  const { store } = crashingStore(referenceStore());
  await expect(store.checkpoints?.save('..', checkpointOf({}))).rejects.toMatchObject({
    code: 'LOUSHO_SESSION_ID_INVALID',
  });
});

it('has the methods and claims of the real store, frozen or a class with private state, and no others', async () => {
  class Counting {
    readonly #saved = new Map<string, unknown>();
    readonly claims = Object.freeze({ leases: 'none' });
    save = async (id: string, checkpoint: unknown): Promise<void> => void this.#saved.set(id, checkpoint);
    async load(id: string): Promise<unknown> {
      return this.#saved.get(id);
    }
  }
  const data = Object.freeze({
    contractVersion: 1,
    checkpoints: Object.freeze(new Counting()),
  }) as object as AgentStore;
  const { store } = crashingStore(data);
  await store.checkpoints?.save('a', checkpointOf({}));
  expect(await store.checkpoints?.load('a')).toMatchObject({ status: 'in-progress' });
  expect(store.contractVersion).toBe(1);
  expect(store.checkpoints?.claims).toEqual({ leases: 'none' });
  expect(['history', 'load'].map((method) => method in (store.checkpoints ?? {}))).toEqual([false, true]);
  expect(store.approvals).toBeUndefined();
  expect(['approvals' in store, 'checkpoints' in store]).toEqual([false, true]);
});

it('closes the view of this process, not the data', async () => {
  let closed = 0;
  const data: AgentStore = { ...referenceStore(), close: async () => void (closed += 1) };
  const { store, calls } = crashingStore(data);
  await store.close?.();
  expect(closed).toBe(0);
  expect(calls).toEqual(['store.close#1']);
});
