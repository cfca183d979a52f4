/** A save seals and stores what is new, however long the transcript is: counted in seals, and in bytes in a SQLite file. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { appendFrozen, deepFreeze, turnCheckpointId, type AgentStore } from '@lousho/contract';
import { SqliteStore } from '@lousho/store-sqlite';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { platformCrypto, type CryptoPort } from '../src/crypto-ports.ts';
import { sealedStore } from '../src/encrypted-store.ts';
import { testKey } from './support/keys.ts';
import { inProgress, nextStep, says, sessionRecord, transcript } from './support/records.ts';
import { textStore } from './support/text-store.ts';

const keys = [testKey('2026-01')];
const SAVES = 6;

it('seals one message and one header a save, and stores as many bytes, at 10, 1,000 and 5,000 messages', async () => {
  const costs = [];
  for (const count of [10, 1_000, 5_000]) {
    const { store, file, counter } = givenStore();
    let state = inProgress({ messages: transcript(count) });
    await store.checkpoints?.save('order-7', state);
    const first = counter.seals;
    const seals = [];
    for (let save = 0; save < SAVES; save += 1) {
      counter.seals = 0;
      await store.checkpoints?.save('order-7', (state = nextStep(state, `one more ${save}`)));
      seals.push(counter.seals);
    }
    const events = eventSizes(file);
    costs.push({ extra: first - count, seals, bytes: events.slice(1).map((size) => Math.ceil(size / 100)) });
    await store.close?.();
  }
  const [atTen, ...others] = costs;
  expect(atTen?.seals).toEqual(Array.from({ length: SAVES }, () => 2));
  // Facts, inputs, held input, an early result, the state and the header.
  expect(atTen?.extra).toBe(6);
  expect(Math.max(...(atTen?.bytes ?? []))).toBeLessThan(20);
  for (const cost of others) expect(cost).toEqual(atTen);
}, 60_000);

it('seals what is new when another process goes on with the run', async () => {
  for (const count of [10, 1_000]) {
    const { store, file } = givenStore();
    const state = inProgress({ messages: transcript(count) });
    await store.checkpoints?.save('order-7', state);
    await store.close?.();
    const other = givenStore(file);
    const loaded = await other.store.checkpoints?.load('order-7');
    if (loaded?.status !== 'in-progress') expect.fail('it was in progress');
    await other.store.checkpoints?.save('order-7', nextStep(loaded, 'one more'));
    expect(other.counter.seals).toBe(2);
    expect(eventSizes(file)[1]).toBeLessThan(2_000);
  }
});

it('seals what is new for a caller that gives an unfrozen copy each time, over a store that copies too', async () => {
  const below = textStore();
  const counter = countingCrypto();
  const { checkpoints } = sealedStore(below.store, keys, counter);
  let state = inProgress({ messages: transcript(50) });
  await checkpoints?.save('order-7', structuredClone(state));
  for (let save = 0; save < SAVES; save += 1) {
    counter.seals = 0;
    await checkpoints?.save('order-7', structuredClone((state = nextStep(state, `one more ${save}`))));
    expect(counter.seals).toBe(2);
  }
  const prefixes = (below.saves.get('order-7') ?? []).map((text) =>
    JSON.stringify((JSON.parse(text) as { messages: unknown[] }).messages.slice(0, 50)),
  );
  expect(new Set(prefixes).size).toBe(1);
});

it('stores the turns of a session without sealing or copying the conversation again', async () => {
  const costs = [];
  for (const count of [10, 1_000]) {
    const { store, file, counter } = givenStore();
    await store.sessions?.saveIfRevision(sessionRecord('chat-1', { messages: transcript(count) }), 0);
    const session = await store.sessions?.load('chat-1');
    if (!session) expect.fail('it was saved');
    const id = turnCheckpointId('chat-1', 3);
    const begun = inProgress({ messages: appendFrozen(session.messages, [says('a question')]) });
    await store.checkpoints?.save(id, begun);
    const answered = nextStep(begun, 'an answer');
    await store.checkpoints?.save(id, answered);
    counter.seals = 0;
    await store.sessions?.saveIfRevision(deepFreeze({ ...session, messages: answered.messages }), 1);
    costs.push({
      seals: counter.seals,
      bytes: eventSizes(file)
        .slice(1)
        .map((size) => Math.ceil(size / 100)),
    });
    expect((await store.sessions?.load('chat-1'))?.messages).toEqual(answered.messages);
  }
  expect(costs[1]).toEqual(costs[0]);
  // Only the header of the session: its two new messages were sealed for the turn.
  expect(costs[0]?.seals).toBe(1);
});

it('opens each message once for a history whose entries share them', async () => {
  const below = textStore();
  const counter = countingCrypto();
  const { checkpoints } = sealedStore(below.store, keys, counter);
  let state = inProgress({ messages: transcript(100) });
  for (let save = 0; save < 20; save += 1)
    await checkpoints?.save('order-7', (state = nextStep(state, `one more ${save}`)));
  counter.opens = 0;
  expect(await checkpoints?.history?.('order-7')).toHaveLength(20);
  // Beside the messages an entry has a header, facts, inputs, held input, an early result and the state.
  expect(counter.opens).toBe(120 + 20 * 6);
});

interface CountingCrypto extends CryptoPort {
  seals: number;
  opens: number;
}

function countingCrypto(): CountingCrypto {
  const counter: CountingCrypto = {
    ...platformCrypto,
    seals: 0,
    opens: 0,
    async encrypt(...args) {
      counter.seals += 1;
      return platformCrypto.encrypt(...args);
    },
    async decrypt(...args) {
      counter.opens += 1;
      return platformCrypto.decrypt(...args);
    },
  };
  return counter;
}

function givenStore(file = tempFile()): { store: AgentStore; file: string; counter: CountingCrypto } {
  const counter = countingCrypto();
  const store = sealedStore(new SqliteStore(file, { durability: 'process' }), keys, counter);
  onTestFinished(() => store.close?.());
  return { store, file, counter };
}

function tempFile(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-sealed-'));
  onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, 'runs.db');
}

/** Bytes of each save, in the order of the logs. */
function eventSizes(file: string): number[] {
  const database = new Database(file, { readonly: true });
  const sizes = database.prepare('SELECT length(data) FROM events ORDER BY k').pluck().all() as number[];
  database.close();
  return sizes;
}
