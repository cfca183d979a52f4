/** Every story of a run dies before and after each of its store calls, and goes on in a new process. */
import {
  PropagatingToolError,
  answeredCalls,
  askPerson,
  defineTool,
  deepFreeze,
  type Checkpoint,
  type Clock,
  type JsonValue,
  type LLMProvider,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResultPart,
} from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { mockModel, type MockResponse } from '@lousho/testing';
import { crashSweep, type CrashOutcome, type CrashReport, type CrashWorld } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { z } from 'zod';
import type { EngineOptions } from '../src/index.ts';
import { OneProcess } from './one-process.ts';
import { calling, need, resultFor, roles } from './support.ts';

interface Story {
  readonly tools?: readonly StoryTool[];
  readonly script: readonly MockResponse[];
  readonly options?: EngineOptions;
  /** Brings the run to its end; called again in each new process. */
  drive(process: OneProcess, world: CrashWorld): Promise<unknown>;
  check?(end: StoryEnd): void;
}
interface StoryTool extends Partial<ToolDefinition<z.ZodType, unknown>> {
  readonly name: string;
  readonly does?: (args: JsonValue, ctx: ToolContext, world: CrashWorld) => unknown;
}
interface StoryEnd {
  readonly checkpoint: Checkpoint;
  readonly results: readonly ToolResultPart[];
  readonly crashed: boolean;
  readonly ran: (name: string) => number;
}

async function sweep(story: Story, createStore?: typeof memoryStore): Promise<CrashReport> {
  let answered = 0;
  const report = await crashSweep({
    ...(createStore && { createStore: (ports) => createStore({ ports }) }),
    async run(world) {
      if (world.restart === 0) answered = 0;
      const { store, ports } = world;
      const provider = countingModel(story.script, ports.clock, () => (answered += 1));
      const tools = (story.tools ?? []).map((tool) => storyTool(tool, world));
      await story.drive(
        new OneProcess({ store, ports, provider, tools, options: story.options ?? {} }),
        world,
      );
    },
    check(outcome) {
      const end = endOf(outcome);
      checkUsage(end, answered);
      story.check?.(end);
    },
  });
  expect(report.failures).toEqual([]);
  return report;
}

function countingModel(script: Story['script'], clock: Clock, onAnswer: () => void): LLMProvider {
  const model = mockModel(script, { answerBy: 'step', clock });
  return {
    providerId: model.providerId,
    modelId: model.modelId,
    async generate(request) {
      const response = await model.generate(request);
      onAnswer();
      return response;
    },
    async *stream(request) {
      for await (const event of model.stream(request)) {
        if (event.type === 'finish') onAnswer();
        yield event;
      }
    },
  };
}

function storyTool({ name, does = () => `${name} ok`, ...definition }: StoryTool, world: CrashWorld): Tool {
  const tool = defineTool<z.ZodType, unknown>({
    name,
    description: name,
    input: z.looseObject({}),
    ...definition,
    execute(args, ctx) {
      world.effect(name);
      return does(args as JsonValue, ctx, world);
    },
  });
  return tool;
}

function endOf({ checkpoints, effects, crashPoint }: CrashOutcome): StoryEnd {
  const checkpoint = need(checkpoints[0]?.checkpoint);
  return {
    checkpoint,
    results: [...answeredCalls(checkpoint.messages)].map(({ result }) => result),
    crashed: crashPoint !== undefined,
    ran: (name) => effects.get(name) ?? 0,
  };
}

/** Every response in the transcript was paid for and is counted once; a crash loses at most the one that was not saved. */
function checkUsage({ checkpoint, crashed }: StoryEnd, answered: number): void {
  const { usage, messages, runInput } = checkpoint;
  const answers = (from: number): number =>
    messages.slice(from).filter(({ role }) => role === 'assistant').length;
  expect(usage.modelCalls).toBe(answers(runInput.start));
  expect(usage.outputTokens).toBe(usage.modelCalls);
  expect(answered).toBeGreaterThanOrEqual(answers(0));
  expect(answered).toBeLessThanOrEqual(answers(0) + (crashed ? 1 : 0));
}

const after =
  (ms: number) =>
  (_args: JsonValue, _ctx: ToolContext, { ports }: CrashWorld) =>
    new Promise((resolve) => ports.clock.setTimer(() => resolve(`after ${ms}`), ms));

