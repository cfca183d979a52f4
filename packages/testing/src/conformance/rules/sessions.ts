/** What a store with transcripts of sessions promises: whole records, saved by compare-and-swap. */
import { deepFreeze, type SessionRecord, type SessionStore } from '@lousho/contract';
import { awaitedLater, outcomeOf } from '../expectations.ts';
import { Mismatch, NotApplicable } from '../failure.ts';
import { ofEveryStore, type Rule } from '../rule.ts';
import { beginRun, sessionRecord } from '../sample-runs.ts';
import type { World } from '../world.ts';
import { STRANGE_VALUES } from './unknown-fields.ts';

export const sessionRules: readonly Rule[] = [
  {
    id: 'S1',
    name: 'sessions/absent-is-nothing',
    rule: '`load` of a session without a record gives `null` or `undefined`.',
    ...ofEveryStore,
    async run(world) {
      const store = await world.open();
      const [a, b] = [await world.sessions(), await world.sessions()];
      await a.saveIfRevision(sessionRecord('chat-1', world.now()), 0);
      await store.checkpoints?.save('chat-2', beginRun(world.now()));
      await store.checkpoints?.save('chat-2.turn-0', beginRun(world.now()));
      for (const handle of [a, b])
        for (const id of ['never-saved', 'chat-2', 'chat', 'Chat-1'])
          await world.expectNothing(() => handle.load(id), `"${id}" has no session record. A run is none.`);
    },
  },
  {
    id: 'S2',
    name: 'sessions/round-trip',
    rule: 'A session comes back equal as JSON, apart from `revision`, with fields that this release does not know.',
    ...ofEveryStore,
    run: saveWholeSessions,
  },
  {
    id: 'S3',
    name: 'sessions/damage-is-an-error',
    rule: "A damaged session is `LOUSHO_CHECKPOINT_CORRUPT` with `record: 'session'`, never an absent one.",
    ...ofEveryStore,
    async run(world) {
      const writer = await world.sessions();
      await writer.saveIfRevision(sessionRecord('chat-1', world.now()), 0);
      await world.settle();
      await world.corrupt('chat-1', 'session');
      const reader = await world.sessions();
      const hint =
        'Check what you read with parseSessionRecord: a conversation that seems empty would be begun anew.';
      await world.expectRefused(async () => reader.load('chat-1'), 'LOUSHO_CHECKPOINT_CORRUPT', hint);
      const { error } = await outcomeOf(async () => reader.load('chat-1'));
      const { record } = (error as { readonly details: { readonly record?: unknown } }).details;
      if (record !== 'session')
        throw new Mismatch({ record: 'session' }, { record }, 'The details say which record it is.');
    },
  },
  {
    id: 'S4',
    name: 'sessions/one-of-many-wins',
    rule: '`saveIfRevision` stores, and gives `true`, only when the stored revision is `expectedRevision`: of callers that expect the same one, exactly one wins.',
    ...ofEveryStore,
    run: raceCommits,
  },
  {
    id: 'S5',
    name: 'sessions/revision-is-counted',
    rule: '`saveIfRevision` stores the revision `expectedRevision + 1`, whatever `record.revision` says.',
    ...ofEveryStore,
    async run(world) {
      const [a, b] = [await world.sessions(), await world.sessions()];
      for (const [expected, said] of [0, 99, -1, 0].entries()) {
        const record = sessionRecord('chat-1', world.now(), { revision: said, turn: expected });
        await world.expectTrue(
          () => (expected % 2 === 0 ? a : b).saveIfRevision(record, expected),
          'The revision was the stored one.',
        );
        for (const handle of [a, b])
          await world.expectEqual(
            async () => (await handle.load('chat-1'))?.revision,
            expected + 1,
            'The store counts, not the caller.',
          );
      }
    },
  },
  {
    id: 'S6',
    name: 'sessions/refused-changes-nothing',
    rule: '`saveIfRevision` that gives `false` changed nothing.',
    ...ofEveryStore,
    async run(world) {
      const [a, b] = [await world.sessions(), await world.sessions()];
      const record = sessionRecord('chat-1', world.now());
      await world.expectTrue(() => a.saveIfRevision(record, 0), 'No session is stored: its revision is 0.');
      await world.settle();
      const other = sessionRecord('chat-1', world.now(), {
        turn: 9,
        messages: [{ role: 'user', content: 'Other.' }],
      });
      for (const handle of [a, b])
        for (const expected of [0, 2, 7, -1])
          await world.expectFalse(
            () => handle.saveIfRevision(other, expected),
            `The stored revision is 1, not ${expected}.`,
          );
      await world.expectFalse(
        () => a.saveIfRevision(sessionRecord('chat-2', world.now()), 1),
        'No session is stored: its revision is 0.',
      );
      await world.settle();
      for (const handle of [a, b]) {
        await world.expectEqual(
          () => handle.load('chat-1'),
          { ...record, revision: 1 },
          'A save that was refused left something.',
        );
        await world.expectNothing(() => handle.load('chat-2'), 'A save that was refused stored something.');
      }
    },
  },
  {
    id: 'S7',
    name: 'sessions/delete',
    rule: 'After `delete` of a session resolves, it has no record and its revision is 0 again; an unknown or damaged one is fine.',
    ...ofEveryStore,
    run: deleteSessions,
  },
  {
    id: 'S8',
    name: 'sessions/list',
    rule: '`list` of sessions gives every id that has a record, once.',
    ...ofEveryStore,
    async run(world) {
      const store = await world.open();
      const [writer, reader] = [await world.sessions(), await world.sessions()];
      if (reader.list === undefined) throw new NotApplicable('the sessions part has no list');
      const list = async (handle: SessionStore): Promise<readonly string[]> =>
        [...((await handle.list?.()) ?? [])].sort();
      for (const handle of [writer, reader])
        await world.expectEqual(() => list(handle), [], 'Nothing was saved yet.');
      for (const id of ['chat-1', 'chat-2', 'Chat-1'])
        await writer.saveIfRevision(sessionRecord(id, world.now()), 0);
      await writer.saveIfRevision(sessionRecord('chat-1', world.now(), { turn: 2 }), 1);
      await world.settle();
      await reader.delete('chat-2');
      await store.checkpoints?.save('order-1', beginRun(world.now()));
      await store.checkpoints?.save('chat-3.turn-0', beginRun(world.now()));
      for (const handle of [writer, reader, await world.sessions()])
        await world.expectEqual(
          () => list(handle),
          ['Chat-1', 'chat-1'],
          'Runs and deleted sessions are none.',
        );
    },
  },
  {
    id: 'S9',
    name: 'sessions/named-errors',
    rule: 'The sessions part throws only what C3 names.',
    ...ofEveryStore,
    run: provokeErrors,
  },
];

