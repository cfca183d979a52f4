/** What a store with `list` promises: every run once, in order, while others save, and with damage shown. */
import { checkpointHeader, type Checkpoint, type CheckpointListEntry } from '@lousho/contract';
import { sameJson } from '../difference.ts';
import { assertEqual, awaitedLater } from '../expectations.ts';
import { Mismatch } from '../failure.ts';
import { ofList, type Rule } from '../rule.ts';
import {
  approvalRecord,
  beginRun,
  finishRun,
  grow,
  growingRun,
  pauseRun,
  sessionRecord,
} from '../sample-runs.ts';
import type { ListingStore, World } from '../world.ts';

export const listRules: readonly Rule[] = [
  {
    id: 'Q1',
    name: 'list/each-id-once',
    rule: '`list` has one entry for each id that has a checkpoint, with its latest checkpoint, and nothing else.',
    ...ofList,
    run: listEachOnce,
  },
  {
    id: 'Q2',
    name: 'list/by-status',
    rule: '`list` with `status` keeps the entries whose latest status is the one, or one of those, that it names.',
    ...ofList,
    async run(world) {
      const [writer, reader] = [await world.lists(), await world.lists()];
      const begun = beginRun(world.now());
      // Each run was something else before: only the latest status counts.
      const saves: [string, Checkpoint[]][] = [
        ['executing', [pauseRun(begun, 'executing.apr-run00001-1-0', world.now()), grow(begun, world.now())]],
        ['waiting', [begun, pauseRun(begun, 'waiting.apr-run00001-1-0', world.now())]],
        ['finished', [begun, finishRun(begun, world.now())]],
      ];
      for (const [id, states] of saves) for (const state of states) await writer.save(id, state);
      const hint = 'Filter by the status of the latest checkpoint, on every handle.';
      const expectIds = async (
        status: CheckpointListEntry['status'][] | CheckpointListEntry['status'],
        ids: string[],
      ): Promise<void> => {
        for (const handle of [writer, reader])
          await world.expectEqual(
            async () => idsOf(await handle.list({ status })).sort(),
            ids,
            `${hint} Asked for: ${String(status)}.`,
          );
      };
      await expectIds('in-progress', ['executing']);
      await expectIds('awaiting-approval', ['waiting']);
      await expectIds('finished', ['finished']);
      await expectIds(['in-progress', 'awaiting-approval'], ['executing', 'waiting']);
      await expectIds(['finished', 'in-progress'], ['executing', 'finished']);
      await expectIds([], []);
    },
  },
  {
    id: 'Q3',
    name: 'list/oldest-save-first',
    rule: '`list` puts the oldest save first, equal times in the order of their ids.',
    ...ofList,
    async run(world) {
      const [writer, reader] = [await world.lists(), await world.lists()];
      // Saved in another order than their times. "Z" comes before "a", as the characters do.
      const ages: [string, number][] = [
        ['middle', 20],
        ['a', 10],
        ['oldest', 30],
        ['Z', 10],
        ['newest', 0],
        ['b', 10],
        ['a-1', 10],
      ];
      for (const [id, minutes] of ages) {
        const state = beginRun(world.now(-60_000 * minutes));
        await writer.save(id, minutes % 20 === 10 ? state : finishRun(state, state.savedAt));
      }
      const hint = 'Sort with compareSaves, or give the entries through listCheckpoints(entries, options).';
      const sorted = ['oldest', 'middle', 'Z', 'a', 'a-1', 'b', 'newest'];
      for (const handle of [writer, reader])
        await world.expectEqual(async () => idsOf(await handle.list()), sorted, hint);
      // A run that is saved again moves to its new time.
      await writer.save('oldest', beginRun(world.now(60_000)));
      await world.expectEqual(async () => idsOf(await reader.list()), [...sorted.slice(1), 'oldest'], hint);
    },
  },
  {
    id: 'Q4',
    name: 'list/damage-is-shown',
    rule: 'A damaged record is one entry of `list` with `error`, `checkpoint: null` and the status `in-progress`; the others are listed as ever.',
    ...ofList,
    run: listDamage,
  },
  {
    id: 'Q5',
    name: 'list/while-others-save',
    rule: 'While others save and delete, each entry of `list` is a state that was saved, and what is deleted meanwhile may be left out.',
    ...ofList,
    run: listWhileOthersSave,
  },
  {
    id: 'Q6',
    name: 'list/headers',
    rule: '`listHeaders` gives the entries of `list` in the same order, each with the header of its checkpoint.',
    ...ofList,
    run: listHeaders,
  },
];

