/** What every store promises about the ids of checkpoints, and about the errors that it throws. */
import type { Checkpoint, CheckpointStore } from '@lousho/contract';
import { outcomeOf } from '../expectations.ts';
import { Mismatch } from '../failure.ts';
import { ofEveryStore, type Rule } from '../rule.ts';
import { beginRun } from '../sample-runs.ts';
import type { World } from '../world.ts';

/** Also names that file systems reserve, and internal keys of the longest run id. */
const GOOD_IDS = [
  'a',
  '0',
  '-',
  '_',
  'Order-7_b.c',
  'con',
  'aux.txt',
  'a..b',
  'chat-1.turn-12',
  `${'x'.repeat(200)}.sub-abcdefgh-12-3`,
  'x'.repeat(300),
];
const BAD_IDS = [
  '',
  '.',
  '..',
  '.a',
  'a.',
  '../a',
  'a/b',
  'a\\b',
  'a b',
  'a:b',
  'ä',
  'a\n',
  'a\u0000b',
  'x'.repeat(301),
];

export const idRules: readonly Rule[] = [
  {
    id: 'C1',
    name: 'checkpoints/ids',
    rule: 'An id of 1-300 characters of `A-Za-z0-9_.-` without a dot at an end is stored; any other is `LOUSHO_SESSION_ID_INVALID`, and nothing happens.',
    ...ofEveryStore,
    run: checkIds,
  },
  {
    id: 'C2',
    name: 'checkpoints/ids-are-apart',
    rule: "Ids are apart: one that differs in a letter's case, or that another begins with, is another checkpoint with its own history and lease.",
    ...ofEveryStore,
    run: keepIdsApart,
  },
  {
    id: 'C3',
    name: 'checkpoints/named-errors',
    rule: 'Only `LOUSHO_CHECKPOINT_CORRUPT`, `LOUSHO_CHECKPOINT_TOO_LARGE`, `LOUSHO_SESSION_ID_INVALID`, `LOUSHO_STORE_*` and, for wrong options, `LOUSHO_CONFIG_INVALID` are thrown.',
    ...ofEveryStore,
    run: provokeErrors,
  },
];

async function checkIds(world: World): Promise<void> {
  const checkpoints = await world.checkpoints();
  for (const [index, id] of GOOD_IDS.entries()) {
    const state = beginRun(world.now(), { runId: `run-${index}` });
    const outcome = await world.done(outcomeOf(() => checkpoints.save(id, state)));
    if (outcome.error !== undefined)
      throw new Mismatch(
        `save("${id}") resolves`,
        outcome.error,
        'Is the id longer or stranger than a name of your medium may be?',
      );
    await world.expectLoads([checkpoints], id, state, `This was saved as "${id}".`);
  }
  const state = beginRun(world.now());
  for (const id of BAD_IDS)
    for (const [method, call] of callsWithId(checkpoints, id, state))
      await world.expectRefused(
        call,
        'LOUSHO_SESSION_ID_INVALID',
        `This was ${method}(${JSON.stringify(id)}). Call assertCheckpointId(id) before anything else.`,
      );
  if (!world.claims.list || checkpoints.list === undefined) return;
  const ids = async (): Promise<unknown> =>
    (await checkpoints.list?.())?.map(({ sessionId }) => sessionId).sort();
  await world.expectEqual(ids, [...GOOD_IDS].sort(), 'A refused id must leave nothing behind.');
}

/** Every method that takes an id, as far as the store has it. */
function callsWithId(
  checkpoints: CheckpointStore,
  id: string,
  state: Checkpoint,
): readonly (readonly [string, () => Promise<unknown>])[] {
  const calls: [string, (() => Promise<unknown> | undefined) | undefined][] = [
    ['save', () => checkpoints.save(id, state)],
    ['load', () => checkpoints.load(id)],
    ['delete', () => checkpoints.delete(id)],
    ['history', checkpoints.history && (() => checkpoints.history?.(id))],
    ['acquireLease', checkpoints.acquireLease && (() => checkpoints.acquireLease?.(id, 'owner', 30_000))],
    ['renewLease', checkpoints.renewLease && (() => checkpoints.renewLease?.(id, 'owner', 30_000))],
    ['releaseLease', checkpoints.releaseLease && (() => checkpoints.releaseLease?.(id, 'owner'))],
    ['saveIfLeased', checkpoints.saveIfLeased && (() => checkpoints.saveIfLeased?.(id, state, 'owner'))],
  ];
  return calls.flatMap(([method, call]) =>
    call === undefined ? [] : [[method, async (): Promise<unknown> => call()] as const],
  );
}

async function keepIdsApart(world: World): Promise<void> {
  const [writer, reader] = [await world.checkpoints(), await world.checkpoints()];
  const ids = ['alice', 'Alice', 'ALICE', 'alice-2', 'alice.turn-1', 'ali', 'alice_', 'alice.b'];
  const states = ids.map((id) => beginRun(world.now(), { runId: `of-${id}` }));
  const stateOf = (id: string): Checkpoint => states[ids.indexOf(id)] as Checkpoint;
  for (const id of ids) await writer.save(id, stateOf(id));
  const hint = 'Do ids that differ in case, or that begin alike, share a name in your medium?';
  const expectOwn = async (id: string, hintOfRule: string): Promise<void> => {
    await world.expectLoads([reader], id, stateOf(id), hintOfRule);
    const hintOfHistory = `"${id}" must have the history of its own saves. ${hintOfRule}`;
    await world.expectSaves([reader], id, [stateOf(id)], hintOfHistory);
  };
  for (const id of ids) await expectOwn(id, hint);
  await writer.delete('alice');
  await world.expectGone([reader], 'alice', hint);
  for (const id of ids.slice(1)) await expectOwn(id, `Deleting "alice" must not touch "${id}".`);
  if (world.claims.leases === 'none') return;
  const leases = await world.leases();
  for (const id of ids)
    await world.expectGranted(
      () => leases.acquireLease(id, `owner-of-${id}`, world.longPeriodMs),
      `The lease of "${id}" must not depend on those of other ids. ${hint}`,
    );
}

async function provokeErrors(world: World): Promise<void> {
  const store = await world.open();
  const checkpoints = world.checkpointsOf(store);
  const state = beginRun(world.now());
  await checkpoints.save('order-1', state);
  const expect = (what: string, call: () => unknown): Promise<void> =>
    world.expectNamedErrors(what, async () => call());
  for (const id of ['never-saved', '../evil', 'x'.repeat(301)])
    for (const [method, call] of callsWithId(checkpoints, id, state))
      await expect(`${method}("${id}")`, call);
  for (const limit of [-1, 1.5, Number.NaN])
    await expect(`history with limit ${limit}`, () => checkpoints.history?.('order-1', { limit }));
  await expect('list with an unknown status', () => checkpoints.list?.({ status: 'unknown' as never }));
  for (const olderThanMs of [-1, Number.NaN])
    await expect(`prune with olderThanMs ${olderThanMs}`, () =>
      (store.prune ?? checkpoints.prune)?.call(store.prune ? store : checkpoints, {
        olderThanMs,
        dryRun: true,
      }),
    );
  if (world.storage.corrupt === undefined) return;
  await world.settle();
  await world.corrupt('order-1');
  const other = await world.checkpoints();
  await expect('load of a damaged record', () => other.load('order-1'));
  await expect('history of a damaged record', () => other.history?.('order-1'));
  await expect('save over a damaged record', () => other.save('order-1', state));
}
