import { describe, expect, it } from 'vitest';
import { calling, givenStorage, givenWorld, need, noting, roles, type Setup } from './support.ts';

function givenLoop(more: Partial<Setup> = {}) {
  const storage = givenStorage();
  return givenWorld({
    storage,
    tools: [noting(storage, 'a')],
    script: Array.from({ length: 10 }, () => calling('a')),
    ...more,
  });
}

describe('the step budget', () => {
  it.each([1, 2, 3, 4])('of %i ends the run behind the results of its last step', async (maxSteps) => {
    const world = givenLoop({ maxSteps });
    const result = await world.send('go');
    expect(result).toMatchObject({ finishReason: 'max-steps', steps: maxSteps });
    expect(world.timesRun('a')).toBe(maxSteps);
    expect(result.messages.at(-1)?.role).toBe('tool');
  });

  it('is 10 unless it is said otherwise', async () => {
    expect(await givenLoop().send('go')).toMatchObject({ finishReason: 'max-steps', steps: 10 });
  });

  it('is not spent by the last answer', async () => {
    const world = givenLoop({ maxSteps: 2, script: [calling('a'), 'done'] });
    expect(await world.send('go')).toMatchObject({ finishReason: 'stop', steps: 2 });
  });

  it('counts over all processes, and usage counts each call once', async () => {
    let world = givenLoop({ maxSteps: 5, diesAt: { call: 'saveIfLeased#1', when: 'after' } });
    await world.untilDead(world.send('go'));
    for (let step = 2; step <= 4; step += 1) {
      // The save of the resume, of the result, of the next response: dies behind that one.
      world = await world.afterCrash({ diesAt: { call: 'saveIfLeased#3', when: 'after' } });
      await world.untilDead(world.resume());
    }
    world = await world.afterCrash();
    expect(await world.resume()).toMatchObject({
      finishReason: 'max-steps',
      steps: 5,
      usage: { modelCalls: 5, inputTokens: 5 },
    });
  });

  it('spent before a crash still has the open calls run, and asks no model', async () => {
    const world = givenLoop({ maxSteps: 1, diesAt: { call: 'saveIfLeased#1', when: 'after' } });
    await world.untilDead(world.send('go'));
    const resumed = await world.afterCrash({ script: [] });
    expect(await resumed.resume()).toMatchObject({ finishReason: 'max-steps' });
    expect(world.timesRun('a')).toBe(1);
    expect(await resumed.stored()).toMatchObject({ status: 'finished' });
  });

  it.each([
    ['with open calls', 'saveIfLeased#1'],
    ['behind its last result', 'saveIfLeased#2'],
  ])('spent before a crash, %s: new words get a run of their own in the same call', async (_where, call) => {
    const world = givenLoop({ maxSteps: 1, diesAt: { call, when: 'after' } });
    await world.untilDead(world.send('go'));
    const { runId } = need(await world.stored());
    const next = await world.afterCrash({ script: ['hello'] });
    const result = await next.send('are you there?');
    expect(result).toMatchObject({ finishReason: 'stop', text: 'hello', steps: 1, usage: { modelCalls: 1 } });
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
    expect(result.runId).not.toBe(runId);
    expect(result.toolCalls).toEqual([]);
    expect(world.timesRun('a')).toBe(1);
  });
});

it('a call of the run that new words start is not taken for one that had begun before', async () => {
  const reruns: boolean[] = [];
  const storage = givenStorage();
  const tools = [noting(storage, 'a', (_args, { rerun }) => void reruns.push(rerun))];
  const world = givenLoop({ storage, tools, maxSteps: 1, diesAt: { call: 'saveIfLeased#1', when: 'after' } });
  await world.untilDead(world.send('go'));
  await (await world.afterCrash({ script: [calling('a')] })).send('once more');
  expect(reruns).toEqual([true, false]);
});

describe('limits', () => {
  it.each([
    [{ maxModelCalls: 2 }, 2, { name: 'maxModelCalls', max: 2, used: 2 }],
    [{ maxToolCalls: 1 }, 1, { name: 'maxToolCalls', max: 1, used: 1 }],
    [{ maxTotalTokens: 5 }, 3, { name: 'maxTotalTokens', max: 5, used: 6 }],
  ] as const)('%o ends the run, saying which and how much', async (limits, steps, limit) => {
    const world = givenLoop({ limits });
    expect(await world.send('go')).toMatchObject({ finishReason: 'limit', steps, limit });
    expect(await world.stored()).toMatchObject({ status: 'finished', finishReason: 'limit', limit });
    // The stored run answers with it again.
    expect(await world.send([])).toMatchObject({ finishReason: 'limit', limit });
  });

  it('count from 0 in the next turn', async () => {
    const world = givenLoop({ limits: { maxModelCalls: 1 }, script: ['one', 'two'] });
    await world.send('go');
    expect(await world.send('again')).toMatchObject({ finishReason: 'stop', text: 'two' });
  });

  it('leave an answer that came in time an answer', async () => {
    const world = givenLoop({ limits: { maxModelCalls: 1 }, script: ['done'] });
    expect((await world.send('go')).finishReason).toBe('stop');
  });

  it('of cost count only what providers report', async () => {
    const priced = { ...(calling('a') as object), usage: { inputTokens: 1, outputTokens: 1, costUsd: 0.1 } };
    const unpriced = { ...(calling('a') as object), usage: { inputTokens: 1, outputTokens: 1 } };
    const limits = { maxCostUsd: 0.15 };
    expect(await givenLoop({ limits, script: [priced, priced] }).send('go')).toMatchObject({
      finishReason: 'limit',
      steps: 2,
    });
    expect(
      await givenLoop({ limits, maxSteps: 4, script: [unpriced, priced, priced, priced] }).send('go'),
    ).toMatchObject({ finishReason: 'max-steps' });
  });
});
