/** What a run carries for its caller: state, principal, metadata, results as JSON. The same before an interruption and after it. */
import { defineTool, type JsonValue } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { AgentExecutor, ToolRegistry, resumeAfterApproval } from '../src/index.ts';
import { refusal, rejection, resultOfCall, results } from './support/read.ts';
import { failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { onEveryStore } from './support/world.ts';

const callWork = { toolCalls: [{ name: 'work', id: 'call_1' }] };

onEveryStore('businessState', (world) => {
  it('is read and changed by tools, stored with their results, and there again after an interruption', async () => {
    const seen: unknown[] = [];
    const count = spyTool('count', (_args, ctx) => {
      seen.push(ctx.businessState);
      ctx.businessState = { count: (ctx.businessState as { count: number }).count + 1 };
    });
    const work = failingOnceTool('work');
    const model = mockModel([
      { toolCalls: [{ name: 'count' }] },
      callWork,
      { toolCalls: [{ name: 'count' }] },
      'Done.',
    ]);
    const agent = world.agent({ provider: model, tools: [count.tool, work.tool] });
    await rejection(agent.send('go', { sessionId: 'job-1', businessState: { count: 1 } }));
    expect((await world.stored('job-1'))?.businessState).toEqual({ count: 2 });
    const result = await world
      .otherProcess()
      .agent({ provider: model, tools: [count.tool, work.tool] })
      .resume('job-1');
    expect(seen).toEqual([{ count: 1 }, { count: 2 }]);
    expect(result?.businessState).toEqual({ count: 3 });
  });

  it('stays when it is not given, is replaced when it is, and null is a value', async () => {
    const model = mockModel(['1.', '2.', '3.', '4.']);
    const agent = world.agent({ provider: model });
    const send = async (input: string, businessState?: JsonValue) =>
      (await agent.send(input, { sessionId: 'chat-42', businessState })).businessState;
    expect(await send('a', { stage: 'new' })).toEqual({ stage: 'new' });
    expect(await send('b')).toEqual({ stage: 'new' });
    expect(await send('c', { stage: 'next' })).toEqual({ stage: 'next' });
    expect(await send('d', null)).toBeNull();
    expect((await world.stored('chat-42'))?.businessState).toBeNull();
  });

  it('is replaced on a resume with input, in every save from then on', async () => {
    const work = failingOnceTool('work');
    const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool] });
    await rejection(agent.send('go', { sessionId: 'job-1', businessState: { stage: 'stale' } }));
    const savesBefore = (await world.saves('job-1')).length;
    await agent.send([], { sessionId: 'job-1', businessState: { stage: 'fresh' } });
    const later = (await world.saves('job-1')).slice(savesBefore);
    expect(later.map(({ businessState }) => businessState)).toEqual(later.map(() => ({ stage: 'fresh' })));
    expect(later.length).toBeGreaterThan(1);
  });

  it('is no live object: neither the caller nor a tool can change what is stored behind its back', async () => {
    const given = { items: ['a'] };
    const kept: { items: string[] }[] = [];
    const work = spyTool('work', (_args, ctx) => {
      expect(() => (ctx.businessState as { items: string[] }).items.push('x')).toThrow(TypeError);
      const mine = { items: ['a', 'b'] };
      ctx.businessState = mine;
      kept.push(mine);
    });
    const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool] });
    const sent = agent.send('go', { sessionId: 'job-1', businessState: given });
    given.items.push('late');
    const result = await sent;
    kept[0]?.items.push('later');
    expect(result.businessState).toEqual({ items: ['a', 'b'] });
    expect((await world.saves('job-1'))[0]?.businessState).toEqual({ items: ['a'] });
  });
});

onEveryStore('principal and metadata', (world) => {
  it('stay those that the run began with, in every process', async () => {
    const work = failingOnceTool('work');
    const principal = { id: 'ann', roles: ['clerk'] };
    const metadata = { source: 'web' };
    const agent = world.agent({ provider: mockModel([callWork]), tools: [work.tool] });
    await rejection(agent.send('go', { sessionId: 'job-1', principal, metadata }));
    const other = world.otherProcess().agent({ provider: mockModel(['Done.']), tools: [work.tool] });
    await other.resume('job-1');
    for (const { ctx } of work.runs) expect(ctx).toMatchObject({ principal, metadata, sessionId: 'job-1' });
  });

  it('may be given again as they are, and another principal is refused without effect', async () => {
    const work = failingOnceTool('work');
    const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool] });
    await rejection(agent.send('go', { sessionId: 'job-1', principal: { id: 'ann', tenant: 'acme' } }));
    const before = await world.stored('job-1');
    const error = await refusal(
      agent.send('go', { sessionId: 'job-1', principal: { id: 'mallory' } }),
      'LOUSHO_CONFIG_INVALID',
    );
    expect(error.details.option).toBe('principal');
    expect(await world.stored('job-1')).toEqual(before);
    const result = await agent.send('go', { sessionId: 'job-1', principal: { tenant: 'acme', id: 'ann' } });
    expect(result.text).toBe('Done.');
  });

  it('are absent for a run that has none', async () => {
    const work = spyTool('work');
    await world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool] }).send('go');
    expect(work.runs[0]?.ctx.metadata).toEqual({});
    expect(work.runs[0]?.ctx).not.toHaveProperty('principal');
    expect(work.runs[0]?.ctx).not.toHaveProperty('sessionId');
  });
});

