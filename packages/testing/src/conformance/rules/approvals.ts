/** What a store with an inbox promises: the records that it was given, in order, and one caller that removed each. */
import { deepFreeze, type ApprovalRecord, type ApprovalStore } from '@lousho/contract';
import { awaitedLater, isNothing, outcomeOf } from '../expectations.ts';
import { Mismatch } from '../failure.ts';
import { ofEveryStore, type Rule } from '../rule.ts';
import { approvalRecord, beginRun, pauseRun } from '../sample-runs.ts';
import type { World } from '../world.ts';
import { STRANGE_VALUES } from './unknown-fields.ts';

const ID = 'order-1.apr-run00001-1-0';

export const approvalRules: readonly Rule[] = [
  {
    id: 'A1',
    name: 'approvals/pasted-ids',
    rule: 'The approvals part throws only what C3 names, and a malformed id given to `load` or `delete` is an unknown one: people paste ids.',
    ...ofEveryStore,
    async run(world) {
      const approvals = await world.approvals();
      await approvals.save(approvalRecord(ID, world.now()));
      const hint = 'Somebody pasted a wrong id: that is an unknown approval, not an error of the store.';
      for (const id of ['', '..', '../evil', 'a b', ' ', 'ä', `${ID} `, 'x'.repeat(400), 'a\u0000b']) {
        const loaded = await world.done(outcomeOf(() => approvals.load(id)));
        if (loaded.error !== undefined || !isNothing(loaded.value))
          throw new Mismatch(`load(${JSON.stringify(id)}) gives nothing`, loaded, hint);
        const removed = await world.done(outcomeOf(() => approvals.delete(id)));
        if (removed.value !== false)
          throw new Mismatch(`delete(${JSON.stringify(id)}) gives false`, removed, hint);
        await world.expectNamedErrors(`approvals.save of the id ${JSON.stringify(id)}`, async () => {
          await approvals.save(approvalRecord(id, world.now()));
          await approvals.delete(id);
        });
      }
      for (const id of ['never-saved', 'order-9.apr-run00001-1-0']) {
        await world.expectNamedErrors(`approvals.load("${id}")`, async () => approvals.load(id));
        await world.expectNamedErrors(`approvals.delete("${id}")`, async () => approvals.delete(id));
      }
      await world.expectNamedErrors('approvals.list of an unknown session', async () =>
        approvals.list({ sessionId: '../evil' }),
      );
    },
  },
  {
    id: 'A2',
    name: 'approvals/visible-on-every-handle',
    rule: 'After `save` of an approval resolves, every handle loads and lists this record, and no other with its id.',
    ...ofEveryStore,
    async run(world) {
      const [a, b] = [await world.approvals(), await world.approvals()];
      const first = approvalRecord(ID, world.now());
      const second = approvalRecord(ID, world.now(), { args: { amount: 20 }, expiresAt: world.now(60_000) });
      const { sessionId: _session, principal: _principal, ...third } = second;
      const hint = 'Replace the record whole, and show it to every handle.';
      for (const [index, record] of [first, second, third].entries()) {
        await (index === 1 ? b : a).save(record);
        for (const handle of [a, b, await world.approvals()]) {
          await world.expectEqual(() => handle.load(ID), record, hint);
          await world.expectEqual(() => handle.list(), [record], hint);
        }
      }
      const hintOfSession = 'The record names no session any more.';
      for (const handle of [a, b])
        await world.expectEqual(() => handle.list({ sessionId: 'chat-1' }), [], hintOfSession);
    },
  },
  {
    id: 'A3',
    name: 'approvals/round-trip',
    rule: 'An approval comes back equal as JSON, with its snapshot and with fields that this release does not know.',
    ...ofEveryStore,
    run: saveWholeRecords,
  },
  {
    id: 'A4',
    name: 'approvals/absent-is-nothing',
    rule: '`load` of an unknown approval gives `null` or `undefined`.',
    ...ofEveryStore,
    async run(world) {
      const [a, b] = [await world.approvals(), await world.approvals()];
      await a.save(approvalRecord(ID, world.now()));
      for (const handle of [a, b])
        for (const id of [
          'order-1',
          'order-1.apr-run00001-1-1',
          'order-1.apr-run00001-1',
          'ORDER-1.apr-run00001-1-0',
        ])
          await world.expectNothing(() => handle.load(id), `"${id}" was never saved.`);
    },
  },
  {
    id: 'A5',
    name: 'approvals/damage-is-an-error',
    rule: '`load` of a damaged approval is `LOUSHO_CHECKPOINT_CORRUPT`.',
    ...ofEveryStore,
    async run(world) {
      const writer = await world.approvals();
      await writer.save(approvalRecord(ID, world.now()));
      await world.settle();
      await world.corrupt(ID, 'approval');
      const reader = await world.approvals();
      const hint =
        'Check what you read with parseApprovalRecord, and a checksum where text may be cut or changed.';
      await world.expectRefused(async () => reader.load(ID), 'LOUSHO_CHECKPOINT_CORRUPT', hint);
    },
  },
  {
    id: 'A6',
    name: 'approvals/oldest-first',
    rule: '`list` of approvals puts the oldest `createdAt` first, equal times in the order of their ids; `sessionId` keeps those that name it.',
    ...ofEveryStore,
    run: listInOrder,
  },
  {
    id: 'A7',
    name: 'approvals/damage-is-left-out',
    rule: '`list` of approvals leaves a damaged one out; the others are listed as ever.',
    ...ofEveryStore,
    async run(world) {
      const writer = await world.approvals();
      const records = ['a-1', 'a-2', 'a-3'].map((id) => approvalRecord(id, world.now()));
      for (const record of records) await writer.save(record);
      await world.settle();
      await world.corrupt('a-2', 'approval');
      const reader = await world.approvals();
      const hint = 'One damaged record must not hide what other people wait for.';
      await world.expectEqual(() => reader.list(), [records[0], records[2]], hint);
      await world.expectEqual(() => reader.list({ sessionId: 'chat-1' }), [records[0], records[2]], hint);
    },
  },
  {
    id: 'A8',
    name: 'approvals/one-caller-removed-it',
    rule: '`delete` of an approval gives `true` to exactly one caller, whose call removed it; all others, and an unknown id, get `false`.',
    ...ofEveryStore,
    run: raceDeletes,
  },
  {
    id: 'A9',
    name: 'approvals/deleted-is-gone',
    rule: 'After `delete` of an approval resolves, no handle loads or lists it.',
    ...ofEveryStore,
    async run(world) {
      const [a, b] = [await world.approvals(), await world.approvals()];
      const [first, second] = [
        approvalRecord(ID, world.now()),
        approvalRecord('order-2.apr-run00001-1-0', world.now()),
      ];
      for (const record of [first, second]) await a.save(record);
      for (const handle of [a, b])
        await world.expectEqual(() => handle.list(), [first, second], 'Both were saved.');
      await b.delete(ID);
      const hint = 'It must be gone on every handle, also on those that had listed it.';
      for (const handle of [a, b, await world.approvals()]) {
        await world.expectNothing(() => handle.load(ID), hint);
        await world.expectEqual(() => handle.list(), [second], hint);
        await world.expectEqual(() => handle.list({ sessionId: 'chat-1' }), [second], hint);
      }
    },
  },
];

