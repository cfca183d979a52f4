/** Any sequence of calls gives what the reference store gives, which copies everything and knows no trick. */
import { deepFreeze, type AgentStore, type Checkpoint } from '@lousho/contract';
import { manualClock, testPorts } from '@lousho/testing';
import { referenceStore } from '@lousho/testing/crash';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { memoryStore } from '../src/index.ts';
import { approvalRecord, awaitingApproval, finished, inProgress, sessionRecord } from './fixtures.ts';

/** A call that a store must answer as the other one does. */
type Call = readonly [name: string, run: (store: Required<AgentStore>) => unknown];

const HISTORY_LIMIT = 4;
const TTL_MS = 1_000;
const id = fc.constantFrom('a', 'A', 'a.turn-0');
const owner = fc.constantFrom('ann', 'bob');
const status = fc.constantFrom('in-progress' as const, 'awaiting-approval' as const, 'finished' as const);
const savedAt = fc.constantFrom('2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z');
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => deepFreeze(value) as never);

const checkpoint: fc.Arbitrary<Checkpoint> = fc
  .record({ status, savedAt, stepIndex: fc.nat(3), businessState: json, frozen: fc.boolean() })
  .map(({ status: wanted, frozen, ...fields }) => {
    const made = {
      'in-progress': () => inProgress(fields),
      'awaiting-approval': () => awaitingApproval('a.apr-1', fields),
      finished: () => finished(fields),
    }[wanted]();
    return frozen ? made : structuredClone(made);
  });

const call: fc.Arbitrary<Call> = fc.oneof(
  fc.tuple(id, checkpoint).map(([a, b]): Call => ['save', (s) => s.checkpoints.save(a, b)]),
  id.map((a): Call => ['load', (s) => s.checkpoints.load(a)]),
  fc
    .tuple(id, fc.boolean())
    .map(([a, keepHistory]): Call => ['delete', (s) => s.checkpoints.delete(a, { keepHistory })]),
  fc
    .tuple(id, fc.option(fc.nat(6), { nil: undefined }))
    .map(([a, limit]): Call => ['history', (s) => s.checkpoints.history?.(a, { limit })]),
  fc
    .option(fc.oneof(status, fc.array(status)), { nil: undefined })
    .map((wanted): Call => ['list', (s) => s.checkpoints.list?.({ status: wanted })]),
  fc
    .option(fc.oneof(status, fc.array(status)), { nil: undefined })
    .map((wanted): Call => ['listHeaders', (s) => s.checkpoints.listHeaders?.({ status: wanted })]),
  fc
    .tuple(id, owner)
    // The numbers of the fences are each store's own affair; the lease tests look at them.
    .map(([a, o]): Call => [
      'acquire',
      async (s) => Boolean(await s.checkpoints.acquireLease?.(a, o, TTL_MS)),
    ]),
  fc.tuple(id, owner).map(([a, o]): Call => ['renew', (s) => s.checkpoints.renewLease?.(a, o, TTL_MS)]),
  fc.tuple(id, owner).map(([a, o]): Call => ['release', (s) => s.checkpoints.releaseLease?.(a, o)]),
  fc
    .tuple(id, checkpoint, owner)
    .map(([a, b, o]): Call => ['saveIfLeased', (s) => s.checkpoints.saveIfLeased?.(a, b, o)]),
  fc.tuple(fc.constantFrom('p', 'q'), savedAt, id, json).map(([a, createdAt, sessionId, args]): Call => {
    return ['approvals.save', (s) => s.approvals.save(approvalRecord(a, { createdAt, sessionId, args }))];
  }),
  fc.constantFrom('p', 'q', '../p').map((a): Call => ['approvals.load', (s) => s.approvals.load(a)]),
  fc.constantFrom('p', 'q', '../p').map((a): Call => ['approvals.delete', (s) => s.approvals.delete(a)]),
  fc
    .option(id, { nil: undefined })
    .map((sessionId): Call => ['approvals.list', (s) => s.approvals.list({ sessionId })]),
  fc.tuple(fc.constantFrom('c', 'C'), fc.nat(3), json).map(([a, revision, businessState]): Call => {
    const record = sessionRecord(a, { businessState });
    return ['sessions.saveIfRevision', (s) => s.sessions.saveIfRevision(record, revision)];
  }),
  fc.constantFrom('c', 'C').map((a): Call => ['sessions.load', (s) => s.sessions.load(a)]),
  fc.constantFrom('c', 'C').map((a): Call => ['sessions.delete', (s) => s.sessions.delete(a)]),
  fc.constant<Call>(['sessions.list', (s) => s.sessions.list?.()]),
);
const time = fc.constantFrom(1, TTL_MS / 2, TTL_MS);

it('answers every sequence of calls as the reference store does', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof({ arbitrary: call, weight: 9 }, time), { maxLength: 60 }),
      async (steps) => {
        const clock = manualClock();
        const memory = memoryStore({ ports: testPorts(clock), historyLimit: HISTORY_LIMIT });
        const reference = referenceStore({
          clock,
          historyLimit: HISTORY_LIMIT,
        }) as object as Required<AgentStore>;
        for (const step of steps) {
          if (typeof step === 'number') {
            await clock.advance(step);
            continue;
          }
          const [name, run] = step;
          expect([name, await run(memory)]).toEqual([name, await run(reference)]);
        }
      },
    ),
    { numRuns: 500 },
  );
});
