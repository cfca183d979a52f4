/** What a store with `prune` promises: old runs go with all that is theirs, and nothing goes that somebody needs. */
import { childCheckpointId, type AgentStore, type PruneResult } from '@lousho/contract';
import { assertEqual, fenceOf } from '../expectations.ts';
import { Mismatch } from '../failure.ts';
import { ofEveryStore, type Rule } from '../rule.ts';
import { approvalRecord, beginRun, finishRun, growingRun, pauseRun } from '../sample-runs.ts';
import type { World } from '../world.ts';

export const pruningRules: readonly Rule[] = [
  {
    id: 'Z2',
    name: 'lifecycle/prune-removes-what-is-old',
    rule: '`prune` removes and counts the checkpoints of the given statuses whose last save is older than `olderThanMs`, with their history, those of their sub-agents, and leftovers that no run needs.',
    ...ofEveryStore,
    async run(world) {
      const { store, olderThanMs } = await givenOldRuns(world);
      const prune = world.pruneOf(store);
      const result = await prune({ olderThanMs });
      assertEqual(
        result,
        await expectedCounts(world, store),
        'Counts of what was removed: runs with their sub-agents, history of all of them and of deleted runs, approvals that no run waits on.',
      );
      await world.settle();
      const hint = 'By default finished runs go, and only when their last save is older.';
      await expectStored(world, ['new-finished', 'old-open'], ['old-finished', LEAD, CHILD, 'deleted'], hint);
      await expectApprovals(world, []);
      const open = await prune({ olderThanMs, statuses: ['in-progress'] });
      assertEqual(open.checkpoints, 1, 'With `statuses` those of other statuses go.');
      await world.settle();
      await expectStored(
        world,
        ['new-finished'],
        ['old-open'],
        'With `statuses: ["in-progress"]` unfinished runs go.',
      );
    },
  },
  {
    id: 'Z3',
    name: 'lifecycle/prune-keeps-what-is-needed',
    rule: '`prune` never removes what an undecided approval or a live lease needs.',
    ...ofEveryStore,
    run: pruneAroundNeeds,
  },
  {
    id: 'Z4',
    name: 'lifecycle/prune-dry-run',
    rule: '`prune` with `dryRun` gives the same counts and removes nothing.',
    ...ofEveryStore,
    async run(world) {
      const { store, olderThanMs } = await givenOldRuns(world);
      const prune = world.pruneOf(store);
      const counted = await prune({ olderThanMs, dryRun: true });
      await world.settle();
      const stored = ['new-finished', 'old-open', 'old-finished', LEAD, CHILD];
      await expectStored(world, stored, [], 'A dry run removes nothing.');
      if (store.approvals !== undefined) await expectApprovals(world, [LEFT_APPROVAL]);
      await expectHistories(world, stored, world.claims.history ? ['deleted'] : []);
      const removed = await prune({ olderThanMs });
      assertEqual(counted, removed, 'What a dry run counts is what the next prune removes.');
      if (removed.checkpoints === 0)
        throw new Mismatch('some runs removed', removed, 'There were old finished runs.');
    },
  },
];

const CALL = { runId: 'run00001-sample', step: 1, index: 0 };
const LEAD = 'old-lead';
const CHILD = childCheckpointId(LEAD, CALL);
const LEFT_APPROVAL = 'gone.apr-run00001-1-0';
const SAVES = 3;

interface OldRuns {
  readonly store: AgentStore;
  /** Between the age of the old ones and that of the new one. */
  readonly olderThanMs: number;
}

async function givenOldRuns(world: World): Promise<OldRuns> {
  const store = await world.open();
  const checkpoints = world.checkpointsOf(store);
  // Before anything is saved: a store without prune has nothing to be asked.
  world.pruneOf(store);
  const states = growingRun(world.now(), SAVES);
  const begun = states[0] as (typeof states)[0];
  for (const id of ['old-finished', LEAD]) {
    for (const state of states.slice(1)) await checkpoints.save(id, state);
    await checkpoints.save(id, finishRun(begun, world.now()));
  }
  await checkpoints.save(CHILD, begun);
  await checkpoints.save('old-open', begun);
  await checkpoints.save('deleted', begun);
  await checkpoints.delete('deleted', { keepHistory: true });
  await store.approvals?.save(approvalRecord(LEFT_APPROVAL, world.now(), { checkpointId: 'gone' }));
  const ageMs = world.hasOwnClock ? 400 : 3_600_000;
  await world.settle();
  await world.elapse(ageMs);
  await checkpoints.save('new-finished', finishRun(beginRun(world.now()), world.now()));
  await world.settle();
  return { store, olderThanMs: ageMs / 2 };
}

