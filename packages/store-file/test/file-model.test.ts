/** Any sequence of calls, spread over two handles on one file, gives what the reference store gives, which copies everything and knows no trick. */
import { appendFrozen, deepFreeze, type AgentStore, type Checkpoint } from '@lousho/contract';
import { manualClock } from '@lousho/testing';
import { referenceStore } from '@lousho/testing/crash';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  approvalRecord,
  awaitingApproval,
  copyOf,
  finished,
  inProgress,
  says,
  sessionRecord,
} from './support/fixtures.ts';
import { openStore, tempFolder } from './support/temp-store.ts';

type FullStore = Required<AgentStore>;
/** A call that a store must answer as the other one does. `latest` is what was saved last for an id, as a run would go on from it. */
type Call = readonly [name: string, run: (store: FullStore, latest: Map<string, Checkpoint>) => unknown];

const HISTORY_LIMIT = 4;
const TTL_MS = 1_000;
const ids = ['a', 'A', 'b.turn-0', 'b'];
const id = fc.constantFrom(...ids);
const owner = fc.constantFrom('ann', 'bob');
const status = fc.constantFrom('in-progress' as const, 'awaiting-approval' as const, 'finished' as const);
const savedAt = fc.constantFrom('2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z');
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => deepFreeze(value) as never);

interface Change {
  readonly status: Checkpoint['status'];
  readonly savedAt: string;
  readonly stepIndex: number;
  readonly businessState: never;
  /** Messages are appended to those saved last, or cut to so many of them first. */
  readonly keep: number;
  readonly append: number;
  /** The very objects saved last, a copy of them, or a run of its own. */
  readonly from: 'saved' | 'copy' | 'nothing';
  readonly isFrozen: boolean;
}
const change: fc.Arbitrary<Change> = fc.record({
  ...{ status, savedAt, stepIndex: fc.nat(3), businessState: json },
  keep: fc.oneof({ weight: 4, arbitrary: fc.constant(99) }, fc.nat(6)),
  append: fc.nat(3),
  from: fc.constantFrom('saved', 'saved', 'saved', 'copy', 'nothing'),
  isFrozen: fc.boolean(),
});

function changed(latest: Map<string, Checkpoint>, runId: string, wanted: Change): Checkpoint {
  const before = wanted.from === 'nothing' ? undefined : latest.get(runId);
  const messages = (wanted.from === 'copy' && before !== undefined ? copyOf(before) : before)?.messages ?? [];
  const kept = wanted.keep < messages.length ? deepFreeze(messages.slice(0, wanted.keep)) : messages;
  const added = Array.from({ length: wanted.append }, (_, n) => says(`${wanted.stepIndex}-${n}`));
  const { savedAt: at, stepIndex, businessState } = wanted;
  const fields = { savedAt: at, stepIndex, businessState, messages: appendFrozen(kept, added) };
  const made = {
    'in-progress': () => inProgress(fields),
    'awaiting-approval': () => awaitingApproval('a.apr-1', fields),
    finished: () => finished(fields),
  }[wanted.status]();
  latest.set(runId, made);
  return wanted.isFrozen ? made : structuredClone(made);
}

const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(id, change)
      .map(([a, wanted]): Call => ['save', (s, latest) => s.checkpoints.save(a, changed(latest, a, wanted))]),
  },
  { weight: 3, arbitrary: id.map((a): Call => ['load', (s) => s.checkpoints.load(a)]) },
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
  fc.tuple(id, change, owner).map(([a, wanted, o]): Call => {
    return ['saveIfLeased', (s, latest) => s.checkpoints.saveIfLeased?.(a, changed(latest, a, wanted), o)];
  }),
  fc.tuple(fc.constantFrom('p', 'q'), savedAt, id, json).map(([a, createdAt, sessionId, args]): Call => {
    return ['approvals.save', (s) => s.approvals.save(approvalRecord(a, { createdAt, sessionId, args }))];
  }),
  fc.constantFrom('p', 'q', '../p').map((a): Call => ['approvals.load', (s) => s.approvals.load(a)]),
  fc.constantFrom('p', 'q', '../p').map((a): Call => ['approvals.delete', (s) => s.approvals.delete(a)]),
  fc
    .option(id, { nil: undefined })
    .map((sessionId): Call => ['approvals.list', (s) => s.approvals.list({ sessionId })]),
  fc.tuple(fc.constantFrom('b', 'B'), fc.nat(3), change).map(([a, revision, wanted]): Call => {
    return [
      'sessions.saveIfRevision',
      (s, latest) => {
        const { messages, businessState = null } = changed(latest, `session ${a}`, wanted);
        return s.sessions.saveIfRevision(sessionRecord(a, { messages, businessState }), revision);
      },
    ];
  }),
  {
    weight: 2,
    // A turn of the session begins with what the session holds.
    arbitrary: json.map((businessState): Call => [
      'turn',
      async (s, latest) => {
        const session = await s.sessions.load('b');
        const messages = appendFrozen(session?.messages ?? [], [says('turn')]);
        const turn = inProgress({ messages: deepFreeze(messages), businessState });
        latest.set('b.turn-0', turn);
        await s.checkpoints.save('b.turn-0', turn);
      },
    ]),
  },
  fc.constantFrom('b', 'B').map((a): Call => ['sessions.load', (s) => s.sessions.load(a)]),
  fc.constantFrom('b', 'B').map((a): Call => ['sessions.delete', (s) => s.sessions.delete(a)]),
  fc.constant<Call>(['sessions.list', (s) => s.sessions.list?.()]),
);

it('answers every sequence of calls as the reference store does', { timeout: 120_000 }, async () => {
  const file = tempFolder();
  const clock = manualClock();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(1), call), { maxLength: 60 }), async (steps) => {
      const options = { ports: { clock }, historyLimit: HISTORY_LIMIT };
      const handles = [openStore(file, options), openStore(file, options)] as const;
      const reference = referenceStore({ clock, historyLimit: HISTORY_LIMIT }) as object as FullStore;
      const [ours, theirs] = [new Map<string, Checkpoint>(), new Map<string, Checkpoint>()];
      try {
        for (const [handle, [name, run]] of steps) {
          const answer = await run(handles[handle] ?? handles[0], ours);
          expect([name, answer]).toEqual([name, await run(reference, theirs)]);
        }
        for (const runId of ids) {
          for (const handle of handles) {
            expect(await handle.checkpoints.load(runId)).toEqual(await reference.checkpoints.load(runId));
            expect(await handle.checkpoints.history(runId)).toEqual(
              await reference.checkpoints.history?.(runId),
            );
          }
        }
      } finally {
        await wipe(handles[0]);
        for (const handle of handles) await handle.close();
      }
    }),
    { numRuns: 150 },
  );
});

async function wipe(store: FullStore): Promise<void> {
  for (const runId of ids) await store.checkpoints.delete(runId);
  for (const session of ['b', 'B']) await store.sessions.delete(session);
  for (const approval of ['p', 'q']) await store.approvals.delete(approval);
}