const once = { inputId: 'msg-1' };

it('an answer without tools', async () => {
  await sweep({
    script: ['hello'],
    drive: (process) => process.toEnd('hi', once),
    check: ({ checkpoint }) => expect(roles(checkpoint.messages)).toBe('user assistant'),
  });
});

it('one tool after the other', async () => {
  const { points } = await sweep({
    tools: [{ name: 'reserve' }, { name: 'charge' }, { name: 'ship' }],
    script: [calling('reserve'), calling('charge'), calling('ship'), 'done'],
    drive: (process) => process.toEnd('order 7', once),
    check({ checkpoint, ran, crashed }) {
      expect(roles(checkpoint.messages)).toBe('user assistant tool assistant tool assistant tool assistant');
      expect(checkpoint).toMatchObject({ stepIndex: 4, usage: { modelCalls: 4 } });
      // One crash re-runs at most the one call that was under way.
      expect(ran('reserve') + ran('charge') + ran('ship')).toBeLessThanOrEqual(crashed ? 4 : 3);
    },
  });
  // Acquire, load, 7 saves, release: twice each.
  expect(points).toBeGreaterThanOrEqual(20);
});

it('the same without an input id: the words are a retry', async () => {
  await sweep({
    tools: [{ name: 'charge' }],
    script: [calling('charge'), 'done'],
    // Sent again behind the end it would be a new turn.
    drive: async (process, { store }) => {
      const stored = await store.checkpoints?.load('order-7');
      return process.toEnd(stored?.status === 'finished' ? [] : 'charge');
    },
    check: ({ checkpoint }) => expect(roles(checkpoint.messages)).toBe('user assistant tool assistant'),
  });
});

it('calls that end in another order than they began', async () => {
  await sweep({
    tools: [{ name: 'slow', does: after(3_000) }, { name: 'fast' }, { name: 'middle', does: after(1_000) }],
    script: [calling('slow', 'fast', 'middle'), 'done'],
    drive: (process) => process.toEnd('go', once),
    check({ results }) {
      expect(results.map(({ toolName }) => toolName)).toEqual(['slow', 'fast', 'middle']);
    },
  });
});

it('one call at a time', async () => {
  await sweep({
    tools: [{ name: 'a' }, { name: 'b' }, { name: 'c' }],
    script: [calling('a', 'b', 'c'), 'done'],
    options: { toolConcurrency: 1 },
    drive: (process) => process.toEnd('go', once),
  });
});

it('calls that fail, do not fit, or have no tool', async () => {
  await sweep({
    tools: [
      {
        name: 'fails',
        does: () => {
          throw new Error('kaput');
        },
      },
      { name: 'picky', input: z.object({ to: z.string() }) },
    ],
    script: [calling('fails', ['picky', { to: 7 }], 'nobody'), 'done'],
    drive: (process) => process.toEnd('go', once),
    check({ results, ran }) {
      expect(results.map(({ kind }) => kind)).toEqual(['execution', 'validation', 'not-found']);
      expect(ran('picky')).toBe(0);
    },
  });
});

it('state that tools change together with their results', async () => {
  const count = (_args: JsonValue, ctx: ToolContext): void => {
    ctx.businessState = ((ctx.businessState as number | undefined) ?? 0) + 1;
  };
  await sweep({
    tools: [{ name: 'count', does: count }],
    script: [calling('count'), calling('count'), calling('count'), 'done'],
    drive: (process) => process.toEnd('go', once),
    // A call that runs again counts again only if its first count was not saved.
    check: ({ checkpoint }) => expect(checkpoint.businessState).toBe(3),
  });
});