async function expectedCounts(world: World, store: AgentStore): Promise<PruneResult> {
  const savesOfRemoved = 2 * SAVES + 1;
  return {
    checkpoints: 3,
    // One more entry: that of the run that was deleted before.
    historyEntries: world.claims.history ? savesOfRemoved + 1 : 0,
    approvals: store.approvals === undefined ? 0 : 1,
    sessions: 0,
  };
}

async function expectStored(
  world: World,
  stored: readonly string[],
  gone: readonly string[],
  hint: string,
): Promise<void> {
  const reader = await world.checkpoints();
  for (const id of stored)
    await world.expectEqual(
      async () => ((await reader.load(id)) ? 'stored' : 'gone'),
      'stored',
      `"${id}" must stay. ${hint}`,
    );
  for (const id of gone)
    await world.expectEqual(
      async () => ((await reader.load(id)) ? 'stored' : 'gone'),
      'gone',
      `"${id}" must go. ${hint}`,
    );
  await expectHistories(world, stored, []);
  if (!world.claims.history || reader.history === undefined) return;
  for (const id of gone)
    await world.expectEqual(async () => reader.history?.(id), [], `The history of "${id}" must go with it.`);
}

async function expectHistories(
  world: World,
  stored: readonly string[],
  kept: readonly string[],
): Promise<void> {
  const reader = await world.checkpoints();
  if (!world.claims.history || reader.history === undefined) return;
  for (const id of [...stored, ...kept])
    await world.expectEqual(
      async () => ((await reader.history?.(id)) ?? []).length > 0,
      true,
      `The history of "${id}" must stay.`,
    );
}

async function expectApprovals(world: World, ids: readonly string[]): Promise<void> {
  const { approvals } = await world.open();
  if (approvals === undefined) return;
  await world.expectEqual(
    async () => (await approvals.list()).map(({ id }) => id),
    ids,
    'An approval goes when it is old and no run waits on it.',
  );
}

/** Everything is old and has a status that is asked for. What is needed stays, with all that it needs in turn. */
async function pruneAroundNeeds(world: World): Promise<void> {
  const store = await world.open();
  const checkpoints = world.checkpointsOf(store);
  const prune = world.pruneOf(store);
  const begun = beginRun(world.now());
  const end = finishRun(begun, world.now());
  await checkpoints.save('useless', end);
  await checkpoints.save('waiting', pauseRun(begun, 'waiting.apr-run00001-1-0', world.now()));
  // A finished lead is not what waits; that its sub-agent does keeps both.
  const child = childCheckpointId('lead-of-waiting', CALL);
  await checkpoints.save('lead-of-waiting', end);
  await checkpoints.save(child, pauseRun(begun, `${child}.apr-run00001-1-0`, world.now()));
  const needed = ['waiting', 'lead-of-waiting', child];
  const approvalIds = ['waiting.apr-run00001-1-0', `${child}.apr-run00001-1-0`];
  for (const [index, id] of approvalIds.entries())
    await store.approvals?.save(
      approvalRecord(id, world.now(), { checkpointId: index === 0 ? 'waiting' : child }),
    );
  if (world.claims.leases !== 'none') {
    await checkpoints.save('executing', end);
    needed.push('executing');
  }
  await world.settle();
  await world.elapse(world.hasOwnClock ? 400 : 3_600_000);
  const lease = await checkpoints.acquireLease?.('executing', 'owner', world.longPeriodMs);
  await world.settle();
  const statuses = ['in-progress', 'awaiting-approval', 'finished'] as const;
  const { checkpoints: removed } = await prune({ olderThanMs: 200, statuses });
  await world.settle();
  const hint =
    'Ask the leases, and the approvals of the checkpoint and of its sub-agents, before a run goes.';
  await expectStored(world, needed, ['useless'], hint);
  assertEqual(removed, 1, `Only "useless" was of no use. ${hint}`);
  if (store.approvals !== undefined) await expectApprovals(world, [...approvalIds].sort());
  if (lease === undefined || lease === false) return;
  await world.expectTrue(
    async () => checkpoints.saveIfLeased?.('executing', end, 'owner', fenceOf(lease)),
    'Its holder must not notice that others prune.',
  );
}