onEveryStore('a tool result', (world) => {
  const circular: { self?: unknown } = {};
  circular.self = circular;

  it.each<readonly [string, unknown, JsonValue]>([
    ['undefined', undefined, null],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['bytes', new Uint8Array([1, 2, 3]), { $bytes: 'AQID' }],
    ['a map', new Map([['a', 1]]), { a: 1 }],
    ['a set', new Set([1, 2]), [1, 2]],
    ['NaN', Number.NaN, null],
    [
      'a __proto__ key',
      JSON.parse('{"__proto__":{"x":1}}'),
      JSON.parse('{"__proto__":{"x":1}}') as JsonValue,
    ],
    ['half a surrogate pair', 'a\ud800', 'a\ufffd'],
  ])('is turned into JSON once: %s', async (_what, value, json) => {
    const work = spyTool('work', () => value);
    const model = mockModel([callWork, new Error('down'), 'Done.']);
    const agent = world.agent({ provider: model, tools: [work.tool], retry: { maxRetries: 0 } });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    const result = await world
      .otherProcess()
      .agent({ provider: model, tools: [work.tool] })
      .resume('job-1');
    const [, before, after] = model.calls;
    // What the model saw before the interruption is what it sees after it.
    expect(results(before?.messages ?? [])[0]?.result).toEqual(json);
    expect(results(after?.messages ?? [])[0]?.result).toEqual(json);
    expect(result?.toolCalls[0]?.result).toEqual(json);
    expect(JSON.stringify(results(before?.messages ?? []))).toBe(
      JSON.stringify(results(after?.messages ?? [])),
    );
    expect(work.runs).toHaveLength(1);
  });

  it.each<readonly [string, unknown]>([
    ['a bigint', { amount: 1n }],
    ['a function', { f: () => 1 }],
    ['a circle', circular],
    [
      'a getter that throws',
      {
        get broken() {
          throw new Error('no');
        },
      },
    ],
  ])('that JSON cannot say is an error result, and the tool is not run again: %s', async (_what, value) => {
    const work = spyTool('work', () => value);
    const agent = world.agent({ provider: mockModel([callWork, 'Sorry.']), tools: [work.tool] });
    const { messages, text } = await agent.send('go', { sessionId: 'job-1' });
    expect(resultOfCall(messages, 'call_1')).toMatchObject({ isError: true, kind: 'execution' });
    expect(text).toBe('Sorry.');
    expect(work.runs).toHaveLength(1);
  });

  it('that is too large is an error result that says how large', async () => {
    const work = defineTool({
      name: 'work',
      description: 'Works.',
      input: z.object({}),
      maxResultBytes: 100,
      execute: () => 'x'.repeat(1_000),
    });
    const agent = world.agent({ provider: mockModel([callWork, 'Sorry.']), tools: [work] });
    const { messages } = await agent.send('go', { sessionId: 'job-1' });
    expect(resultOfCall(messages, 'call_1')).toMatchObject({
      kind: 'execution',
      result: { error: expect.stringContaining('1002') },
    });
  });

  it('of arguments that do not fit is an error result with the places', async () => {
    const work = defineTool({
      name: 'work',
      description: 'Works.',
      input: z.object({ items: z.array(z.object({ price: z.number() })) }),
      execute: () => 'never',
    });
    const args = { items: [{ price: 'much' }] };
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'work', id: 'call_1', args }] }, 'Sorry.']),
      tools: [work],
    });
    const { messages } = await agent.send('go', { sessionId: 'job-1' });
    expect(resultOfCall(messages, 'call_1')).toMatchObject({
      kind: 'validation',
      result: { issues: [{ path: 'items[0].price' }] },
    });
  });
});

onEveryStore('the limits of a run', (world) => {
  const again = { toolCalls: [{ name: 'work' }], usage: { inputTokens: 50, outputTokens: 50, costUsd: 0.5 } };

  it.each([
    ['maxModelCalls', 2, 2, 2],
    ['maxToolCalls', 1, 1, 1],
    ['maxTotalTokens', 150, 200, 2],
    ['maxCostUsd', 1, 1, 2],
  ] as const)('end it by name: %s', async (name, max, used, calls) => {
    const work = spyTool('work');
    const model = mockModel([again], { onExhausted: 'repeat-last' });
    const agent = world.agent({ provider: model, tools: [work.tool], limits: { [name]: max } });
    const result = await agent.send('go', { sessionId: 'job-1' });
    expect(result).toMatchObject({ finishReason: 'limit', limit: { name, max, used } });
    expect(model.calls).toHaveLength(calls);
    expect(await world.stored('job-1')).toMatchObject({ status: 'finished', finishReason: 'limit' });
  });

  it('count over an interruption', async () => {
    const work = failingOnceTool('work');
    const model = mockModel([again], { onExhausted: 'repeat-last' });
    const agent = world.agent({ provider: model, tools: [work.tool], limits: { maxModelCalls: 2 } });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    expect((await agent.resume('job-1'))?.finishReason).toBe('limit');
    expect(model.calls).toHaveLength(2);
  });

  it('are those of the call where it gives its own', async () => {
    const work = spyTool('work');
    const model = mockModel([again], { onExhausted: 'repeat-last' });
    const agent = world.agent({
      provider: model,
      tools: [work.tool],
      modelSettings: { temperature: 0.2, seed: 7 },
    });
    const options = { sessionId: 'job-1', maxSteps: 1, modelSettings: { temperature: 0.9 } };
    const result = await agent.send('go', options);
    expect(result).toMatchObject({ finishReason: 'max-steps', steps: 1 });
    expect(model.calls[0]?.settings).toEqual({ temperature: 0.9, seed: 7 });
  });
});