it.each<readonly [string, Story['drive'], (end: StoryEnd) => void]>([
  [
    'approved',
    (process) => process.toEnd('pay', once),
    ({ results, ran }) => {
      const [pay] = results;
      expect(pay?.approval).toMatchObject({ approved: true });
      expect(ran('pay')).toBe(pay?.kind === 'interrupted' ? ran('pay') : 1);
      expect(ran('pay')).toBeLessThanOrEqual(1);
    },
  ],
  [
    'rejected',
    (process) => process.toEnd('pay', once, () => ({ approved: false, note: 'no' })),
    ({ results, ran }) => {
      expect(results[0]).toMatchObject({
        kind: 'rejected',
        result: { note: 'no' },
        approval: { approved: false },
      });
      expect(ran('pay')).toBe(0);
    },
  ],
  [
    'approved with changes',
    (process) => process.toEnd('pay', once, () => ({ approved: true, args: { amount: 5 }, by: 'ann' })),
    ({ checkpoint, results, ran }) => {
      expect([...answeredCalls(checkpoint.messages)][0]?.call.args).toEqual({ amount: 5 });
      expect(results[0]?.approval).toMatchObject({ proposedArgs: { amount: 10 }, by: 'ann' });
      expect(ran('pay')).toBeLessThanOrEqual(1);
    },
  ],
])('a call that is %s', async (_how, drive, check) => {
  await sweep({
    tools: [{ name: 'pay', needsApproval: true }],
    script: [calling(['pay', { amount: 10 }]), 'done'],
    drive,
    check,
  });
});

it('two gated calls beside free ones, decided differently', async () => {
  await sweep({
    tools: [
      { name: 'free' },
      { name: 'pay', needsApproval: true },
      { name: 'other', does: after(1_000) },
      { name: 'mail', needsApproval: true },
    ],
    script: [calling('free', 'pay', 'other', 'mail'), 'done'],
    drive: (process) => process.toEnd('go', once, (toolName) => ({ approved: toolName === 'pay' })),
    check({ results, ran }) {
      expect(results.map(({ toolName }) => toolName)).toEqual(['free', 'pay', 'other', 'mail']);
      expect(results[3]?.kind).toBe('rejected');
      expect([undefined, 'interrupted']).toContain(results[1]?.kind);
      expect(ran('pay')).toBeLessThanOrEqual(1);
      expect(ran('mail')).toBe(0);
    },
  });
});

it('two approved calls, one at a time: a crash in the first leaves the second as it was', async () => {
  await sweep({
    tools: [
      { name: 'pay', needsApproval: true },
      { name: 'mail', needsApproval: true },
    ],
    script: [calling('pay', 'mail'), 'done'],
    options: { toolConcurrency: 1 },
    drive: (process) => process.toEnd('go', once),
    check({ results, ran }) {
      expect(results.filter(({ kind }) => kind === 'interrupted').length).toBeLessThanOrEqual(1);
      for (const { toolName, kind } of results) {
        expect(ran(toolName)).toBeLessThanOrEqual(1);
        if (kind === undefined) expect(ran(toolName)).toBe(1);
      }
    },
  });
});

it('a pause in each of two steps', async () => {
  await sweep({
    tools: [{ name: 'pay', needsApproval: true }],
    script: [calling('pay'), calling('pay'), 'done'],
    drive: (process) => process.toEnd('go', once),
    check: ({ results, ran }) => {
      expect(results).toHaveLength(2);
      expect(ran('pay')).toBeLessThanOrEqual(2);
    },
  });
});

it.each(['never', 'ask'] as const)('a call that says "%s" of being cut', async (onInterrupted) => {
  await sweep({
    tools: [{ name: 'charge', onInterrupted }],
    script: [calling('charge'), 'done'],
    drive: (process) => process.toEnd('go', once, () => ({ approved: false })),
    check({ results, ran }) {
      expect(ran('charge')).toBeLessThanOrEqual(1);
      if (results[0]?.kind === undefined) expect(ran('charge')).toBe(1);
    },
  });
});

it('a cut call that a person has run again', async () => {
  await sweep({
    tools: [{ name: 'charge', onInterrupted: 'ask' }],
    script: [calling('charge'), 'done'],
    drive: (process) => process.toEnd('go', once, () => ({ approved: true })),
    check({ results, ran }) {
      expect(ran('charge')).toBeLessThanOrEqual(2);
      expect([undefined, 'interrupted']).toContain(results[0]?.kind);
    },
  });
});

