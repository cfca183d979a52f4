/** What every store promises about checkpoints that are saved, loaded and deleted. The records themselves: `records.ts`. */
import { type Checkpoint, type CheckpointStore } from '@lousho/contract';
import { firstDifference, sameJson } from '../difference.ts';
import { awaitedLater, isNothing, outcomeOf } from '../expectations.ts';
import { Mismatch, NotApplicable } from '../failure.ts';
import { ofEveryStore, ofLeases, type Rule } from '../rule.ts';
import { beginRun, finishRun, grow, growingRun, pauseRun } from '../sample-runs.ts';
import type { World } from '../world.ts';

export const checkpointRules: readonly Rule[] = [
  {
    id: 'C4',
    name: 'checkpoints/visible-on-every-handle',
    rule: 'After `save` resolves, every handle on the same storage loads this checkpoint.',
    ...ofEveryStore,
    async run(world) {
      const [a, b] = [await world.checkpoints(), await world.checkpoints()];
      const states = growingRun(world.now(), 4);
      const hint = 'Is it cached per handle, or written after the promise resolved?';
      for (const [index, state] of states.entries()) {
        // Both have loaded the state before, and both write: a cache that is only cleared by its own handle shows.
        await (index % 2 === 0 ? a : b).save('order-1', state);
        await world.expectLoads([a, b, await world.checkpoints()], 'order-1', state, hint);
      }
      await followAnotherRun(world, a, b);
    },
  },
  {
    id: 'C5',
    name: 'checkpoints/replaced-whole',
    rule: '`save` replaces the checkpoint whole: no field of an earlier one is left.',
    ...ofEveryStore,
    async run(world) {
      const [writer, reader] = [await world.checkpoints(), await world.checkpoints()];
      const full = pauseRun(beginRun(world.now()), 'order-1.apr-run00001-1-0', world.now());
      const {
        businessState: _state,
        principal: _principal,
        metadata: _metadata,
        ...sparse
      } = beginRun(world.now(), {
        messages: [{ role: 'user', content: 'Something else.' }],
        runInput: { start: 0, count: 1 },
        inputIds: [],
      });
      await writer.save('order-1', full);
      await world.expectLoads([reader], 'order-1', full, 'The first save already came back changed.');
      await writer.save('order-1', sparse);
      const hint = 'Do not merge into what is stored: fields that the new checkpoint lacks must go.';
      await world.expectLoads([reader, writer], 'order-1', sparse, hint);
    },
  },
  {
    id: 'C6',
    name: 'checkpoints/one-of-many-whole',
    rule: 'Of saves at one moment one stands, whole; nobody ever loads a mixture.',
    ...ofEveryStore,
    run: raceSaves,
  },
  {
    id: 'C9',
    name: 'checkpoints/rejected-save-changes-nothing',
    rule: 'A save that rejects leaves the state before it.',
    ...ofEveryStore,
    run: rejectSaves,
  },
  {
    id: 'C11',
    name: 'checkpoints/absent-is-nothing',
    rule: 'An id that was never saved, or was deleted, gives `null` or `undefined`.',
    ...ofEveryStore,
    async run(world) {
      const [a, b] = [await world.checkpoints(), await world.checkpoints()];
      const hint = 'An absent checkpoint is no error and no empty record.';
      await world.expectGone([a, b], 'never-saved', hint);
      await a.save('order-1', beginRun(world.now()));
      await world.expectGone([a, b], 'never-saved', hint);
      await a.delete('order-1');
      await world.expectGone([a, b, await world.checkpoints()], 'order-1', hint);
    },
  },
  {
    id: 'C16',
    name: 'checkpoints/deleted-with-its-history',
    rule: 'After `delete` resolves, the id has no checkpoint and no history on any handle; with `keepHistory` its history stays.',
    ...ofEveryStore,
    run: deleteOnEveryHandle,
  },
  {
    id: 'C17',
    name: 'checkpoints/deletes-what-is-damaged-or-absent',
    rule: '`delete` works on a damaged record too, and an unknown id is fine.',
    ...ofEveryStore,
    async run(world) {
      const checkpoints = await world.checkpoints();
      const unknown = await outcomeOf(() => checkpoints.delete('never-saved'));
      if (unknown.error !== undefined)
        throw new Mismatch('delete of an unknown id resolves', unknown.error, 'Deleting twice is no error.');
      if (world.storage.corrupt === undefined) return;
      const [first, second] = growingRun(world.now(), 2) as [Checkpoint, Checkpoint];
      await checkpoints.save('order-1', first);
      await world.settle();
      await world.corrupt('order-1');
      const other = await world.checkpoints();
      const damaged = await outcomeOf(() => other.delete('order-1'));
      if (damaged.error !== undefined)
        throw new Mismatch(
          'delete of a damaged record resolves',
          damaged.error,
          'Delete without reading it.',
        );
      await world.expectGone([other], 'order-1', 'Something of the damaged record was left.');
      await other.save('order-1', second);
      await world.expectLoads([other], 'order-1', second, 'The id must be usable again.');
    },
  },
  {
    id: 'C18',
    name: 'checkpoints/delete-ends-the-lease',
    rule: "`delete` ends the lease: the holder's next renewal and save are refused.",
    ...ofLeases,
    async run(world) {
      const [holder, other] = [await world.leases(), await world.leases()];
      await world.expectGranted(
        () => holder.acquireLease('order-1', 'holder', world.longPeriodMs),
        'A free lease must be given.',
      );
      const [first, second] = growingRun(world.now(), 2) as [Checkpoint, Checkpoint];
      await holder.saveIfLeased('order-1', first, 'holder');
      await world.settle();
      await other.delete('order-1');
      await world.settle();
      const hint = 'Remove the lease, or raise its fence, in the same step as the checkpoint.';
      await world.expectFalse(() => holder.saveIfLeased('order-1', second, 'holder'), hint);
      await world.expectFalse(() => holder.renewLease('order-1', 'holder', world.longPeriodMs), hint);
      await world.expectGone([holder, other], 'order-1', 'A run that was deleted must not come back.');
    },
  },
];

