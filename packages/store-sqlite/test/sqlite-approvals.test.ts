/** The inbox of pauses: every record once, oldest first, and taken out by exactly one. */
import { isDeepFrozen } from '@lousho/contract';
import { expect, it } from 'vitest';
import { approvalRecord, inProgress } from './support/fixtures.ts';
import { openStore, tempFile } from './support/temp-store.ts';

it('gives back what was saved, frozen, with the fields that this release does not know', async () => {
  const file = tempFile();
  const record = {
    ...approvalRecord('a-1', {
      sessionId: 'chat',
      args: { amount: 12.5, ['__proto__']: null },
      snapshot: { checkpoints: [{ checkpointId: 'order-7', checkpoint: inProgress() }] },
    }),
    mood: 'blue',
  };
  await openStore(file).approvals.save(record);
  const loaded = await openStore(file).approvals.load('a-1');
  expect(loaded).toEqual(record);
  expect(isDeepFrozen(loaded)).toBe(true);
});

it('is not changed by what happens to a record after it was given', async () => {
  const { approvals } = openStore();
  const args = { amount: 1 };
  const saving = approvals.save({ ...approvalRecord('a-1'), args });
  args.amount = 2;
  await saving;
  expect((await approvals.load('a-1'))?.args).toEqual({ amount: 1 });
});

it('lists the oldest first, and those of one session when asked', async () => {
  const { approvals } = openStore();
  await approvals.save(approvalRecord('late', { createdAt: '2026-01-03T00:00:00.000Z', sessionId: 'chat' }));
  await approvals.save(approvalRecord('b', { createdAt: '2026-01-02T00:00:00.000Z' }));
  await approvals.save(approvalRecord('a', { createdAt: '2026-01-02T00:00:00.000Z', sessionId: 'chat' }));
  await approvals.save(approvalRecord('early', { createdAt: '2026-01-01T00:00:00.000Z' }));
  expect((await approvals.list()).map(({ id }) => id)).toEqual(['early', 'a', 'b', 'late']);
  expect((await approvals.list({ sessionId: 'chat' })).map(({ id }) => id)).toEqual(['a', 'late']);
  expect(await approvals.list({ sessionId: 'Chat' })).toEqual([]);
});

it('replaces a record that is saved again', async () => {
  const { approvals } = openStore();
  await approvals.save(approvalRecord('a-1', { toolName: 'charge' }));
  await approvals.save(approvalRecord('a-1', { toolName: 'refund', checkpointId: 'order-8' }));
  expect(await approvals.list()).toEqual([
    approvalRecord('a-1', { toolName: 'refund', checkpointId: 'order-8' }),
  ]);
});

it('is taken out by exactly one of many', async () => {
  const file = tempFile();
  const [one, two] = [openStore(file).approvals, openStore(file).approvals];
  await one.save(approvalRecord('a-1'));
  const takers = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : two).delete('a-1'));
  expect((await Promise.all(takers)).filter(Boolean)).toHaveLength(1);
  expect(await one.load('a-1')).toBeNull();
});

it('finds nothing under an id that never was one', async () => {
  const { approvals } = openStore();
  expect(await approvals.load('../bogus id!')).toBeNull();
  expect(await approvals.delete('../bogus id!')).toBe(false);
});