it.each([true, false])(
  'a call that asks twice in the middle of its work (approved before: %s)',
  async (needsApproval) => {
    await sweep({
      tools: [
        {
          name: 'book',
          needsApproval,
          onInterrupted: 'never',
          does(_args, { answer }, world) {
            if (answer === undefined) return askPerson({ text: 'Where?' }, {});
            const state = answer.state as { readonly where?: string };
            if (state.where === undefined) return askPerson({ text: 'When?' }, { where: answer.text });
            world.effect('booked');
            return { where: state.where, when: answer.text };
          },
        },
        { name: 'free' },
      ],
      script: [calling('book', 'free'), 'done'],
      drive: (process) =>
        process.toEnd('go', once, (_name, kind) => ({
          approved: true,
          ...(kind === 'question' ? { answer: 'x' } : undefined),
        })),
      check({ results, ran, crashed }) {
        const [book] = results;
        expect(ran('booked')).toBeLessThanOrEqual(1);
        expect(ran('book')).toBeLessThanOrEqual(3);
        if (!crashed) expect(ran('book')).toBe(3);
        if (book?.kind === undefined) expect(book?.result).toEqual({ where: 'x', when: 'x' });
        else expect([book.kind, crashed]).toEqual(['interrupted', true]);
        expect(book?.approval !== undefined).toBe(needsApproval);
        expect(results[1]?.kind).toBeUndefined();
      },
    });
  },
);

it('a cut call that looks whether it happened', async () => {
  // What happened at the bank, for each pass of the sweep.
  let booked = false;
  await sweep({
    tools: [
      {
        name: 'charge',
        does: () => (booked = true),
        onInterrupted: () => (booked ? { result: 'found' } : 'retry'),
      },
    ],
    script: [calling('charge'), 'done'],
    drive(process, { restart }) {
      if (restart === 0) booked = false;
      return process.toEnd('go', once);
    },
    check({ results, ran }) {
      expect(ran('charge')).toBe(1);
      expect([true, 'found']).toContain(results[0]?.result);
    },
  });
});

it('a run that is aborted, and goes on with other words', async () => {
  await sweep({
    tools: [{ name: 'a' }, { name: 'b' }],
    script: [calling('a', 'b'), 'as you wish'],
    options: { toolConcurrency: 1 },
    async drive(process, { restart }) {
      if (restart === 0) {
        const run = process.stream('go', {
          inputId: 'msg-1',
          onEvent: ({ type }) => type === 'tool.done' && run.abort(),
        });
        expect((await run.result).finishReason).toBe('aborted');
      }
      return process.toEnd('do X instead', { inputId: 'msg-2' });
    },
    check({ checkpoint, results }) {
      expect(results.map(({ toolName }) => toolName)).toEqual(['a', 'b']);
      const words = checkpoint.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
      // A crash before the first save leaves nothing of the first words.
      expect([['go', 'do X instead'], ['do X instead']]).toContainEqual(words);
    },
  });
});

it('new words for a run that failed', async () => {
  let isDown = true;
  await sweep({
    tools: [{ name: 'a' }],
    script: [
      calling('a'),
      () => {
        if (isDown) throw new Error('down');
        return 'done';
      },
    ],
    options: { retry: { maxRetries: 0 } },
    async drive(process, { restart, store }) {
      if (restart === 0) isDown = true;
      const stored = await store.checkpoints?.load('order-7');
      if (isDown && stored?.inputIds.includes('msg-2') !== true)
        await process.send('go', once).catch(() => undefined);
      isDown = false;
      return process.toEnd('and hurry', { inputId: 'msg-2' });
    },
    check({ checkpoint }) {
      const words = checkpoint.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
      // A crash before the first response leaves nothing of the first words.
      expect([['go', 'and hurry'], ['and hurry']]).toContainEqual(words);
    },
  });
});

it('words that come while a tool runs', async () => {
  await sweep({
    tools: [{ name: 'a', does: after(2_000) }],
    script: [calling('a'), 'done', 'done again'],
    async drive(process, { restart }) {
      if (restart > 0) return process.toEnd('go', once);
      const run = process.stream('go', once);
      for await (const { type } of run) if (type === 'tool.start') void run.enqueue('metric units');
      return run.result;
    },
    check({ checkpoint, crashed }) {
      const words = checkpoint.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
      if (!crashed) expect(words).toEqual(['go', 'metric units']);
      else expect([['go', 'metric units'], ['go']]).toContainEqual(words);
    },
  });
});