async function saveWholeSessions(world: World): Promise<void> {
  const [a, b] = [await world.sessions(), await world.sessions()];
  const base = sessionRecord('chat-1', world.now());
  const hint = 'Store the JSON text of the record as it is, with another revision.';
  const records: SessionRecord[] = [
    base,
    deepFreeze({ ...base, turn: 2, businessState: STRANGE_VALUES, ...{ future: STRANGE_VALUES } }),
    deepFreeze({
      ...base,
      turn: 3,
      messages: [...base.messages, { role: 'user', content: 'More.' }],
      inputIds: ['input-1', 'input-2'],
    }),
    // A conversation that was cleared or cut.
    deepFreeze({ ...base, turn: 4, messages: base.messages.slice(1), inputIds: [] }),
  ];
  for (const [revision, record] of records.entries()) {
    const given = structuredClone(record) as { turn: number };
    const handle = revision % 2 === 0 ? a : b;
    const saving = awaitedLater(handle.saveIfRevision(given as SessionRecord, revision));
    given.turn = 99;
    if ((await world.done(saving)) !== true)
      throw new Mismatch(true, false, 'The revision was the stored one.');
    for (const handle of [a, b, await world.sessions()])
      await world.expectEqual(() => handle.load('chat-1'), { ...record, revision: revision + 1 }, hint);
  }
}

const CALLERS = 16;
const ROUNDS = 8;