/** One handle deletes the run, and begins another with as many saves: the other handle must not take it for the one that it knows. */
async function followAnotherRun(world: World, a: CheckpointStore, b: CheckpointStore): Promise<void> {
  const states = growingRun(world.now(), 4, { runId: 'run00002-sample', metadata: { channel: 'phone' } });
  const newest = states[3] as (typeof states)[0];
  await b.delete('order-1');
  for (const state of states) await b.save('order-1', state);
  await world.settle();
  const hint =
    'What a handle remembers of an id is void once another handle has deleted it, however alike the new run is.';
  await world.expectLoads([a, b], 'order-1', newest, hint);
  const next = grow(newest, world.now());
  await a.save('order-1', next);
  await world.expectLoads([a, b, await world.checkpoints()], 'order-1', next, hint);
}

/** Many writers and readers at once. Each state carries its number in the first and in the last thing it holds. */
async function raceSaves(world: World): Promise<void> {
  const handles = [await world.checkpoints(), await world.checkpoints(), await world.checkpoints()];
  const reader = await world.checkpoints();
  const run = growingRun(world.now(), 9);
  await handles[0]?.save('order-1', run[0] as Checkpoint);
  await world.settle();
  let saved = [run[0] as Checkpoint];
  for (let round = 1; round <= 8; round += 1) {
    const states = run.slice(1).map((state, index) => ({
      ...state,
      traceparent: `${round}-${index}`,
      businessState: { mark: `${round}-${index}` },
    }));
    const save = async (state: Checkpoint, index: number): Promise<void> =>
      handles[index % handles.length]?.save('order-1', state);
    const loadNow = async (): Promise<Checkpoint | null | undefined> => reader.load('order-1');
    // All at once in one round; in the next, one begins while others are under way.
    const atOnce = round % 2 === 0 ? states.length : 1;
    const writes = states.slice(0, atOnce).map((state, index) => awaitedLater(save(state, index)));
    const reads: Promise<Checkpoint | null | undefined>[] = [];
    for (let turn = 0; turn < states.length; turn += 1) {
      reads.push(awaitedLater(loadNow()));
      const late = turn < atOnce ? undefined : states[turn];
      if (late !== undefined) writes.push(awaitedLater(save(late, turn)));
      await world.turns(1);
    }
    const loaded = await world.done(Promise.all(reads));
    await world.done(Promise.all(writes));
    for (const value of loaded) assertWhole(value, [...saved, ...states], 'while saves were under way');
    saved = states;
    await world.settle();
    const stands = await world.done(reader.load('order-1'));
    assertWhole(stands, states, 'after all saves had resolved');
    if (isNothing(stands)) return;
    await world.expectLoads(handles, 'order-1', stands, 'The handles disagree about which save stands.');
  }
}

