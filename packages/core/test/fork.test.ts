/** `agent.fork()`: a run of its own that begins with what another one was at a step, on every store. */
import { resultOf, type Checkpoint, type Message } from '@lousho/contract';
import { mockModel, type MockResponse } from '@lousho/testing';
import { expect, it } from 'vitest';
import { compareTrajectories } from '../src/index.ts';
import { expectValid, lines, refusal, rejection, roles } from './support/read.ts';
import { watchedRecovery } from './support/recovery.ts';
import { checkpointsWithout, storeOf } from './support/stores.ts';
import { failingOnceTool, gatedTool, spyTool, type SpyTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const call = (name: string, id: string): MockResponse => ({ toolCalls: [{ name, id }] });

/** weather, picnic, report. */
async function givenTrip(world: World, more: readonly MockResponse[] = []) {
  const weather = spyTool('weather', () => ({ sky: 'sunny' }));
  const picnic = spyTool('plan_picnic');
  const umbrella = spyTool('buy_umbrella');
  const model = mockModel([call('weather', 'call_w'), call('plan_picnic', 'call_p'), 'A picnic.', ...more]);
  const tools = [weather.tool, picnic.tool, umbrella.tool];
  const agent = world.agent({ provider: model, tools, instructions: 'Plan trips.', maxSteps: 3 });
  await agent.send('Plan my trip', { sessionId: 'trip', businessState: { budget: 100 } });
  return { agent, model, weather, picnic, umbrella, tools };
}

async function everything(world: World, id: string) {
  return JSON.stringify([await world.stored(id), await world.checkpoints.history(id)]);
}

async function storedRun(world: World, id: string): Promise<Checkpoint> {
  const checkpoint = await world.stored(id);
  if (checkpoint === null) throw new Error(`${id} is not there`);
  return checkpoint;
}

/** A run whose only call of `tool` is open. */
async function givenOpenCall(world: World, tool: SpyTool) {
  const model = mockModel([call(tool.tool.name, 'call_a'), 'Done.', 'Done again.']);
  const agent = world.agent({ provider: model, tools: [tool.tool] });
  await rejection(agent.send('go', { sessionId: 'job-1' }));
  return { agent, model };
}

onEveryStore('a fork', (world) => {
  it('with another result goes another way from there, and leaves its source as it was', async () => {
    const { agent, weather, umbrella, picnic } = await givenTrip(world, [
      call('buy_umbrella', 'call_u'),
      'With an umbrella.',
    ]);
    const before = await everything(world, 'trip');
    const fork = await agent.fork('trip', {
      fromStep: 1,
      patch: { toolResult: { toolCallId: 'call_w', result: { sky: 'rain' } } },
    });
    expect(fork).toMatchObject({ sessionId: 'trip.fork-1', step: 1, checkpoint: { status: 'in-progress' } });
    expect(await world.stored('trip.fork-1')).toEqual(fork.checkpoint);
    expect(roles(fork.checkpoint.messages)).toBe('system user assistant tool');
    expect(fork.checkpoint.messages.map(resultOf).at(-1)).toEqual({
      type: 'tool-result',
      toolCallId: 'call_w',
      toolName: 'weather',
      result: { sky: 'rain' },
    });
    expect(fork.checkpoint).toMatchObject({
      forkedFrom: { sessionId: 'trip', step: 1 },
      stepIndex: 1,
      businessState: { budget: 100 },
    });
    await agent.resume('trip.fork-1');
    expect([weather.runs.length, picnic.runs.length, umbrella.runs.length]).toEqual([1, 1, 1]);
    expect(await everything(world, 'trip')).toBe(before);
    const { divergedAt, drift } = compareTrajectories(
      await storedRun(world, 'trip'),
      await storedRun(world, 'trip.fork-1'),
    );
    expect(divergedAt).toBe(1);
    expect(drift).toContainEqual({
      field: 'tools',
      committed: 'weather > plan_picnic',
      current: 'weather > buy_umbrella',
    });
  });

  it('without a patch is what the source was, under the next free id', async () => {
    const { agent } = await givenTrip(world);
    await agent.fork('trip', { fromStep: 1 });
    const { sessionId, checkpoint } = await agent.fork('trip', { fromStep: 2 });
    expect(sessionId).toBe('trip.fork-2');
    const { a, b, divergedAt, drift } = compareTrajectories(await storedRun(world, 'trip'), checkpoint);
    expect([divergedAt, a.length, b.length]).toEqual([3, 3, 2]);
    expect(b).toEqual(a.slice(0, 2));
    expect(drift).toEqual([{ field: 'steps', committed: 3, current: 2 }]);
  });

  it('takes all patches, in their order, and the model sees the new message last', async () => {
    const { agent, model } = await givenTrip(world, ['Then a museum.']);
    const { checkpoint } = await agent.fork('trip', {
      fromStep: 2,
      newSessionId: 'museum',
      patch: {
        appendInput: 'No picnic.',
        toolResult: { toolCallId: 'call_p', result: 'full' },
        businessState: null,
        messages: (messages) =>
          messages.map((message): Message =>
            message.role === 'user' ? { ...message, content: 'Plan a day' } : message,
          ),
      },
    });
    expect(checkpoint.businessState).toBeNull();
    const result = await agent.resume('museum');
    expect(result?.text).toBe('Then a museum.');
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual([
      'system Plan trips.',
      'user Plan a day',
      'assistant weather#call_w',
      'tool call_w {"sky":"sunny"}',
      'assistant plan_picnic#call_p',
      'tool call_p "full"',
      'user No picnic.',
    ]);
    expect(result?.toolCalls.map(({ toolName }) => toolName)).toEqual(['weather', 'plan_picnic']);
  });

  it('keeps the steps and the usage of its source: what is left of the budget is for it', async () => {
    const { agent, model } = await givenTrip(world, [call('weather', 'call_w2'), 'never asked']);
    const fork = await agent.fork('trip', { fromStep: 2, patch: { appendInput: 'And then?' } });
    expect(fork.checkpoint.usage.modelCalls).toBe(2);
    const result = await agent.resume(fork.sessionId);
    expect([result?.finishReason, result?.steps, result?.usage.modelCalls]).toEqual(['max-steps', 3, 3]);
    expect(model.calls).toHaveLength(4);
  });

  it('of a finished run finishes without a model call, and with a new message goes on', async () => {
    const model = mockModel(['Hello.', 'Hello again.']);
    const agent = world.agent({ provider: model });
    await agent.send('hi', { sessionId: 'chat' });
    const plain = await agent.fork('chat', { fromStep: 1 });
    expect((await agent.resume(plain.sessionId))?.text).toBe('Hello.');
    expect(model.calls).toHaveLength(1);
    const longer = await agent.fork('chat', { fromStep: 1, patch: { appendInput: 'Once more' } });
    expect((await agent.resume(longer.sessionId))?.text).toBe('Hello again.');
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual([
      'user hi',
      'assistant Hello.',
      'user Once more',
    ]);
  });

  it('runs a call without a result first, as one that never began, under a key of its own', async () => {
    const work = failingOnceTool('work');
    const { agent, model } = await givenOpenCall(world, work);
    await agent.fork('job-1', { fromStep: 1, patch: { appendInput: 'Be quick.' } });
    expect((await agent.resume('job-1.fork-1'))?.text).toBe('Done.');
    expect(work.runs.map(({ ctx }) => ctx.rerun)).toEqual([false, false]);
    expect(new Set(work.runs.map(({ ctx }) => ctx.idempotencyKey)).size).toBe(2);
    expect(lines(model.calls.at(-1)?.messages ?? [])).toEqual([
      'user go',
      'assistant work#call_a',
      'tool call_a "work done"',
      'user Be quick.',
    ]);
  });

  it('records a result for an open call, which then does not run', async () => {
    const work = failingOnceTool('work');
    const { agent } = await givenOpenCall(world, work);
    const patch = { toolResult: { toolCallId: 'call_a', result: 'by hand' } };
    const { checkpoint } = await agent.fork('job-1', { fromStep: 1, patch });
    expect(lines(checkpoint.messages).at(-1)).toBe('tool call_a "by hand"');
    const result = await agent.resume('job-1.fork-1');
    expect([result?.text, work.runs.length]).toEqual(['Done.', 1]);
    expectValid(result?.messages ?? []);
  });

  it('carries nothing over of failures, decisions and marks', async () => {
    const work = failingOnceTool('work');
    const { agent } = await givenOpenCall(world, work);
    expect(await world.stored('job-1')).toMatchObject({ attempts: 1 });
    const { checkpoint } = await agent.fork('job-1', { fromStep: 1 });
    for (const field of ['lastError', 'attempts', 'parkedAt', 'traceparent'])
      expect(checkpoint).not.toHaveProperty(field);
    expect(checkpoint).toMatchObject({ approvals: [], startedToolCallIds: [], delegatedInFlight: [] });
    expect(checkpoint.runId).not.toBe((await world.stored('job-1'))?.runId);
  });

  it('of a paused run asks again, and the old approval still belongs to its source', async () => {
    const work = spyTool('work');
    const charge = gatedTool('charge');
    const model = mockModel([call('work', 'call_w'), call('charge', 'call_c'), 'Paid.', 'Paid.']);
    const agent = world.agent({ provider: model, tools: [work.tool, charge.tool] });
    const { approvalId: old = '' } = await agent.send('pay', { sessionId: 'job-1' });
    await agent.fork('job-1', { fromStep: 2 });
    expect(await world.stored('job-1.fork-1')).toMatchObject({ status: 'in-progress', approvals: [] });
    const paused = await agent.resume('job-1.fork-1');
    expect(paused?.finishReason).toBe('awaiting-approval');
    expect(paused?.approvalId).not.toBe(old);
    expect([work.runs.length, charge.runs.length]).toEqual([1, 0]);
    await agent.approvals.resolve({ id: old, approved: true });
    await agent.approvals.resolve({ id: paused?.approvalId ?? '', approved: true });
    expect(charge.runs).toHaveLength(2);
    expect(await agent.pending()).toEqual([]);
  });

  it('waits for whoever made it: recovery leaves it alone until it was resumed', async () => {
    const work = failingOnceTool('work');
    const { agent } = await givenOpenCall(world, work);
    const { sessionId } = await agent.fork('job-1', { fromStep: 1 });
    await world.checkpoints.delete('job-1');
    expect(await agent.pending()).toMatchObject([{ sessionId, kind: 'run', status: 'in-progress', step: 1 }]);
    const recovery = watchedRecovery(agent, { intervalMs: 1_000 });
    await world.clock.advance(5_000);
    expect([work.runs.length, recovery.recovered]).toEqual([1, []]);
    await recovery.stop();
    expect((await agent.resume(sessionId))?.text).toBe('Done.');
  });

  it('that was resumed and interrupted is recovered like any run', async () => {
    const { agent } = await givenOpenCall(world, failingOnceTool('work'));
    await agent.fork('job-1', { fromStep: 1 });
    await world.checkpoints.delete('job-1');
    const lethal = world.agent({ provider: mockModel([]), tools: [failingOnceTool('work').tool] });
    await rejection(lethal.resume('job-1.fork-1'));
    const recovery = watchedRecovery(
      world.agent({ provider: mockModel(['Done.']), tools: [spyTool('work').tool] }),
    );
    await world.clock.advance(60_000);
    await until(() => recovery.recovered.length === 1);
    expect(recovery.recovered).toEqual(['job-1.fork-1: Done.']);
    await recovery.stop();
  });

  it('takes the newest run of an id with several, and an older one by its run id', async () => {
    const model = mockModel(['One.', 'Two.', 'Three.']);
    const agent = world.agent({ provider: model });
    const first = await agent.send('a', { sessionId: 'chat' });
    await agent.send('b', { sessionId: 'chat' });
    const newest = await agent.fork('chat', { fromStep: 1 });
    expect(lines(newest.checkpoint.messages).at(-1)).toBe('assistant Two.');
    const older = await agent.fork('chat', { fromStep: 1, runId: first.runId });
    expect(lines(older.checkpoint.messages)).toEqual(['user a', 'assistant One.']);
  });

  it('of one moment gets an id of its own, also when twenty are made at once', async () => {
    const { agent } = await givenTrip(world);
    const other = world.otherProcess().agent({ provider: mockModel([]) });
    const forks = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? agent : other).fork('trip', { fromStep: 1 }),
      ),
    );
    const ids = new Set(forks.map(({ sessionId }) => sessionId));
    expect(ids.size).toBe(20);
    for (const { sessionId, checkpoint } of forks) expect(await world.stored(sessionId)).toEqual(checkpoint);
  });
});