function idsOf(entries: readonly { readonly sessionId: string }[]): string[] {
  return entries.map(({ sessionId }) => sessionId);
}

async function listEachOnce(world: World): Promise<void> {
  const store = await world.open();
  const [writer, reader] = [await world.lists(), await world.lists()];
  const hint =
    'One entry an id: no entry of the history, none of what was deleted, no lease, approval or session.';
  for (const handle of [writer, reader])
    await world.expectEqual(() => handle.list(), [], 'Nothing was saved yet.');
  const states = growingRun(world.now(), 4);
  for (const id of ['order-1', 'order-2', 'deleted', 'deleted-with-history'])
    for (const state of states) await writer.save(id, state);
  await world.settle();
  await reader.delete('deleted');
  await reader.delete('deleted-with-history', { keepHistory: true });
  await store.approvals?.save(approvalRecord('order-9.apr-run00001-1-0', world.now()));
  await store.sessions?.saveIfRevision(sessionRecord('chat-1', world.now()), 0);
  await writer.acquireLease?.('only-leased', 'owner', world.longPeriodMs);
  const end = finishRun(states[3] as (typeof states)[0], world.now());
  await writer.save('order-2', end);
  const expected = [
    { sessionId: 'order-1', status: 'in-progress', checkpoint: states[3] },
    { sessionId: 'order-2', status: 'finished', checkpoint: end },
  ];
  for (const handle of [writer, reader, await world.lists()]) {
    await world.expectEqual(() => handle.list().then(sortedById), expected, hint);
    await world.expectEqual(() => handle.list({}).then(sortedById), expected, hint);
  }
}

/** The order is another rule's. */
function sortedById<Entry extends { readonly sessionId: string }>(entries: readonly Entry[]): Entry[] {
  return [...entries].sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
}

async function listDamage(world: World): Promise<void> {
  const writer = await world.lists();
  const states = growingRun(world.now(), 3);
  const end = finishRun(beginRun(world.now()), world.now());
  for (const id of ['damaged', 'order-1']) for (const state of states) await writer.save(id, state);
  await writer.save('finished', end);
  await world.settle();
  await world.corrupt('damaged');
  const reader = await world.lists();
  const listed = async (): Promise<unknown> => {
    const entries = sortedById(await reader.list());
    return entries.map(({ error, ...entry }) =>
      error === undefined ? entry : { ...entry, error: typeof error.message },
    );
  };
  const damaged = { sessionId: 'damaged', status: 'in-progress', checkpoint: null, error: 'string' };
  const hint =
    'An operator finds damage in the list: { sessionId, status: "in-progress", checkpoint: null, error: storedError(error) }.';
  await world.expectEqual(
    listed,
    [
      damaged,
      { sessionId: 'finished', status: 'finished', checkpoint: end },
      { sessionId: 'order-1', status: 'in-progress', checkpoint: states[2] },
    ],
    hint,
  );
  await world.expectEqual(
    async () => idsOf(await reader.list({ status: 'in-progress' })).sort(),
    ['damaged', 'order-1'],
    hint,
  );
  await world.expectEqual(async () => idsOf(await reader.list({ status: 'finished' })), ['finished'], hint);
}

const LISTS = 12;

