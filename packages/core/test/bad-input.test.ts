/** What is wrong with a call is said by the name of the option, before anything was stored, asked or run. */
import { ConfigurationError, SDKError, defineTool, type AgentInput } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createAgent, type Agent, type AgentConfig, type SendOptions } from '../src/index.ts';
import { refusal, thrown } from './support/read.ts';
import { checkpointsWith, storeOf, watched } from './support/stores.ts';
import { emailTool, spyTool } from './support/tools.ts';
import { onEveryStore } from './support/world.ts';

const provider = mockModel([]);
const { tool } = spyTool('work');

/** What plain JavaScript could pass. */
function config(options: object): AgentConfig {
  return { provider, ...options };
}

describe('createAgent', () => {
  it.each<readonly [string, object]>([
    ['provider', { provider: undefined }],
    ['provider', { provider: 'gpt-9' }],
    ['provider', { provider: { stream: () => [] } }],
    ['name', { name: '' }],
    ['name', { name: 7 }],
    ['instructions', { instructions: 7 }],
    ['instructions', { instructions: ['Be good.'] }],
    ['model', { model: 7 }],
    ['model', { model: '' }],
    ['tools', { tools: { work: tool } }],
    ['tools', { tools: [undefined] }],
    ['tools', { tools: [{ name: 'work', execute: () => 1 }] }],
    ['tools', { tools: [tool, tool] }],
    ['providerTools', { providerTools: 'search' }],
    ['store', { store: 'agent.db' }],
    ['store', { store: null }],
    ['store', { store: {} }],
    ['store.checkpoints.save', { store: { checkpoints: {} } }],
    ['store.checkpoints.load', { store: { checkpoints: { save: () => undefined } } }],
    ['store.approvals.delete', { store: { approvals: { save: () => 1, load: () => 1, list: () => 1 } } }],
    ['maxSteps', { maxSteps: 0 }],
    ['maxSteps', { maxSteps: 1.5 }],
    ['maxSteps', { maxSteps: '10' }],
    ['toolConcurrency', { toolConcurrency: 0 }],
    ['toolConcurrency', { toolConcurrency: 'all' }],
    ['limits', { limits: 5 }],
    ['limits', { limits: null }],
    ['limits.maxModelCalls', { limits: { maxModelCalls: 0 } }],
    ['limits.maxTotalTokens', { limits: { maxTotalTokens: Number.NaN } }],
    ['limits.maxTokens', { limits: { maxTokens: 5 } }],
    ['approvalTtlMs', { approvalTtlMs: 0 }],
    ['approvalTtlMs', { approvalTtlMs: Number.NaN }],
    ['onAgentDrift', { onAgentDrift: 'fail' }],
    ['onAgentDrift.tools', { onAgentDrift: { tools: 'fail' } }],
    ['onAgentDrift.tool', { onAgentDrift: { tool: 'error' } }],
    ['onEvent', { onEvent: 'log' }],
    ['hooks', { hooks: 'log' }],
    ['hooks', { hooks: [null] }],
    ['hooks.beforeTool', { hooks: { beforeTool: 'deny' } }],
    ['sandboxExecute', { sandboxExecute: true }],
    ['telemetry', { telemetry: 'on' }],
    ['modelSettings', { modelSettings: 'creative' }],
    ['retry', { retry: 3 }],
    ['retry.maxRetries', { retry: { maxRetries: -1 } }],
    ['retry.delayMs', { retry: { delayMs: -1 } }],
    ['retry.maxDelayMs', { retry: { maxDelayMs: Number.POSITIVE_INFINITY } }],
    ['lease', { lease: true }],
    ['lease', { lease: null }],
    ['lease.ttlMs', { lease: { ttlMs: 0 } }],
    ['lease.heartbeatMs', { lease: { ttlMs: 1_000, heartbeatMs: 600 } }],
  ])('names %s in %j', (option, options) => {
    const error = thrown(() => createAgent(config(options)));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toMatchObject({ code: 'LOUSHO_CONFIG_INVALID', retryable: false, details: { option } });
    expect(error.message).toContain(`"${option}"`);
  });

  it('says that a checkpoint store alone goes in as a part', () => {
    const { checkpoints } = storeOf({
      save: async () => undefined,
      load: async () => null,
      delete: async () => undefined,
    });
    const error = thrown(() => createAgent(config({ store: checkpoints })));
    expect(error.message).toContain('{ checkpoints: store }');
  });

  it('refuses a store of a newer contract, and takes one that does not say', () => {
    const checkpoints = {
      save: async () => undefined,
      load: async () => null,
      delete: async () => undefined,
    };
    const error = thrown(() => createAgent(config({ store: { contractVersion: 2, checkpoints } })));
    expect(error).toMatchObject({
      code: 'LOUSHO_STORE_VERSION_UNSUPPORTED',
      details: { found: 2, supported: 1 },
    });
    expect(createAgent(config({ store: { checkpoints } })).name).toBe('agent');
  });

  it('takes undefined for every option that has a default', () => {
    const names = [
      'name',
      'instructions',
      'model',
      'tools',
      'store',
      'hooks',
      'limits',
      'retry',
      'lease',
      'onEvent',
    ];
    const options = Object.fromEntries(names.map((name) => [name, undefined]));
    expect(createAgent(config(options)).name).toBe('agent');
  });
});