onEveryStore('a fork that cannot be made', (world) => {
  it('says which steps there are, and of an unknown run that there are none', async () => {
    const { agent } = await givenTrip(world);
    const error = await refusal(agent.fork('trip', { fromStep: 9 }), 'LOUSHO_CHECKPOINT_NOT_FOUND');
    expect(error.message).toContain('1, 2, 3');
    expect(error.details.keptSteps).toEqual([1, 2, 3]);
    const unknown = await refusal(agent.fork('nobody', { fromStep: 1 }), 'LOUSHO_CHECKPOINT_NOT_FOUND');
    expect(unknown.details.keptSteps).toEqual([]);
    expect(await world.stored('trip.fork-1')).toBeNull();
  });

  it('leaves the run whose id it was to have', async () => {
    const { agent } = await givenTrip(world);
    const before = await everything(world, 'trip');
    await refusal(agent.fork('trip', { fromStep: 1, newSessionId: 'trip' }), 'LOUSHO_SESSION_EXISTS');
    await agent.fork('trip', { fromStep: 1, newSessionId: 'mine' });
    await refusal(agent.fork('trip', { fromStep: 2, newSessionId: 'mine' }), 'LOUSHO_SESSION_EXISTS');
    expect((await world.stored('mine'))?.stepIndex).toBe(1);
    expect(await everything(world, 'trip')).toBe(before);
  });

  it('refuses ids that no run may have, and says how to name a fork whose id would be too long', async () => {
    const { agent } = await givenTrip(world);
    const code = 'LOUSHO_SESSION_ID_INVALID';
    await refusal(agent.fork('trip', { fromStep: 1, newSessionId: 'a b' }), code);
    await refusal(agent.fork('trip', { fromStep: 1, newSessionId: 'trip.turn-1' }), code);
    await refusal(agent.fork('chat.turn-3', { fromStep: 1 }), code);
    const long = 'x'.repeat(195);
    await world.agent({ provider: mockModel(['Hi.']) }).send('hi', { sessionId: long });
    const tooLong = await refusal(agent.fork(long, { fromStep: 1 }), code);
    expect(tooLong.message).toContain('newSessionId');
    expect((await agent.fork(long, { fromStep: 1, newSessionId: 'short' })).sessionId).toBe('short');
  });

  it('needs a store with a history', async () => {
    const { tools } = await givenTrip(world);
    const store = storeOf(checkpointsWithout(world.checkpoints, 'history'));
    const agent = world.agent({ provider: mockModel([]), tools, store });
    const error = await refusal(agent.fork('trip', { fromStep: 1 }), 'LOUSHO_CONFIG_INVALID');
    expect(error.details.option).toBe('checkpointStore');
  });

  it.each<[string, object, string]>([
    ['an unknown call', { toolResult: { toolCallId: 'call_x', result: 1 } }, 'patch.toolResult.toolCallId'],
    [
      'a result that is no JSON',
      { toolResult: { toolCallId: 'call_w', result: 1n } },
      'patch.toolResult.result',
    ],
    ['a state that is no JSON', { businessState: { at: () => 1 } }, 'patch.businessState.at'],
    ['input of the model', { appendInput: { role: 'assistant', content: [] } }, 'patch.appendInput'],
    [
      'a call without its result',
      {
        messages: (all: Message[]) =>
          all.filter(({ role }) => role !== 'tool').concat({ role: 'user', content: 'x' }),
      },
      'patch.messages',
    ],
    [
      'a result without its call',
      { messages: (all: Message[]) => all.filter(({ role }) => role !== 'assistant') },
      'patch.messages',
    ],
    ['no messages', { messages: () => 'none' }, 'patch.messages'],
    ['no transcript', { messages: () => [] }, 'patch.messages'],
    ['an unknown patch', { message: 'x' }, 'patch.message'],
  ])('refuses %s, and stores nothing', async (_what, patch, option) => {
    const { agent } = await givenTrip(world);
    const before = await everything(world, 'trip');
    const error = await refusal(agent.fork('trip', { fromStep: 1, patch: patch }), 'LOUSHO_CONFIG_INVALID');
    expect(error.details.option).toBe(option);
    expect(await world.stored('trip.fork-1')).toBeNull();
    expect(await everything(world, 'trip')).toBe(before);
  });

  it('refuses a result for an id that two calls have', async () => {
    const work = spyTool('work');
    const agent = world.agent({
      provider: mockModel([call('work', 'call_0'), call('work', 'call_0'), 'Done.']),
      tools: [work.tool],
    });
    await agent.send('go', { sessionId: 'job-1' });
    const patch = { toolResult: { toolCallId: 'call_0', result: 'x' } };
    await refusal(agent.fork('job-1', { fromStep: 2, patch }), 'LOUSHO_CONFIG_INVALID');
    expect(lines((await agent.fork('job-1', { fromStep: 1, patch })).checkpoint.messages).at(-1)).toBe(
      'tool call_0 "x"',
    );
  });
});