async function listWhileOthersSave(world: World): Promise<void> {
  const [writer, deleter, reader] = [await world.lists(), await world.lists(), await world.lists()];
  const ids = ['order-1', 'order-2', 'order-3'];
  const saved = new Map<string, Checkpoint[]>(ids.map((id) => [id, []]));
  const run = growingRun(world.now(), 8);
  let isOver = false;
  const save = async (id: string): Promise<void> => {
    for (let turn = 0; !isOver; turn += 1) {
      const state = { ...(run[turn % run.length] as Checkpoint), traceparent: `${id}-${turn}` };
      saved.get(id)?.push(state);
      await writer.save(id, state);
      if (id === 'order-3' && turn % 3 === 2) await deleter.delete(id);
      await world.turns(1);
    }
  };
  const saving = awaitedLater(Promise.all(ids.map(save)));
  try {
    for (let round = 0; round < LISTS; round += 1) {
      await world.turns(2);
      const entries = await world.done(reader.list());
      assertEqual(idsOf(entries).length, new Set(idsOf(entries)).size, 'An id was listed twice.');
      for (const entry of entries) assertWasSaved(entry, saved.get(entry.sessionId) ?? []);
    }
  } finally {
    isOver = true;
    await saving;
  }
}

function assertWasSaved(
  { sessionId, status, checkpoint, error }: CheckpointListEntry,
  saved: readonly Checkpoint[],
): void {
  const hint = 'Read each entry in one step, and leave out what is gone by then.';
  if (checkpoint === null || error !== undefined)
    throw new Mismatch('a state that was saved', { sessionId, error }, hint);
  const state = saved.find(({ traceparent }) => traceparent === checkpoint.traceparent);
  if (state === undefined || !sameJson(state, checkpoint))
    throw new Mismatch(state ?? 'a state that was saved', checkpoint, hint);
  assertEqual(status, state.status, `The status of the entry is not that of its checkpoint. ${hint}`);
}

async function listHeaders(world: World): Promise<void> {
  const [writer, reader] = [await world.headers(), await world.headers()];
  const begun = beginRun(world.now(-1_000), {
    lastError: { name: 'Error', message: 'It failed.', retryable: true },
    attempts: 2,
  });
  const { lastError: _error, attempts: _attempts, ...fine } = begun;
  const runs: [string, Checkpoint[]][] = [
    ['order-1', growingRun(world.now(-3_000), 5)],
    ['order-2', [begun, pauseRun(fine, 'order-2.apr-run00001-1-0', world.now(-5_000))]],
    ['order-3', [begun, finishRun(fine, world.now(-4_000))]],
    ['order-4', [fine, grow(fine, world.now(-2_000)), { ...begun, metadata: { changed: true } }]],
  ];
  for (const [id, states] of runs) for (const state of states) await writer.save(id, state);
  await world.settle();
  const hint = 'A header is checkpointHeader(checkpoint): every field but the content, and messageCount.';
  for (const options of [
    undefined,
    { status: 'in-progress' },
    { status: ['awaiting-approval', 'finished'] },
  ] as const)
    for (const handle of [writer, reader]) await expectSameHeaders(world, handle, options, hint);
  if (world.storage.corrupt === undefined) return;
  await world.settle();
  await world.corrupt('order-2');
  const fresh = await world.headers();
  // Damage in a transcript is none of a header's: the damaged run may show its header or an error. The others are as ever.
  const ids = async (): Promise<unknown> => idsOf(await fresh.listHeaders()).sort();
  const hintOfDamage =
    'A damaged record is one entry with `error` and `header: null`, or a header where that can be read.';
  await world.expectEqual(
    ids,
    runs.map(([id]) => id),
    hintOfDamage,
  );
}

async function expectSameHeaders(
  world: World,
  store: Awaited<ReturnType<World['headers']>>,
  options: Parameters<ListingStore['list']>[0],
  hint: string,
): Promise<void> {
  const headers = async (): Promise<unknown> => {
    const entries = await store.list(options);
    return entries.map(({ sessionId, status, checkpoint }) => {
      return { sessionId, status, header: checkpoint && checkpointHeader(checkpoint) };
    });
  };
  await world.expectEqual(() => store.listHeaders(options), await headers(), hint);
}
