/** Words that come while a run executes: they wait for the step's results, or take the place of what nobody has heard. */
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { eventsOf, expectValid, lines, typesOf } from './support/read.ts';
import { deferred, spyTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

/** `slow` runs until the test lets it end; `later` waits for its turn. */
function givenSlow(world: World, ...answers: readonly string[]) {
  const gate = deferred<string>();
  const slow = spyTool('slow', () => gate.promise);
  const later = spyTool('later');
  const model = mockModel([{ toolCalls: [{ name: 'slow' }, { name: 'later' }] }, ...answers], {
    answerBy: 'step',
  });
  const agent = world.agent({ provider: model, tools: [slow.tool, later.tool], toolConcurrency: 1 });
  const run = agent.stream('go', { sessionId: 'a' });
  return { agent, run, model, gate, later, isRunning: () => until(() => slow.runs.length === 1) };
}

onEveryStore('words for a run under way', (world) => {
  it('reach the next model call, and are told of in order', async () => {
    const { run, model, gate, isRunning } = givenSlow(world, 'In metric units.');
    const reading = eventsOf(run);
    await isRunning();
    const queued = run.enqueue('metric units');
    expect(await queued.joined).toBe(true);
    gate.resolve('slow done');
    expect((await run.result).text).toBe('In metric units.');
    expect(lines(model.calls[1]?.messages ?? []).at(-1)).toBe('user metric units');
    const types = typesOf(await reading);
    expect(types.indexOf('input.queued')).toBeGreaterThan(types.indexOf('tool.start'));
    expect(types.indexOf('input.queued')).toBeLessThan(types.indexOf('tool.done'));
    expect(types[types.indexOf('input.applied') + 1]).toBe('step.start');
  });

  it('buy one more step when the model writes its last ones', async () => {
    const gate = deferred();
    const model = mockModel([
      async () => {
        await gate.promise;
        return 'left';
      },
      'right',
    ]);
    const run = world.agent({ provider: model }).stream('where?', { sessionId: 'a' });
    await until(() => model.calls.length === 1);
    run.enqueue('and then?');
    gate.resolve();
    const { text, messages, steps } = await run.result;
    expect([text, steps]).toEqual(['right', 2]);
    expect(lines(messages)).toEqual(['user where?', 'assistant left', 'user and then?', 'assistant right']);
  });

  it('that come when it is over are told so', async () => {
    const run = world.agent({ provider: mockModel(['done']) }).stream('go', { sessionId: 'a' });
    await run.result;
    for (const queued of [run.enqueue('more'), run.steer('more')]) {
      expect(queued.applied).toBe(false);
      expect(await queued.joined).toBe(false);
    }
  });

  it('that were stored outlive an abort: the next call has them', async () => {
    const { agent, run, gate, isRunning } = givenSlow(world, 'In metric units.');
    await isRunning();
    expect(await run.enqueue('metric units').joined).toBe(true);
    run.abort();
    gate.resolve('slow done');
    expect((await run.result).finishReason).toBe('aborted');
    const result = await agent.resume('a');
    expect(lines(result?.messages ?? []).slice(-2)).toEqual([
      'user metric units',
      'assistant In metric units.',
    ]);
    expectValid(result?.messages ?? []);
  });

  it('that steer take the place of a model call that has said nothing', async () => {
    const model = mockModel([{ text: 'never heard', delayMs: 60_000 }, 'as you wish'], {
      clock: world.clock,
    });
    const run = world.agent({ provider: model }).stream('go left', { sessionId: 'a' });
    const reading = eventsOf(run);
    await until(() => model.calls.length === 1);
    const steered = run.steer('no, right');
    const result = await run.result;
    expect(steered.applied).toBe('immediate');
    expect(result).toMatchObject({ text: 'as you wish', steps: 2, usage: { modelCalls: 2 } });
    expect(lines(result.messages)).toEqual(['user go left', 'user no, right', 'assistant as you wish']);
    const events = await reading;
    expect(events.find(({ type }) => type === 'step.done')).toMatchObject({
      step: 1,
      finishReason: 'steered',
    });
    const types = typesOf(events);
    expect(types[types.indexOf('input.applied') + 1]).toBe('step.start');
    expect(JSON.stringify(await world.saves('a'))).not.toContain('never heard');
  });

  it('that steer keep calls from starting that have not begun', async () => {
    const { run, gate, later, isRunning } = givenSlow(world, 'as you wish');
    await isRunning();
    expect(run.steer('stop that').applied).toBe('queued');
    gate.resolve('kept');
    const { messages } = await run.result;
    expect(lines(messages)).toEqual([
      'user go',
      'assistant slow#call_1 later#call_2',
      'tool call_1 "kept"',
      'tool call_2 not-run',
      'user stop that',
      'assistant as you wish',
    ]);
    expect(later.runs).toEqual([]);
  });
});
