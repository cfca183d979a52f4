/** What a store with a history promises about the saves that it keeps. */
import type { Checkpoint } from '@lousho/contract';
import { assertEqual, savesIn } from '../expectations.ts';
import { Mismatch } from '../failure.ts';
import { ofHistory, type Rule } from '../rule.ts';
import { beginRun, finishRun, grow, growingRun, pauseRun } from '../sample-runs.ts';
import type { World } from '../world.ts';

export const historyRules: readonly Rule[] = [
  {
    id: 'H1',
    name: 'history/one-entry-a-save',
    rule: 'Each save is one entry of `history`, the newest first, in the order of the saves whatever the clocks said; two saves of one step are two entries.',
    ...ofHistory,
    async run(world) {
      const [a, b] = [await world.histories(), await world.histories()];
      // The clock goes back with each save, two saves have one time and one step, and one is just like the one before.
      const states = growingRun(world.now(), 6).map((state, index) => {
        return { ...state, savedAt: world.now(-60_000 * Math.floor(index / 2)) };
      });
      states.push(states[5] as (typeof states)[0]);
      for (const [index, state] of states.entries()) {
        await (index % 2 === 0 ? a : b).save('order-1', state);
        await world.settle();
      }
      const hint = 'Number the saves of an id as they come. Neither step nor time tells their order.';
      await world.expectSaves([a, b, await world.histories()], 'order-1', states, hint);
    },
  },
  {
    id: 'H2',
    name: 'history/whole-checkpoints',
    rule: "An entry of `history` holds the whole checkpoint as it was saved, and its own `step`, `savedAt` and `status` are that checkpoint's.",
    ...ofHistory,
    run: keepWholeEntries,
  },
  {
    id: 'H3',
    name: 'history/bounded',
    rule: 'At most `historyLimit` entries and about `historyMaxBytes` bytes are kept for an id, the newest ones, and the newest always; 0 keeps none.',
    ...ofHistory,
    run: fillHistory,
  },
  {
    id: 'H4',
    name: 'history/limit',
    rule: '`history` with `limit` gives the newest so many, with 0 none, and for an unknown id `[]`.',
    ...ofHistory,
    async run(world) {
      const [writer, reader] = [await world.histories(), await world.histories()];
      const states = growingRun(world.now(), 5);
      for (const state of states) await writer.save('order-1', state);
      const handles = [writer, reader];
      const expectNewest = (
        limit: number | undefined,
        saves: readonly Checkpoint[],
        hint: string,
      ): Promise<void> => world.expectSaves(handles, 'order-1', saves, hint, { limit });
      await world.expectSaves(handles, 'order-1', states, 'Without options all that is kept is given.');
      await expectNewest(undefined, states, '`undefined` is no limit.');
      await expectNewest(0, [], '0 means none, not all.');
      for (const limit of [1, 2, 5, 100])
        await expectNewest(limit, states.slice(-limit), `The newest ${limit} were asked for.`);
      const hint = 'An unknown id has an empty history, which is no error.';
      for (const handle of handles) {
        await world.expectEqual(() => handle.history('never-saved'), [], hint);
        await world.expectEqual(() => handle.history('never-saved', { limit: 3 }), [], hint);
      }
    },
  },
  {
    id: 'H5',
    name: 'history/newest-is-the-checkpoint',
    rule: 'The newest entry is what `load` gives, unless the checkpoint was deleted.',
    ...ofHistory,
    async run(world) {
      const [writer, reader] = [await world.histories(), await world.histories()];
      const run = growingRun(world.now(), 4);
      const states = [...run, pauseRun(run[3] as (typeof run)[0], 'order-1.apr-run00001-2-0', world.now())];
      for (const state of [
        ...states,
        finishRun(run[3] as (typeof run)[0], world.now()),
        beginRun(world.now(), { runId: 'next' }),
      ]) {
        await writer.save('order-1', state);
        for (const handle of [writer, reader]) {
          await world.expectLoads([handle], 'order-1', state, 'The save itself is not visible.');
          const newest = async (): Promise<unknown> =>
            (await handle.history('order-1', { limit: 1 }))[0]?.checkpoint;
          await world.expectEqual(newest, state, 'Write the checkpoint and its entry in one step.');
        }
      }
    },
  },
  {
    id: 'H6',
    name: 'history/continues-after-delete',
    rule: 'A save after `delete` with `keepHistory` continues the history that was kept.',
    ...ofHistory,
    async run(world) {
      const [a, b] = [await world.histories(), await world.histories()];
      const first = growingRun(world.now(), 3);
      for (const state of first) await a.save('order-1', state);
      await world.settle();
      await b.delete('order-1', { keepHistory: true });
      await world.settle();
      const second = growingRun(world.now(), 2, { runId: 'run00002-sample' });
      for (const [index, state] of second.entries()) {
        await (index % 2 === 0 ? a : b).save('order-1', state);
        await world.settle();
      }
      const hint = 'The entries before the delete stay below those of the new run.';
      await world.expectSaves([a, b], 'order-1', [...first, ...second], hint);
    },
  },
];

