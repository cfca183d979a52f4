/** An abort, a failing store and a lost lease at every point of a run: what is left is whole, and the run can go on. */
import { SDKError, isSDKError, type Checkpoint, type ExecutionResult } from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import {
  calling,
  givenStorage,
  givenWorld,
  need,
  noting,
  results,
  type Setup,
  type Storage,
  type World,
} from './support.ts';

interface Story {
  readonly script: NonNullable<Setup['script']>;
  readonly options?: Partial<Setup>;
  readonly isGated?: boolean;
}
const stories: readonly (readonly [string, Story])[] = [
  ['an answer', { script: ['hello'] }],
  ['steps', { script: [calling('a'), calling('b'), 'done'] }],
  ['calls at once', { script: [calling('slow', 'a', 'b'), 'done'] }],
  ['calls one at a time', { script: [calling('a', 'slow', 'b'), 'done'], options: { toolConcurrency: 1 } }],
  ['marked calls', { script: [calling('marked', 'a'), 'done'] }],
  ['a pause', { script: [calling('a', 'pay', 'b'), 'done'], isGated: true }],
];

/** After so many microtasks: longer than a save. */
async function slowly(): Promise<string> {
  for (let tick = 0; tick < 50; tick += 1) await Promise.resolve();
  return 'slow';
}

function givenStory({ script, options = {} }: Story, storage: Storage = givenStorage()): World {
  const tools = [
    noting(storage, 'a'),
    noting(storage, 'b'),
    noting(storage, 'slow', slowly),
    noting(storage, 'marked', undefined, { onInterrupted: 'never' }),
    noting(storage, 'pay', undefined, { needsApproval: true }),
  ];
  return givenWorld({ storage, tools, script, ...options });
}

/** Sends, decides what waits, and gives the last result. */
async function drive(
  world: World,
  { isGated = false }: Story,
  options: object = {},
): Promise<ExecutionResult> {
  const result = await world.send('go', { inputId: 'msg-1', ...options });
  return isGated && result.approvalId !== undefined
    ? world.decide({ id: result.approvalId, approved: true }, options)
    : result;
}

/** Whatever happened: in a new process, with nothing in the way, the run comes to its end. */
async function bringToEnd(world: World, story: Story): Promise<Checkpoint> {
  world.storage.store.beforeCall = () => undefined;
  // The script goes on where the transcript ends.
  const stored = await world.stored();
  const answers = stored?.messages.filter(({ role }) => role === 'assistant').length ?? 0;
  const next = world.onNewProcess({ script: [...story.script.slice(answers), 'done'], onEvent: undefined });
  const waiting = stored?.status === 'awaiting-approval' ? stored.approvalId : undefined;
  if (waiting === undefined) await drive(next, story);
  else await next.decide({ id: waiting, approved: true });
  const end = need(await next.stored());
  expect(end.status).toBe('finished');
  expect(transcriptProblems(end.messages)).toEqual([]);
  expect(await next.inbox()).toEqual([]);
  for (const name of ['marked', 'pay']) expect(next.timesRun(name)).toBeLessThanOrEqual(1);
  return end;
}

async function countCalls(story: Story): Promise<readonly string[]> {
  const control = givenStory(story);
  await drive(control, story);
  return [...control.storage.store.calls];
}

describe.each(stories)('%s', (_name, story) => {
  it('aborted at every event stops or ends, and goes on with the next call', async () => {
    const control = givenStory(story);
    await drive(control, story);
    for (let at = 0; at < control.events.length; at += 1) {
      const stopping = new AbortController();
      let count = 0;
      const world = givenStory({
        ...story,
        options: { ...story.options, onEvent: () => count++ === at && stopping.abort() },
      });
      const result = await world.letTimePass(drive(world, story, { signal: stopping.signal }));
      expect(['aborted', 'stop', 'awaiting-approval']).toContain(result.finishReason);
      const stored = await world.stored();
      if (result.finishReason === 'aborted' && stored !== undefined && stored.status === 'in-progress') {
        expect(stored.finishReason).toBe('aborted');
        expect(stored).not.toHaveProperty('lastError');
        expect(transcriptProblems(stored.messages)).toEqual([]);
      }
      const ranBefore = [...world.storage.effects];
      const cancelled = results(stored?.messages).filter(({ kind }) => kind === 'cancelled');
      const end = await bringToEnd(world, story);
      for (const { toolName, toolCallId } of cancelled) {
        expect(world.timesRun(toolName)).toBe(ranBefore.filter((name) => name === toolName).length);
        expect(results(end.messages).find((result) => result.toolCallId === toolCallId)?.kind).toBe(
          'cancelled',
        );
      }
    }
  });

  it.each(['once', 'for ever'])(
    "on a store that fails %s, at every call, ends or rejects with the store's error, and goes on",
    async (howLong) => {
      const calls = await countCalls(story);
      for (let at = 0; at < calls.length; at += 1) {
        const world = givenStory(story);
        const failure = new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation: `call ${at}` });
        let count = 0;
        world.storage.store.beforeCall = () => {
          const isNow = howLong === 'once' ? count === at : count >= at;
          count += 1;
          if (isNow) throw failure;
        };
        const end = await world.letTimePass(
          drive(world, story).then(
            ({ finishReason }) => finishReason,
            (error: unknown) => error,
          ),
        );
        // A lease that could not be given back is in the way of the decision behind it.
        if (calls[at] === 'releaseLease' && isSDKError(end, 'LOUSHO_SESSION_BUSY'))
          expect(story.isGated).toBe(true);
        else expect(['stop', failure]).toContain(end);
        // Within the lease of the run that rejected: it was given back, or runs out.
        await world.clock.advance(60_000);
        await bringToEnd(world, story);
      }
    },
  );

  it("whose lease is taken away at any store call leaves the other one's state alone", async () => {
    const calls = await countCalls(story);
    for (let at = 0; at < calls.length; at += 1) {
      const world = givenStory(story);
      const { store } = world.storage;
      const stolen: { text?: string } = {};
      let count = 0;
      store.beforeCall = async () => {
        if (count++ !== at) return;
        const checkpoints = need(store.checkpoints);
        const stored = await checkpoints.load('order-7');
        // Ends the lease of the run under way; somebody else has it now, and writes.
        await checkpoints.delete('order-7');
        await checkpoints.acquireLease?.('order-7', 'somebody', 3_600_000);
        const theirs = { ...(stored ?? need((await control(story)).at(0))), agentName: 'somebody' };
        await checkpoints.save('order-7', theirs);
        stolen.text = JSON.stringify(theirs);
      };
      const end = await world.letTimePass(
        drive(world, story).then(
          ({ finishReason }) => finishReason,
          (error: unknown) => (error as { code?: string }).code,
        ),
      );
      expect(['LOUSHO_SESSION_BUSY', 'LOUSHO_APPROVAL_ORPHANED', 'stop', 'awaiting-approval']).toContain(end);
      store.beforeCall = () => undefined;
      expect(JSON.stringify(await world.stored())).toBe(stolen.text);
    }
  });
});

async function control(story: Story): Promise<readonly Checkpoint[]> {
  const world = givenStory(story);
  await drive(world, story);
  return world.storage.store.saves;
}