async function saveWholeRecords(world: World): Promise<void> {
  const [writer, reader] = [await world.approvals(), await world.approvals()];
  const paused = pauseRun(beginRun(world.now()), 'plain', world.now());
  const records: ApprovalRecord[] = [
    approvalRecord('plain', world.now()),
    approvalRecord('question', world.now(), {
      kind: 'question',
      question: { text: 'Which edition?', options: ['first', 'second'], allowFreeText: true },
      subagentPath: ['buyer'],
    }),
    approvalRecord('with-snapshot', world.now(), {
      snapshot: {
        checkpoints: [{ checkpointId: 'order-1', checkpoint: paused }],
        remainingToolCalls: [
          { type: 'tool-call', toolCallId: 'call_2', toolName: 'ship', args: STRANGE_VALUES },
        ],
      },
    }),
    deepFreeze({
      ...approvalRecord('unknown-fields', world.now(), { args: STRANGE_VALUES }),
      ...{ future: STRANGE_VALUES },
    }),
  ];
  for (const record of records) await writer.save(record);
  const hint = 'Store the JSON text of the record as it is.';
  for (const handle of [writer, reader]) {
    for (const record of records) await world.expectEqual(() => handle.load(record.id), record, hint);
    await world.expectEqual(
      async () => (await handle.list()).length,
      records.length,
      'All of them are listed.',
    );
  }
  // What was given and returned is the store's alone, as C13 has it.
  const given = structuredClone(records[0] as ApprovalRecord) as { toolName: string };
  const saving = awaitedLater(writer.save(given as ApprovalRecord));
  given.toolName = 'changed';
  await world.done(saving);
  await world.expectEqual(
    () => reader.load('plain'),
    records[0],
    'Somebody changed the record that had been given.',
  );
}