describe('defineTool', () => {
  const valid = { name: 'work', description: 'Works.', input: z.object({}), execute: () => 1 };

  it.each<readonly [string, object]>([
    ['tool.name', { name: 'two words' }],
    ['tool.name', { name: '' }],
    ['tool.name', { name: 'x'.repeat(65) }],
    ['tools.work.description', { description: undefined }],
    ['tools.work.execute', { execute: undefined }],
    ['tools.work.input', { input: undefined }],
    ['tools.work.timeoutMs', { timeoutMs: 0 }],
    ['tools.work.maxResultBytes', { maxResultBytes: -1 }],
    ['tools.work.onInterrupted', { onInterrupted: 'sometimes' }],
    ['tools.work.input', { input: z.string() }],
  ])('names %s in %o', (option, options) => {
    const error = thrown(() => defineTool({ ...valid, ...options }));
    expect(error).toMatchObject({ code: 'LOUSHO_CONFIG_INVALID', details: { option } });
  });

  it.each<readonly [string, z.ZodType]>([
    ['a bigint', z.object({ amount: z.bigint() })],
    ['a date', z.object({ since: z.object({ day: z.date() }) })],
    ['a map', z.object({ list: z.array(z.map(z.string(), z.string())) })],
    ['a function of its own', z.object({ f: z.custom<() => void>() }).extend({ g: z.symbol() })],
  ])('refuses %s, which JSON Schema cannot say', (_what, input) => {
    const error = thrown(() => defineTool({ ...valid, input } as typeof valid));
    expect(error.code).toBe('LOUSHO_CONFIG_INVALID');
    expect(String((error.details as { option: string }).option)).toMatch(/^tools\.work\.input/);
  });
});