onEveryStore('an agent', (world) => {
  it('needs a provider and nothing else, and keeps its pauses in memory then', async () => {
    const charge = gatedTool('charge');
    const config = { tools: [charge.tool], store: undefined };
    const agent = world.agent({
      ...config,
      provider: mockModel([{ toolCalls: [{ name: 'charge' }] }, 'Done.']),
    });
    const { approvalId: id = '' } = await agent.send('go');
    expect(await agent.approvals.list()).toMatchObject([{ id, toolName: 'charge' }]);
    // Another agent object has a memory of its own.
    const other = world.agent({ ...config, provider: mockModel([]) });
    expect(await other.approvals.list()).toEqual([]);
    await refusal(other.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_NOT_FOUND');
    expect((await agent.approvals.resolve({ id, approved: true })).text).toBe('Done.');
    expect(charge.runs).toHaveLength(1);
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_NOT_FOUND');
    expect(await world.store.approvals.list()).toEqual([]);
  });

  it('tells the model its tools, those of the provider, and its name to whom it asks for approval', async () => {
    const work = spyTool('work');
    const search = { id: 'mock.search', name: 'search', args: { depth: 2 } } as const;
    const model = mockModel(['Hello.']);
    const agent = world.agent({
      name: 'clerk',
      provider: model,
      tools: [work.tool],
      providerTools: [search],
    });
    expect(agent.name).toBe('clerk');
    const result = await agent.send('hi', { sessionId: 'a' });
    expect(result.agentName).toBe('clerk');
    expect(model.calls[0]).toMatchObject({
      tools: [{ name: 'work', description: 'Does work.', inputSchema: { type: 'object' } }],
      providerTools: [search],
      settings: {},
    });
    expect(await world.stored('a')).toMatchObject({ agentName: 'clerk' });
  });

  it('stores the same as the executor does with the same wiring', async () => {
    const script = [callWork, { toolCalls: [{ name: 'charge' }] }, 'Done.'];
    const tools = [spyTool('work').tool, gatedTool('charge').tool];
    const agent = world.agent({ name: 'clerk', instructions: 'Help.', provider: mockModel(script), tools });
    const paused = await agent.send('go', { sessionId: 'a', metadata: { source: 'web' } });
    await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    const { checkpoints, approvals } = world.store;
    const provider = mockModel(script);
    const toolRegistry = new ToolRegistry(tools);
    const again = await AgentExecutor.execute({
      agent: { name: 'clerk', instructions: 'Help.' },
      provider,
      toolRegistry,
      checkpointStore: checkpoints,
      approvalStore: approvals,
      ports: world.ports,
      sessionId: 'b',
      input: 'go',
      metadata: { source: 'web' },
    });
    const decision = { id: again.approvalId ?? '', approved: true };
    const options = { ports: world.ports };
    await resumeAfterApproval(decision, approvals, toolRegistry, provider, options, checkpoints);
    const texts = async (id: string) => {
      const saves = await world.saves(id);
      const runId = saves[0]?.runId ?? '';
      return saves.map((save) =>
        JSON.stringify(save)
          .replaceAll(runId, 'run')
          .replaceAll(/[ab]\.apr-[^-"]+/g, 'apr'),
      );
    };
    expect(await texts('b')).toEqual(await texts('a'));
    expect(await texts('a')).toHaveLength(8);
  });

  it('gives tools that run in a sandbox the same call, and whatever came back from there is the result', async () => {
    const seen: unknown[] = [];
    const boxed = spyTool('boxed', () => 'ran', { sandbox: true });
    const free = spyTool('free');
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'boxed', id: 'call_1' }, { name: 'free' }] }, 'Done.']),
      tools: [boxed.tool, free.tool],
      async sandboxExecute(call) {
        seen.push([call.toolName, call.ctx.toolCallId]);
        return `boxed ${(await call.run()) as string}`;
      },
    });
    const { messages } = await agent.send('go', { sessionId: 'a' });
    expect(seen).toEqual([['boxed', 'call_1']]);
    expect(results(messages).map(({ result }) => result)).toEqual(['boxed ran', 'free done']);
    expect(free.runs[0]?.ctx).not.toHaveProperty('approval');
  });
});