/** Also saves that rewrite what was there: an edited call, a new list of messages, a field that goes. */
async function keepWholeEntries(world: World): Promise<void> {
  const [writer, reader] = [await world.histories(), await world.histories()];
  const run = growingRun(world.now(), 5);
  const newest = run[4] as (typeof run)[0];
  const { businessState: _state, ...withoutState } = newest;
  const states: Checkpoint[] = [
    ...run,
    { ...newest, messages: newest.messages.with(1, { role: 'user', content: 'Three copies.' }) },
    pauseRun(newest, 'order-1.apr-run00001-2-0', world.now()),
    {
      ...withoutState,
      messages: newest.messages.slice(0, 2),
      lastError: { name: 'Error', message: 'It failed.', retryable: true },
    },
    grow(newest, world.now()),
    finishRun(newest, world.now()),
  ];
  for (const state of states) await writer.save('order-1', state);
  const expected = [...states].reverse().map((checkpoint) => {
    const { stepIndex: step, savedAt, status } = checkpoint;
    return { step, savedAt, status, checkpoint };
  });
  for (const handle of [writer, reader])
    await world.expectEqual(
      () => handle.history('order-1'),
      expected,
      'Each entry is what was saved then: nothing of a later save, and nothing missing.',
    );
}

/** More than a bundled store keeps by default, and two more than what the subject says. */
const SAVES_WITHOUT_A_LIMIT = 60;

async function fillHistory(world: World): Promise<void> {
  const { historyLimit } = world.subject;
  const [writer, reader] = [await world.histories(), await world.histories()];
  const states: Checkpoint[] = [];
  for (let state = beginRun(world.now()); states.length < (historyLimit ?? SAVES_WITHOUT_A_LIMIT - 2) + 2;) {
    await world.done(writer.save('order-1', state));
    states.push(state);
    // A new run now and then keeps the transcript short.
    state =
      states.length % 10 === 0
        ? beginRun(world.now(), { runId: `run-${states.length}` })
        : grow(state, world.now());
  }
  await world.settle();
  for (const handle of [writer, reader]) {
    const kept = await world.done(savesIn(handle, 'order-1'));
    const newest = [...states].reverse().slice(0, kept.length);
    assertEqual(kept, newest, 'What is kept are the newest saves, without a gap.');
    if (historyLimit === undefined && kept.length === 0)
      throw new Mismatch('at least the newest entry', kept, 'The newest always stays.');
    if (historyLimit !== undefined)
      assertEqual(
        kept.length,
        historyLimit,
        'So many entries were kept: drop what is older than the newest `historyLimit`.',
      );
    await world.expectLoads(
      [handle],
      'order-1',
      states.at(-1) as Checkpoint,
      'Dropping history must not touch the checkpoint.',
    );
  }
}
