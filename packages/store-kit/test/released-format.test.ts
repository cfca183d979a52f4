/** What each release sealed is opened for ever: one record of each kind, as the first release wrote it. */
import { readFileSync } from 'node:fs';
import { memoryStore } from '@lousho/store-memory';
import { expect, it } from 'vitest';
import { encryptedStore, importStore } from '../src/index.ts';
import { contentOf, givenStore } from './support/filled-store.ts';
import { testKey } from './support/keys.ts';
import { approvalRecord, inProgress, nextStep, sessionRecord } from './support/records.ts';
import { textStore } from './support/text-store.ts';

const stored = JSON.parse(readFileSync(new URL('./fixtures/sealed-1.json', import.meta.url), 'utf8')) as {
  readonly [kind in 'checkpoint' | 'approval' | 'session']: object;
};

it('opens what the first release sealed', async () => {
  const below = textStore();
  below.saves.set('order-7', [JSON.stringify(stored.checkpoint)]);
  below.approvals.set('a-1', JSON.stringify(stored.approval));
  below.sessions.set('chat-1', JSON.stringify(stored.session));
  const { checkpoints, approvals, sessions } = encryptedStore(below.store, [testKey('2026-01')]);
  expect(await checkpoints?.load('order-7')).toEqual(nextStep(inProgress(), 'a third'));
  expect(await approvals?.load('a-1')).toEqual(approvalRecord('a-1'));
  expect(await sessions?.load('chat-1')).toEqual({ ...sessionRecord('chat-1'), revision: 1 });
});

it('imports what the first release exported', async () => {
  const text = readFileSync(new URL('./fixtures/export-1.jsonl', import.meta.url), 'utf8');
  const to = memoryStore();
  expect((await importStore([text], to)).left).toEqual([]);
  expect(await contentOf(to)).toEqual(await contentOf(await givenStore()));
});
