/** What the store below sees, which keys open what, and that nothing else about the store is different. */
import {
  appendFrozen,
  isDeepFrozen,
  type SDKError,
  type AgentStore,
  type Checkpoint,
  type CheckpointStore,
} from '@lousho/contract';
import { createAgent, defineTool, type Agent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { platformCrypto } from '../src/crypto-ports.ts';
import { encryptedStore, type SealingKey } from '../src/index.ts';
import { sealedStore } from '../src/encrypted-store.ts';
import { testKey } from './support/keys.ts';
import { notStores } from './support/not-stores.ts';
import { approvalRecord, inProgress, nextStep, says, sessionRecord, waiting } from './support/records.ts';
import { textStore, threeMethodStore } from './support/text-store.ts';

const [oldKey, newKey] = [testKey('2025-07'), testKey('2026-01')];

describe('the store below', () => {
  it('sees nothing of what was said, by whom, with which tools and to which end', async () => {
    const below = textStore();
    const sealed = encryptedStore(below.store, [newKey]);
    await saveEverything(sealed);
    const texts = [
      ...(below.saves.get('order-7') ?? []),
      ...below.approvals.values(),
      ...below.sessions.values(),
    ];
    expect(texts).toHaveLength(4);
    expect(texts.join('\n')).not.toMatch(/secret/i);
  });

  it('sees ids, status, step and times, and lists and prunes by them', async () => {
    const below = memoryStore();
    const sealed = encryptedStore(below, [newKey]);
    const approvalId = 'order-7.apr-run00001-1-0';
    const paused = waiting(approvalId);
    await sealed.checkpoints.save('order-7', paused);
    await sealed.approvals.save(approvalRecord(approvalId, { sessionId: 'chat-1' }));
    const [header] = await below.checkpoints.listHeaders({ status: 'awaiting-approval' });
    expect(header?.header).toMatchObject({
      stepIndex: 1,
      savedAt: paused.savedAt,
      approvalIds: [approvalId],
    });
    expect(await sealed.approvals.list({ sessionId: 'chat-1' })).toHaveLength(1);
    expect(await sealed.approvals.list({ sessionId: 'chat-2' })).toHaveLength(0);
    // Everything is old, and yet somebody has to decide about it.
    expect(await sealed.prune({ olderThanMs: 0, statuses: ['awaiting-approval'] })).toMatchObject({
      checkpoints: 0,
      approvals: 0,
    });
    await sealed.approvals.delete(approvalId);
    const ended = finished(inProgress());
    await sealed.checkpoints.save('order-7', ended);
    expect(await sealed.prune({ olderThanMs: 0 })).toMatchObject({ checkpoints: 1, historyEntries: 2 });
  });
});

describe('keys', () => {
  it('open what any of them sealed, and the next save seals with the first', async () => {
    const below = memoryStore();
    const before = encryptedStore(below, [oldKey]);
    const state = inProgress();
    await before.checkpoints.save('order-7', state);
    await before.approvals.save(approvalRecord('a-1'));
    await before.sessions.saveIfRevision(sessionRecord('chat-1'), 0);
    const during = encryptedStore(below, [newKey, oldKey]);
    const loaded = await during.checkpoints.load('order-7');
    expect(loaded).toEqual(state);
    await during.checkpoints.save('order-7', nextStep(loaded as typeof state, 'more'));
    await during.approvals.save((await during.approvals.load('a-1')) ?? approvalRecord('a-1'));
    const session = await during.sessions.load('chat-1');
    await during.sessions.saveIfRevision(session ?? sessionRecord('chat-1'), 1);
    const after = encryptedStore(below, [newKey]);
    expect(await after.checkpoints.load('order-7')).toEqual(nextStep(state, 'more'));
    expect(await after.approvals.load('a-1')).toEqual(approvalRecord('a-1'));
    expect(await after.sessions.load('chat-1')).toEqual({ ...sessionRecord('chat-1'), revision: 2 });
    // The save of before is in the history, under the old key.
    await expect(after.checkpoints.history('order-7')).rejects.toMatchObject({
      code: 'LOUSHO_STORE_KEY_UNKNOWN',
      details: { id: 'order-7', record: 'history', keyId: '2025-07' },
    });
    expect(await during.checkpoints.history('order-7')).toHaveLength(2);
  });

  it('that are missing are named, with the record, and hide nothing', async () => {
    const below = memoryStore();
    const sealed = encryptedStore(below, [oldKey]);
    await saveEverything(sealed);
    const other = encryptedStore(below, [newKey]);
    const missing = { code: 'LOUSHO_STORE_KEY_UNKNOWN', details: { keyId: '2025-07' }, retryable: false };
    await expect(other.checkpoints.load('order-7')).rejects.toMatchObject(missing);
    await expect(other.approvals.load('a-1')).rejects.toMatchObject(missing);
    await expect(other.sessions.load('chat-1')).rejects.toMatchObject(missing);
    for (const entries of [await other.checkpoints.list(), await other.checkpoints.listHeaders()])
      expect(entries).toMatchObject([
        { sessionId: 'order-7', status: 'in-progress', error: { code: 'LOUSHO_STORE_KEY_UNKNOWN' } },
      ]);
    // It can still be deleted.
    await other.checkpoints.delete('order-7');
    expect(await other.checkpoints.list()).toEqual([]);
  });

  it('of the same id with other bytes open nothing', async () => {
    const below = memoryStore();
    await encryptedStore(below, [oldKey]).checkpoints.save('order-7', inProgress());
    const impostor = encryptedStore(below, [{ id: oldKey.id, key: newKey.key }]);
    const error = (await impostor.checkpoints.load('order-7').catch((reason: unknown) => reason)) as SDKError;
    expect(error).toMatchObject({ code: 'LOUSHO_CHECKPOINT_CORRUPT', details: { record: 'checkpoint' } });
    // Else somebody deletes what a slip in the configuration made look damaged: said where only the message is seen, too.
    const [entry] = await impostor.checkpoints.listHeaders();
    for (const message of [error.message, entry?.error?.message])
      expect(message).toBe(
        'The stored checkpoint "order-7" is damaged, or the key that is here as "2025-07" is not the one that sealed it, which looks the same: check the keys before you delete anything.',
      );
  });

  it('that are missing for one approval leave the inbox open to everybody else', async () => {
    const below = textStore();
    const { approvals } = encryptedStore(below.store, [newKey]);
    await encryptedStore(below.store, [oldKey]).approvals?.save(approvalRecord('a-lost-key'));
    await below.store.approvals?.save(approvalRecord('b-plain'));
    for (const id of ['c-later', 'd-torn', 'e-whole']) await approvals?.save(approvalRecord(id));
    const change = (id: string, from: string, to: string): void =>
      void below.approvals.set(id, (below.approvals.get(id) ?? '').replace(from, to));
    change('c-later', 'lousho-sealed-1.', 'lousho-sealed-2.');
    change('d-torn', 'lousho-sealed-1.2026-01.', 'lousho-sealed-1.2026-01.AAAA');
    expect(await approvals?.list()).toEqual([approvalRecord('e-whole')]);
    const reasons = {
      'a-lost-key': 'LOUSHO_STORE_KEY_UNKNOWN',
      'b-plain': 'LOUSHO_STORE_NOT_SEALED',
      'c-later': 'LOUSHO_STORE_VERSION_UNSUPPORTED',
      'd-torn': 'LOUSHO_CHECKPOINT_CORRUPT',
    };
    for (const [id, code] of Object.entries(reasons))
      await expect(approvals?.load(id), id).rejects.toMatchObject({ code });
  });

  it('that are missing for one run leave the lists of runs and conversations whole', async () => {
    const below = textStore();
    const sealed = encryptedStore(below.store, [newKey]);
    const lost = encryptedStore(below.store, [oldKey]);
    await lost.checkpoints?.save('a-lost-key', inProgress());
    await lost.sessions?.saveIfRevision(sessionRecord('chat-1'), 0);
    await below.store.checkpoints?.save('b-plain', inProgress());
    await below.store.sessions?.saveIfRevision(sessionRecord('chat-2'), 0);
    await sealed.checkpoints?.save('c-whole', inProgress());
    const entries = (await sealed.checkpoints?.list?.()) ?? [];
    expect(entries.map(({ sessionId, error }) => [sessionId, error?.code]).sort()).toEqual([
      ['a-lost-key', 'LOUSHO_STORE_KEY_UNKNOWN'],
      ['b-plain', 'LOUSHO_STORE_NOT_SEALED'],
      ['c-whole', undefined],
    ]);
    expect(await sealed.sessions?.list?.()).toEqual(['chat-1', 'chat-2']);
  });

  it('may be bytes, base64 or a CryptoKey that cannot be exported', async () => {
    const below = memoryStore();
    const bytes = newKey.key as Uint8Array;
    const base64 = btoa(String.fromCharCode(...bytes));
    const cryptoKey = await crypto.subtle.importKey('raw', bytes.slice(), 'AES-GCM', false, [
      'encrypt',
      'decrypt',
    ]);
    await encryptedStore(below, [newKey]).checkpoints.save('order-7', inProgress());
    for (const key of [base64, cryptoKey]) {
      const { checkpoints } = encryptedStore(below, [{ id: newKey.id, key }]);
      expect(await checkpoints.load('order-7')).toEqual(inProgress());
    }
  });

  it('are checked at once, and never shown', async () => {
    const secret = 'c2VjcmV0';
    const short = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, false, [
      'encrypt',
      'decrypt',
    ]);
    const signing = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
    const wrong: [string, unknown][] = [
      ['keys', []],
      ['keys', undefined],
      ['keys[0].id', [{ ...newKey, id: '' }]],
      ['keys[0].id', [{ ...newKey, id: 'a.b' }]],
      ['keys[1].id', [newKey, { ...oldKey, id: newKey.id }]],
      ['keys[0].key', [{ id: 'k', key: secret }]],
      ['keys[0].key', [{ id: 'k', key: 'no base64!' }]],
      ['keys[0].key', [{ id: 'k', key: new Uint8Array(16) }]],
      ['keys[0].key', [{ id: 'k', key: signing }]],
      ['keys[0].key', [{ id: 'k', key: short }]],
    ];
    for (const [option, keys] of wrong) {
      const open = (): AgentStore => encryptedStore(memoryStore(), keys as readonly SealingKey[]);
      expect(open).toThrow(expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' }));
      const error = thrownBy(open) as { readonly details: { readonly option: string } };
      expect(error.details.option).toBe(option);
      expect(`${JSON.stringify(error)} ${(error as unknown as Error).message}`).not.toContain(secret);
    }
  });
});

describe('a sealed store', () => {
  it('is refused at once over what is no store, in the words of createAgent', () => {
    const { checkpoints } = memoryStore();
    for (const store of notStores(checkpoints)) {
      const [name, given, details] = store;
      const error = thrownBy(() => encryptedStore(given as AgentStore, [newKey]));
      const { option, got, want } = details;
      expect(error, name).toMatchObject({
        code: 'LOUSHO_CONFIG_INVALID',
        details: { option: `store${option}`, got, want },
      });
      // An agent would have said the same.
      const provider = mockModel([]);
      const ofAgent = thrownBy(() => createAgent({ provider, store: given as AgentStore }));
      expect((error as Error).message, name).toBe((ofAgent as Error).message);
    }
  });

  it('has the methods that the store below has, and no others', () => {
    const three = encryptedStore(threeMethodStore(), [newKey]);
    expect(methodsOf(three)).toEqual(['checkpoints']);
    expect(methodsOf(three.checkpoints)).toEqual(['delete', 'load', 'save']);
    const below = memoryStore();
    const full = encryptedStore(below, [newKey]);
    expect(methodsOf(full)).toEqual(methodsOf(below));
    expect(methodsOf(full.checkpoints)).toEqual(methodsOf(below.checkpoints));
    expect(full.checkpoints.claims).toEqual(below.checkpoints.claims);
    expect(Object.hasOwn(full, Symbol.asyncDispose)).toBe(true);
  });

  it('gives the store below the saves of a run in the order of the calls, however long each takes to seal', async () => {
    const below = textStore();
    let waits = 0;
    const { checkpoints } = sealedStore(below.store, [newKey], {
      ...platformCrypto,
      async encrypt(...args) {
        // The more is sealed later, the sooner it would be done.
        for (let turn = (waits += 1) < 20 ? 50 : 0; turn > 0; turn -= 1) await Promise.resolve();
        return platformCrypto.encrypt(...args);
      },
    });
    const long = inProgress({
      messages: appendFrozen(
        [],
        Array.from({ length: 20 }, () => says('long')),
      ),
    });
    const states = [long, inProgress(), nextStep(inProgress(), 'more')];
    await Promise.all(states.map(async (state) => checkpoints?.save('order-7', state)));
    const kept = await checkpoints?.history?.('order-7');
    expect(kept?.map(({ checkpoint }) => checkpoint).reverse()).toEqual(states);
  });

  it('closes the store below behind the saves that are under way', async () => {
    const below = memoryStore();
    const sealed = encryptedStore(below, [newKey]);
    const saving = sealed.checkpoints.save('order-7', inProgress());
    await sealed.close();
    await saving;
    await expect(sealed.checkpoints.load('order-7')).rejects.toMatchObject({ code: 'LOUSHO_STORE_CLOSED' });
  });

  it('goes on after a save that failed', async () => {
    const below = memoryStore();
    let isBroken = true;
    const checkpoints: CheckpointStore = {
      ...below.checkpoints,
      save: async (id, checkpoint) => {
        if (isBroken) throw new Error('the disk is full');
        await below.checkpoints.save(id, checkpoint);
      },
    };
    const sealed = encryptedStore({ checkpoints }, [newKey]);
    const state = inProgress();
    await expect(sealed.checkpoints?.save('order-7', state)).rejects.toThrow('the disk is full');
    isBroken = false;
    await sealed.checkpoints?.save('order-7', nextStep(state, 'more'));
    expect(await sealed.checkpoints?.load('order-7')).toEqual(nextStep(state, 'more'));
  });

  it('refuses the sealed form of a later release and leaves it as it is', async () => {
    const below = textStore();
    const sealed = encryptedStore(below.store, [newKey]);
    await sealed.checkpoints?.save('order-7', inProgress());
    const later = (below.saves.get('order-7') ?? []).map((text) =>
      text.replaceAll('lousho-sealed-1.', 'lousho-sealed-2.'),
    );
    below.saves.set('order-7', later);
    await expect(sealed.checkpoints?.load('order-7')).rejects.toMatchObject({
      code: 'LOUSHO_STORE_VERSION_UNSUPPORTED',
      details: { found: 2, supported: 1 },
    });
    expect(below.saves.get('order-7')).toEqual(later);
  });

  it('gives frozen values, so that nothing it remembers can be changed', async () => {
    const sealed = encryptedStore(textStore().store, [newKey]);
    await saveEverything(sealed);
    expect(isDeepFrozen(await sealed.checkpoints?.load('order-7'))).toBe(true);
    expect(isDeepFrozen((await sealed.checkpoints?.history?.('order-7'))?.[0]?.checkpoint)).toBe(true);
    expect(isDeepFrozen(await sealed.approvals?.load('a-1'))).toBe(true);
    expect(isDeepFrozen(await sealed.sessions?.load('chat-1'))).toBe(true);
  });

  it('carries an agent over a pause that another process decides', async () => {
    const below = memoryStore();
    const charged: unknown[] = [];
    const first = payingAgent(encryptedStore(below, [newKey]), charged);
    await first.send('Charge 42.00.', { sessionId: 'order-7' });
    const second = payingAgent(encryptedStore(below, [newKey]), charged);
    const [pending] = await second.approvals.list();
    const result = await second.approvals.resolve({ id: pending?.id ?? '', approved: true });
    expect(result.text).toBe('Paid.');
    expect(charged).toEqual([{ cents: 4200 }]);
    expect(JSON.stringify(await below.checkpoints.history('order-7'))).not.toMatch(/charge|4200|Paid/);
  });

  it('lets people decide what waits beside a run of a process that has no key, or another one', async () => {
    const below = memoryStore();
    const charged: unknown[] = [];
    for (const [sessionId, store] of Object.entries({
      'of-no-key': below,
      'of-old-key': encryptedStore(below, [oldKey]),
      'order-7': encryptedStore(below, [newKey]),
    }))
      await payingAgent(store, charged).send('Charge 42.00.', { sessionId });
    const agent = payingAgent(encryptedStore(below, [newKey]), charged);
    const inbox = await agent.approvals.list();
    expect(inbox.map(({ toolName }) => toolName)).toEqual(['charge']);
    const pending = await agent.pending();
    expect(pending.map((run) => [run.sessionId, 'lastError' in run && run.lastError?.code]).sort()).toEqual([
      ['of-no-key', 'LOUSHO_STORE_NOT_SEALED'],
      ['of-old-key', 'LOUSHO_STORE_KEY_UNKNOWN'],
      ['order-7', false],
    ]);
    const result = await agent.approvals.resolve({ id: inbox[0]?.id ?? '', approved: true });
    expect([result.text, charged]).toEqual(['Paid.', [{ cents: 4200 }]]);
  });

  it('does not take a run that an agent on the store below started in clear', async () => {
    const below = memoryStore();
    const agent = payingAgent(encryptedStore(below, [newKey]), []);
    await payingAgent(below, []).send('Charge 42.00.', { sessionId: 'order-8' });
    expect(JSON.stringify(await below.checkpoints.load('order-8'))).toContain('Charge 42.00.');
    await expect(agent.resume('order-8')).rejects.toMatchObject({ code: 'LOUSHO_STORE_NOT_SEALED' });
  });
});

/** It asks before it charges, then says that it did. */
function payingAgent(store: AgentStore, charged: unknown[]): Agent {
  return createAgent({
    provider: mockModel([{ toolCalls: [{ name: 'charge', args: { cents: 4200 } }] }, 'Paid.'], {
      answerBy: 'step',
    }),
    tools: [
      defineTool({
        name: 'charge',
        description: 'Charges the card.',
        input: { type: 'object', properties: { cents: { type: 'number' } } },
        needsApproval: true,
        execute: async (args) => void charged.push(args),
      }),
    ],
    store,
  });
}

async function saveEverything(store: AgentStore): Promise<void> {
  await store.checkpoints?.save('order-7', inProgress());
  await store.checkpoints?.save('order-7', nextStep(inProgress(), 'a secret more'));
  await store.approvals?.save(approvalRecord('a-1', { snapshot: { checkpoints: [] } }));
  await store.sessions?.saveIfRevision(sessionRecord('chat-1'), 0);
}

function finished(before: ReturnType<typeof inProgress>): Checkpoint {
  const { status: _status, lastError: _error, ...rest } = before;
  return { ...rest, status: 'finished', finishReason: 'max-steps' };
}

function methodsOf(part: object | undefined): string[] {
  return Object.keys(part ?? {})
    .filter((key) => key !== 'claims')
    .sort();
}

function thrownBy(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}