it('words that steer', async () => {
  await sweep({
    tools: [{ name: 'a', does: after(2_000) }, { name: 'b' }],
    script: [calling('a', 'b'), 'as you wish'],
    options: { toolConcurrency: 1 },
    async drive(process, { restart }) {
      if (restart > 0) return process.toEnd('go', once);
      const run = process.stream('go', once);
      for await (const { type } of run) if (type === 'tool.start') void run.steer('not b');
      return run.result;
    },
    check({ results, ran, crashed }) {
      expect(results.map(({ toolName }) => toolName)).toEqual(['a', 'b']);
      if (!crashed) expect([results[1]?.kind, ran('b')]).toEqual(['not-run', 0]);
    },
  });
});

it('two turns of one conversation', async () => {
  await sweep({
    tools: [{ name: 'a' }],
    script: [calling('a'), 'first', calling('a'), 'second'],
    async drive(process) {
      await process.toEnd('one', { inputId: 'msg-1' });
      return process.toEnd('two', { inputId: 'msg-2' });
    },
    check({ checkpoint }) {
      expect(roles(checkpoint.messages)).toBe('user assistant tool assistant user assistant tool assistant');
      expect(checkpoint).toMatchObject({ stepIndex: 2, usage: { modelCalls: 2 } });
    },
  });
});

it('new words beyond a spent budget', async () => {
  await sweep({
    tools: [{ name: 'a', does: after(2_000) }],
    script: [calling('a'), 'done'],
    options: { maxSteps: 1 },
    async drive(process, { restart }) {
      if (restart > 0) return process.toEnd('go', once);
      const run = process.stream('go', once);
      for await (const { type } of run) if (type === 'tool.start') void run.enqueue('and?');
      return run.result;
    },
    check({ checkpoint, crashed }) {
      if (!crashed) expect(roles(checkpoint.messages)).toBe('user assistant tool user assistant');
      expect(checkpoint.heldInput).toEqual([]);
    },
  });
});

it('a tool that rejects the run until the world is better', async () => {
  let isBroken = true;
  await sweep({
    tools: [
      {
        name: 'print',
        does: () => {
          if (isBroken) throw new PropagatingToolError('no paper');
          return 'printed';
        },
      },
      { name: 'sibling' },
    ],
    script: [calling('print', 'sibling'), 'done'],
    async drive(process, { restart }) {
      if (restart === 0) {
        isBroken = true;
        await process.send('go', once).catch(() => undefined);
      }
      isBroken = false;
      return process.toEnd('go', once);
    },
    check({ checkpoint, results }) {
      expect(results.map(({ result }) => result)).toEqual(['printed', 'sibling ok']);
      expect(checkpoint).not.toHaveProperty('lastError');
    },
  });
});

it('a provider that needs a second try', async () => {
  let tries = 0;
  await sweep({
    tools: [{ name: 'a' }],
    script: [
      calling('a'),
      () => {
        tries += 1;
        if (tries % 2 === 1) throw new Error('busy');
        return 'done';
      },
    ],
    drive(process, { restart }) {
      if (restart === 0) tries = 0;
      return process.toEnd('go', once);
    },
    check: ({ checkpoint }) => expect(checkpoint.usage.modelCalls).toBe(2),
  });
});

it('over the store that keeps runs in memory, too', async () => {
  await sweep(
    {
      tools: [{ name: 'free' }, { name: 'pay', needsApproval: true }],
      script: [calling('free', 'pay'), 'done'],
      drive: (process) => process.toEnd('go', once),
      check: ({ checkpoint, ran }) => {
        expect(resultFor(checkpoint.messages, 'free').result).toBe('free ok');
        expect(ran('pay')).toBeLessThanOrEqual(1);
      },
    },
    memoryStore,
  );
});

it('notices a tool that is run once too often: the sweep can fail', async () => {
  let count = 0;
  const twice = deepFreeze({ name: 'charge' });
  await expect(
    sweep({
      tools: [
        {
          ...twice,
          does: (_args, _ctx, world) => {
            count += 1;
            // As if an approved call ran again behind a crash.
            if (world.restart > 0 || count > 0) world.effect(world.restart > 0 ? 'charge' : 'nothing');
          },
          needsApproval: true,
        },
      ],
      script: [calling('charge'), 'done'],
      drive: (process) => process.toEnd('go', once),
      check: ({ ran }) => expect(ran('charge')).toBeLessThanOrEqual(1),
    }),
  ).rejects.toThrow();
});