async function listInOrder(world: World): Promise<void> {
  const [writer, reader] = [await world.approvals(), await world.approvals()];
  const at = (minutes: number): string => world.now(-60_000 * minutes);
  // Saved in another order than their times. "Z" comes before "a", as the characters do.
  const records = [
    approvalRecord('middle', at(20), { sessionId: 'chat-2' }),
    approvalRecord('a', at(10)),
    approvalRecord('oldest', at(30)),
    approvalRecord('Z', at(10), { sessionId: 'chat-2' }),
    approvalRecord('newest', at(0)),
    approvalRecord('b', at(10)),
  ];
  for (const record of records) await writer.save(record);
  const idsOf = async (store: ApprovalStore, sessionId?: string): Promise<readonly string[]> =>
    (await store.list(sessionId === undefined ? undefined : { sessionId })).map(({ id }) => id);
  for (const handle of [writer, reader]) {
    const hint = 'Sort by createdAt, then by id.';
    await world.expectEqual(() => idsOf(handle), ['oldest', 'middle', 'Z', 'a', 'b', 'newest'], hint);
    await world.expectEqual(() => idsOf(handle, 'chat-1'), ['oldest', 'a', 'b', 'newest'], hint);
    await world.expectEqual(() => idsOf(handle, 'chat-2'), ['middle', 'Z'], hint);
    await world.expectEqual(() => idsOf(handle, 'chat'), [], '`sessionId` is the whole id.');
  }
}

const CALLERS = 16;
const ROUNDS = 8;

async function raceDeletes(world: World): Promise<void> {
  const handles: ApprovalStore[] = [];
  while (handles.length < 4) handles.push(await world.approvals());
  const hint = 'Ask the delete itself whether it removed something; a look before it is not enough.';
  // Writes that others cannot see yet are no basis for a count: an eventual store is asked one after the other.
  const isEventual = world.claims.consistency === 'eventual';
  for (let round = 0; round < ROUNDS; round += 1) {
    const id = `order-${round}.apr-run00001-1-0`;
    await handles[0]?.save(approvalRecord(id, world.now()));
    await world.settle();
    const removed: unknown[] = [];
    const ask = async (index: number): Promise<void> => {
      removed.push(await handles[(round + index) % handles.length]?.delete(id));
      if (isEventual) await world.settle();
    };
    const callers = Array.from({ length: isEventual ? handles.length : CALLERS }, (_none, index) => index);
    if (isEventual) for (const index of callers) await ask(index);
    else await world.done(Promise.all(callers.map(ask)));
    const count = (value: boolean): number => removed.filter((outcome) => outcome === value).length;
    const [trues, falses] = [count(true), count(false)];
    // Each of those who lost was answered too.
    if (trues !== 1 || falses !== callers.length - 1)
      throw new Mismatch(
        { true: 1, false: callers.length - 1 },
        { true: trues, false: falses, of: removed },
        hint,
      );
    if (isEventual) return;
  }
  for (const handle of handles)
    await world.expectFalse(() => handle.delete('never-saved'), 'An unknown id gives false.');
}