function assertWhole(value: unknown, states: readonly Checkpoint[], when: string): void {
  if (states.some((state) => sameJson(state, value))) return;
  const hint = `Write a checkpoint in one step. This was loaded ${when}.`;
  const { traceparent } = (value ?? {}) as Partial<Checkpoint>;
  const nearest = states.find((state) => state.traceparent === traceparent);
  throw new Mismatch(
    nearest ?? 'one of the checkpoints that were saved',
    nearest === undefined ? value : { mixedAt: firstDifference(nearest, value)?.path },
    hint,
  );
}

/** A value that cannot be written makes the save reject in the middle of its work. */
async function rejectSaves(world: World): Promise<void> {
  const [writer, reader] = [await world.checkpoints(), await world.checkpoints()];
  const [before, next] = growingRun(world.now(), 2) as [Checkpoint, Checkpoint];
  await writer.save('order-1', before);
  const rejections = await saveUnwritable(world, writer, next);
  if (rejections === 0) throw new NotApplicable('nothing made a save of this store reject');
  const hint = 'Prepare everything that may fail before the first write, or roll back.';
  await world.expectLoads([writer, reader, await world.checkpoints()], 'order-1', before, hint);
  await world.expectSaves(
    [writer, reader],
    'order-1',
    [before],
    'A save that rejected must not be in the history.',
  );
  const end = finishRun(beginRun(world.now()), world.now());
  await writer.save('order-1', end);
  await world.expectLoads([reader], 'order-1', end, 'After a save that rejected the next one must work.');
}

async function saveUnwritable(world: World, writer: CheckpointStore, next: Checkpoint): Promise<number> {
  const unwritable = {
    toJSON(): never {
      throw new Error('this value cannot be written');
    },
  } as never;
  const last = { role: 'user', content: 'More.', providerMetadata: { any: unwritable } } as const;
  let rejections = 0;
  for (const poisoned of [
    { ...next, businessState: unwritable },
    { ...next, messages: [...next.messages, last] },
  ]) {
    const outcome = await world.done(outcomeOf(() => writer.save('order-1', poisoned)));
    if (outcome.error !== undefined) rejections += 1;
    // A store that can write it has saved it: then the state before is back only when we say so.
    else await writer.save('order-1', next);
  }
  return rejections;
}

async function deleteOnEveryHandle(world: World): Promise<void> {
  const [a, b] = [await world.checkpoints(), await world.checkpoints()];
  const states = growingRun(world.now(), 3);
  for (const id of ['order-1', 'order-2'])
    for (const state of states) {
      await a.save(id, state);
      await world.expectLoads([b], id, state, 'The save itself is not visible.');
    }
  await b.delete('order-1');
  await b.delete('order-2', { keepHistory: true });
  const fresh = await world.checkpoints();
  const handles = [a, b, fresh];
  await world.expectGone(
    handles,
    'order-1',
    'It must be gone on every handle, also on those that had loaded it.',
  );
  await world.expectGone(handles, 'order-2', '`keepHistory` keeps the history alone.');
  await world.expectSaves(handles, 'order-1', [], 'Its history must go with the checkpoint.');
  await world.expectSaves(handles, 'order-2', states, 'With `keepHistory` the history stays as it was.');
}