async function raceCommits(world: World): Promise<void> {
  const handles: SessionStore[] = [];
  while (handles.length < 4) handles.push(await world.sessions());
  const hint = 'Compare the revision in the step that writes: a transaction, or a write on condition.';
  // Writes that others cannot see yet are no basis for a count: an eventual store is asked one after the other.
  const isEventual = world.claims.consistency === 'eventual';
  for (let round = 0; round < (isEventual ? 1 : ROUNDS); round += 1) {
    const callers = Array.from({ length: isEventual ? handles.length : CALLERS }, (_none, index) => index);
    const outcomes: { readonly turn: number; readonly saved: unknown }[] = [];
    const ask = async (index: number): Promise<void> => {
      const turn = 100 * (round + 1) + index;
      const record = sessionRecord('chat-1', world.now(), { turn });
      outcomes.push({ turn, saved: await handles[index % handles.length]?.saveIfRevision(record, round) });
      if (isEventual) await world.settle();
    };
    if (isEventual) for (const index of callers) await ask(index);
    else await world.done(Promise.all(callers.map(ask)));
    const winners = outcomes.filter(({ saved }) => saved === true);
    const losers = outcomes.filter(({ saved }) => saved === false);
    // Each of those who lost was answered too.
    if (winners.length !== 1 || losers.length !== callers.length - 1)
      throw new Mismatch(
        { true: 1, false: callers.length - 1 },
        { true: winners.length, false: losers.length },
        hint,
      );
    for (const handle of handles)
      await world.expectEqual(
        async () => (await handle.load('chat-1'))?.turn,
        winners[0]?.turn,
        'What the one who got true had given must be what is stored.',
      );
  }
}

async function deleteSessions(world: World): Promise<void> {
  const [a, b] = [await world.sessions(), await world.sessions()];
  const unknown = await outcomeOf(() => a.delete('never-saved'));
  if (unknown.error !== undefined)
    throw new Mismatch('delete of an unknown session resolves', unknown.error, 'Deleting twice is no error.');
  const record = sessionRecord('chat-1', world.now());
  for (const revision of [0, 1]) {
    await a.saveIfRevision(record, revision);
    await world.expectEqual(
      async () => (await b.load('chat-1'))?.revision,
      revision + 1,
      'The save itself is not visible.',
    );
  }
  await b.delete('chat-1');
  await world.settle();
  for (const handle of [a, b, await world.sessions()])
    await world.expectNothing(() => handle.load('chat-1'), 'It was deleted.');
  await world.expectFalse(() => a.saveIfRevision(record, 2), 'After a delete the revision is 0 again.');
  await world.expectTrue(() => a.saveIfRevision(record, 0), 'After a delete the revision is 0 again.');
  await world.expectEqual(() => b.load('chat-1'), { ...record, revision: 1 }, 'It begins anew.');
  if (world.storage.corruptSession === undefined) return;
  await world.settle();
  await world.corrupt('chat-1', 'session');
  const other = await world.sessions();
  const damaged = await outcomeOf(() => other.delete('chat-1'));
  if (damaged.error !== undefined)
    throw new Mismatch('delete of a damaged session resolves', damaged.error, 'Delete without reading it.');
  await world.expectNothing(() => other.load('chat-1'), 'Something of the damaged record was left.');
}

async function provokeErrors(world: World): Promise<void> {
  const sessions = await world.sessions();
  const expect = (what: string, call: () => Promise<unknown> | undefined): Promise<void> =>
    world.expectNamedErrors(`sessions.${what}`, async () => call());
  for (const id of ['never-saved', '', '../evil', 'a b', 'x'.repeat(400)]) {
    await expect(`load("${id}")`, () => sessions.load(id));
    await expect(`saveIfRevision of "${id}"`, () =>
      sessions.saveIfRevision(sessionRecord(id, world.now()), 1),
    );
    await expect(`delete("${id}")`, () => sessions.delete(id));
  }
  for (const revision of [-1, 1.5, Number.NaN])
    await expect(`saveIfRevision expecting ${revision}`, () =>
      sessions.saveIfRevision(sessionRecord('chat-1', world.now()), revision),
    );
  await expect('list()', () => sessions.list?.());
}
