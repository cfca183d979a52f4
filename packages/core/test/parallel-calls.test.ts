/** Several calls in one model response: they run together, results stand in call order, and each is stored as it settles. */
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { eventsOf, expectValid, lines, refusal, results, thrown } from './support/read.ts';
import { checkpointsWith, storeOf } from './support/stores.ts';
import { deferred, spyTool } from './support/tools.ts';
import { letPass, until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

onEveryStore('calls of one response', (world) => {
  const calls = (...names: readonly string[]) => ({
    toolCalls: names.map((name) => ({ name, id: `call_${name}` })),
  });

  function givenSlowAndFast(concurrency?: number) {
    const slow = deferred<string>();
    const a = spyTool('a', () => slow.promise);
    const b = spyTool('b');
    const model = mockModel([calls('a', 'b'), 'Done.']);
    const agent = world.agent({ provider: model, tools: [a.tool, b.tool], toolConcurrency: concurrency });
    return { slow, a, b, model, agent };
  }

  const hasEarlyResult = async () => (await world.stored('job-1'))?.settledResults.length === 1;

  it('have all begun before any ends', async () => {
    const { slow, a, b, agent } = givenSlowAndFast();
    const sent = agent.send('go', { sessionId: 'job-1' });
    await until(() => a.runs.length === 1 && b.runs.length === 1);
    expect([a.runs.length, b.runs.length]).toEqual([1, 1]);
    slow.resolve('a done');
    expect((await sent).finishReason).toBe('stop');
  });

  it('have their results in call order, whatever order they settle in', async () => {
    const { slow, model, agent } = givenSlowAndFast();
    const run = agent.stream('go', { sessionId: 'job-1' });
    const reading = eventsOf(run);
    await until(hasEarlyResult);
    slow.resolve('a done');
    const result = await run.result;
    const asked = lines(model.calls[1]?.messages ?? []);
    expect(asked.slice(2)).toEqual(['tool call_a "a done"', 'tool call_b "b done"']);
    expect(lines(result.messages).slice(2, 4)).toEqual(asked.slice(2));
    const order = (await reading).flatMap((event) =>
      event.type === 'tool.start' || event.type === 'tool.done' ? [`${event.type} ${event.toolName}`] : [],
    );
    expect(order).toEqual(['tool.start a', 'tool.start b', 'tool.done b', 'tool.done a']);
  });

  it('are stored one by one as they settle, and placed in call order', async () => {
    const { slow, agent } = givenSlowAndFast();
    const sent = agent.send('go', { sessionId: 'job-1' });
    await until(hasEarlyResult);
    slow.resolve('a done');
    await sent;
    const saved = (await world.saves('job-1')).map(({ status, settledResults, messages }) => [
      status,
      settledResults.map(({ toolCallId }) => toolCallId),
      results(messages).map(({ toolCallId }) => toolCallId),
    ]);
    expect(saved).toEqual([
      ['in-progress', [], []],
      ['in-progress', ['call_b'], []],
      ['in-progress', [], ['call_a', 'call_b']],
      ['finished', [], ['call_a', 'call_b']],
    ]);
  });

  it('that settled behind a slower one are not run again after a crash', async () => {
    const { agent } = givenSlowAndFast();
    void agent.send('go', { sessionId: 'job-1' }).catch(() => undefined);
    await until(hasEarlyResult);
    // Nobody hears of this process any more: what it holds is free after its lease.
    const stored = await world.stored('job-1');
    await world.checkpoints.delete('job-1');
    await world.checkpoints.save('job-1', stored as NonNullable<typeof stored>);
    const a = spyTool('a');
    const b = spyTool('b');
    const model = mockModel(['Done.']);
    const other = world.otherProcess().agent({ provider: model, tools: [a.tool, b.tool] });
    const result = await other.resume('job-1');
    expect([a.runs.length, b.runs.length]).toEqual([1, 0]);
    expectValid(result?.messages ?? []);
    expect(lines(result?.messages ?? []).slice(2, 4)).toEqual([
      'tool call_a "a done"',
      'tool call_b "b done"',
    ]);
  });

  it('run one after the other with toolConcurrency 1', async () => {
    const { slow, a, b, agent } = givenSlowAndFast(1);
    const run = agent.stream('go');
    const reading = eventsOf(run);
    await until(() => a.runs.length === 1);
    expect(b.runs).toHaveLength(0);
    slow.resolve('a done');
    const order = (await reading).flatMap((event) =>
      event.type === 'tool.start' || event.type === 'tool.done' ? [`${event.type} ${event.toolName}`] : [],
    );
    expect(order).toEqual(['tool.start a', 'tool.done a', 'tool.start b', 'tool.done b']);
  });

  it.each([1, 2, 3])('run at most %i at a time, also on a resume', async (limit) => {
    let running = 0;
    let most = 0;
    const names = ['a', 'b', 'c', 'd'];
    let crash = true;
    const tools = names.map(
      (name) =>
        spyTool(name, async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise<void>((resolve) => world.clock.setTimer(resolve, 10));
          running -= 1;
          return name;
        }).tool,
    );
    const model = mockModel([calls(...names), () => (crash ? new Error('down') : 'Done.'), 'Done.']);
    const agent = world.agent({ provider: model, tools, toolConcurrency: limit, retry: { maxRetries: 0 } });
    const sent = agent.send('go', { sessionId: 'job-1' }).catch(() => undefined);
    await letPass(world.clock, sent);
    crash = false;
    expect(most).toBe(limit);
    const result = await agent.resume('job-1');
    expect(results(result?.messages ?? []).map(({ result: value }) => value)).toEqual(names);
  });

  it('end the run normally when one of them throws: the model sees its error', async () => {
    const a = spyTool('a', () => {
      throw new Error('kaput');
    });
    const b = spyTool('b');
    const model = mockModel([calls('a', 'b'), 'Sorry.']);
    const result = await world
      .agent({ provider: model, tools: [a.tool, b.tool] })
      .send('go', { sessionId: 'job-1' });
    expect(result.finishReason).toBe('stop');
    expect(results(model.calls[1]?.messages ?? [])).toMatchObject([
      { toolCallId: 'call_a', isError: true, kind: 'execution', result: { error: 'kaput' } },
      { toolCallId: 'call_b', result: 'b done' },
    ]);
    expect(result.toolCalls).toMatchObject([{ isError: true, kind: 'execution' }, { result: 'b done' }]);
  });

  it('keep the results of those that ended when the run is aborted between them', async () => {
    const stop = new AbortController();
    const a = spyTool('a');
    const b = spyTool(
      'b',
      (_args, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(new Error('stopped'))),
        ),
    );
    const c = spyTool('c');
    const model = mockModel([calls('a', 'b', 'c')]);
    const agent = world.agent({ provider: model, tools: [a.tool, b.tool, c.tool], toolConcurrency: 1 });
    const sent = agent.send('go', { sessionId: 'job-1', signal: stop.signal });
    await until(() => b.runs.length === 1);
    stop.abort();
    const { messages } = await sent;
    expect(results(messages).map(({ toolCallId, kind }) => [toolCallId, kind])).toEqual([
      ['call_a', undefined],
      ['call_b', 'cancelled'],
      ['call_c', 'cancelled'],
    ]);
    expect(c.runs).toHaveLength(0);
    expectValid(messages);
  });

  it('of unknown tools and with wrong arguments get a result, and the run goes on', async () => {
    const model = mockModel([{ toolCalls: [{ name: 'nothing', id: 'call_1' }] }, 'Sorry.']);
    const result = await world.agent({ provider: model }).send('go', { sessionId: 'job-1' });
    expect(results(result.messages)).toMatchObject([{ kind: 'not-found', isError: true }]);
    expect(result.text).toBe('Sorry.');
  });

  it('with one id repeated in a response and over steps each get their own result', async () => {
    const work = spyTool('work', (_args, _ctx, run) => run);
    const twice = {
      toolCalls: [
        { name: 'work', id: 'call_0' },
        { name: 'work', id: 'call_0' },
      ],
    };
    const model = mockModel([twice, twice, 'Done.']);
    const result = await world
      .agent({ provider: model, tools: [work.tool] })
      .send('go', { sessionId: 'job-1' });
    expectValid(result.messages);
    expect(results(result.messages).map(({ result: value }) => value)).toEqual([1, 2, 3, 4]);
    expect(new Set(work.runs.map(({ ctx }) => ctx.idempotencyKey)).size).toBe(4);
  });

  it.each([0, -1, 1.5, Number.NaN, 'all'])('refuse toolConcurrency %s by name', async (toolConcurrency) => {
    const error = thrown(() =>
      world.agent({ provider: mockModel([]), toolConcurrency: toolConcurrency as number }),
    );
    expect(error).toMatchObject({ code: 'LOUSHO_CONFIG_INVALID', details: { option: 'toolConcurrency' } });
    expect(error.message).toContain('toolConcurrency');
  });
});

onEveryStore('a lost start', (world) => {
  it('never happens: a rejected save of the first step keeps every tool from running', async () => {
    const work = spyTool('work');
    const store = storeOf(checkpointsWith(world.checkpoints, { saveIfLeased: async () => false }));
    const agent = world.agent({
      store,
      provider: mockModel([{ toolCalls: [{ name: 'work' }] }]),
      tools: [work.tool],
    });
    await refusal(agent.send('go', { sessionId: 'job-1' }), 'LOUSHO_SESSION_BUSY');
    expect(work.runs).toHaveLength(0);
    expect(await world.stored('job-1')).toBeNull();
  });
});