onEveryStore('a call with a wrong option', (world) => {
  const wrong: readonly (readonly [string, SendOptions | object])[] = [
    ['inputId', { inputId: 7 }],
    ['inputId', { inputId: '' }],
    ['signal', { signal: 'stop' }],
    ['signal', { signal: new AbortController() }],
    ['metadata', { metadata: 'web' }],
    ['metadata', { metadata: ['web'] }],
    ['metadata.self', { metadata: { self: () => 1 } }],
    ['principal', { principal: 'ann' }],
    ['principal.id', { principal: {} }],
    ['principal.id', { principal: { id: 7 } }],
    ['businessState.amount', { businessState: { amount: 1n } }],
    ['maxSteps', { maxSteps: 0 }],
    ['modelSettings', { modelSettings: 7 }],
    ['approvalTtlMs', { approvalTtlMs: -1 }],
  ];

  it.each(wrong)('names %s in %o, and does nothing', async (option, options) => {
    const model = mockModel(['never']);
    const agent = world.agent({ provider: model });
    const error = await refusal(agent.send('hi', { sessionId: 'a', ...options }), 'LOUSHO_CONFIG_INVALID');
    expect(error.details.option).toBe(option);
    expect(thrown(() => agent.stream('hi', { sessionId: 'a', ...options })).details).toMatchObject({
      option,
    });
    expect(model.calls).toHaveLength(0);
    expect(await world.checkpoints.list()).toEqual([]);
  });

  it.each<readonly [string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a number', 7],
    ['an unknown role', { role: 'robot', content: 'hi' }],
    ['no content', { role: 'user' }],
    [
      'a mixed list',
      [
        { role: 'user', content: 'hi' },
        { type: 'text', text: 'hi' },
      ],
    ],
    ['a function inside', [{ role: 'user', content: 'hi', later: () => 1 }]],
  ])('refuses %s as input', async (_what, input) => {
    const agent = world.agent({ provider: mockModel(['never']) });
    const error = await refusal(agent.send(input as AgentInput, { sessionId: 'a' }), 'LOUSHO_CONFIG_INVALID');
    expect(error.details.option).toBe('input');
    expect(thrown(() => agent.stream(input as AgentInput)).code).toBe('LOUSHO_CONFIG_INVALID');
  });

  it('names timeoutMs of a shutdown', async () => {
    const agent = world.agent({ provider: mockModel(['Hello.']) });
    for (const timeoutMs of [-1, Number.NaN, '10' as unknown as number]) {
      const error = await refusal(agent.shutdown({ timeoutMs }), 'LOUSHO_CONFIG_INVALID');
      expect(error.details.option).toBe('timeoutMs');
    }
    expect((await agent.send('hi')).text).toBe('Hello.');
  });
});

onEveryStore('a decision with a wrong field', (world) => {
  async function givenPaused() {
    const email = emailTool();
    const model = mockModel([{ toolCalls: [{ name: 'email', args: { to: 'bob@example.com' } }] }, 'Sent.']);
    const agent = world.agent({ provider: model, tools: [email.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    return { agent, email, id };
  }

  it.each<readonly [string, object]>([
    ['approved', {}],
    ['approved', { approved: 'yes' }],
    ['approved', { approved: 'false' }],
    ['approved', { approved: 1 }],
    ['approved', { approved: null }],
    ['note', { approved: false, note: 7 }],
    ['by', { approved: true, by: { id: 'ann' } }],
    ['answer', { approved: true, answer: 7 }],
  ])('is refused by the name of %s in %j, and nothing runs', async (option, decision) => {
    const { agent, email, id } = await givenPaused();
    const given = { id, ...decision } as { id: string; approved: boolean };
    const error = await refusal(agent.approvals.resolve(given), 'LOUSHO_CONFIG_INVALID');
    expect(error.details.option).toBe(option);
    await refusal(agent.approvals.streamResolve(given).result, 'LOUSHO_CONFIG_INVALID');
    expect(email.runs).toEqual([]);
    expect(await agent.approvals.list()).toMatchObject([{ id }]);
    expect((await agent.approvals.resolve({ id, approved: true })).text).toBe('Sent.');
  });

  it.each([undefined, null, 'job-1', 7])('is refused when it is %j', async (decision) => {
    const { agent } = await givenPaused();
    const error = await refusal(agent.approvals.resolve(decision as never), 'LOUSHO_CONFIG_INVALID');
    expect(error.details.option).toBe('decision');
  });
});

onEveryStore('an id that is not one', (world) => {
  const malformed = [
    ...['', '.', '..', '.a', 'a.', 'a b', 'a/b', '../evil', 'a/../../b', 'Ünïcode', 'a\n', 'a:b'],
    ...['a.turn-3', 'A.TURN-0', 'a.paused', 'x.fire', 'a.sub-1', 'a.apr-1', 'x'.repeat(201)],
  ];

  function givenAgent(): { readonly agent: Agent; readonly storeCalls: unknown[] } {
    const storeCalls: unknown[] = [];
    const store = storeOf(watched(world.checkpoints, (method) => storeCalls.push(method)));
    return { agent: world.agent({ store, provider: mockModel(['never']) }), storeCalls };
  }

  it.each(malformed)('is refused before the store is asked: %j', async (sessionId) => {
    const { agent, storeCalls } = givenAgent();
    const code = 'LOUSHO_SESSION_ID_INVALID';
    const error = await refusal(agent.send('hi', { sessionId }), code);
    expect(error.details).toMatchObject({ sessionId, rule: expect.any(String) });
    expect(error.retryable).toBe(false);
    expect(thrown(() => agent.stream('hi', { sessionId })).code).toBe(code);
    await refusal(agent.resume(sessionId), code);
    expect(storeCalls).toEqual([]);
  });

  it.each([7, null, {}, ['a']])('is refused when it is no text: %j', async (sessionId) => {
    const { agent } = givenAgent();
    const options = { sessionId } as unknown as SendOptions;
    await refusal(agent.send('hi', options), 'LOUSHO_SESSION_ID_INVALID');
    await refusal(agent.resume(sessionId as unknown as string), 'LOUSHO_SESSION_ID_INVALID');
  });

  it.each(['a', 'a.b-c_1', 'a..b', '-a', '__proto__', 'constructor', 'a.turn-x', 'CON', 'x'.repeat(200)])(
    'is fine: %j',
    async (sessionId) => {
      const agent = world.agent({ provider: mockModel(['Hello.', 'Again.']) });
      await agent.send('hi', { sessionId });
      const second = await agent.send('and?', { sessionId });
      expect(second.text).toBe('Again.');
      expect(second.messages).toHaveLength(4);
    },
  );

  it('keeps ids apart that differ in case only', async () => {
    const agent = world.agent({ provider: mockModel(['To Alice.', 'To alice.']) });
    await agent.send('hi', { sessionId: 'Alice' });
    const second = await agent.send('hi', { sessionId: 'alice' });
    expect(second.messages).toHaveLength(2);
    await world.checkpoints.delete('Alice');
    expect((await world.stored('alice'))?.status).toBe('finished');
  });
});

onEveryStore('a store that breaks', (world) => {
  it('rejects with what it threw, and no tool runs without its save', async () => {
    const broken = new Error('EIO');
    const work = spyTool('work');
    const load = async () => {
      throw broken;
    };
    const agent = world.agent({
      store: storeOf(checkpointsWith(world.checkpoints, { load })),
      provider: mockModel([{ toolCalls: [{ name: 'work' }] }]),
      tools: [work.tool],
    });
    await expect(agent.send('go', { sessionId: 'job-1' })).rejects.toBe(broken);
    await expect(agent.resume('job-1')).rejects.toBe(broken);
    expect(work.runs).toHaveLength(0);
    // The lease did not stay behind.
    expect(await world.checkpoints.acquireLease('job-1', 'next', 30_000)).not.toBe(false);
  });

  it('says that it is closed', async () => {
    const agent = world.agent({ provider: mockModel(['never']) });
    await world.store.close();
    const error = await refusal(agent.send('hi', { sessionId: 'job-1' }), 'LOUSHO_STORE_CLOSED');
    expect(error).toBeInstanceOf(SDKError);
    await refusal(agent.pending(), 'LOUSHO_STORE_CLOSED');
    await refusal(agent.approvals.list(), 'LOUSHO_STORE_CLOSED');
  });
});
