import { ConfigurationError, isSDKError, type LLMProvider } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { AgentExecutor, ToolRegistry, type EngineOptions } from '../src/index.ts';
import { resolveEngine } from '../src/wiring.ts';
import { givenStorage, givenWorld, noting, refusal } from './support.ts';

const bad: readonly (readonly [option: string, options: object])[] = [
  ['maxSteps', { maxSteps: 0 }],
  ['maxSteps', { maxSteps: 1.5 }],
  ['maxSteps', { maxSteps: NaN }],
  ['maxSteps', { maxSteps: '3' }],
  ['toolConcurrency', { toolConcurrency: 0 }],
  ['toolConcurrency', { toolConcurrency: -1 }],
  ['toolConcurrency', { toolConcurrency: 1.5 }],
  ['toolConcurrency', { toolConcurrency: NaN }],
  ['toolConcurrency', { toolConcurrency: 'all' }],
  ['limits.maxTotalTokens', { limits: { maxTotalTokens: 0 } }],
  ['limits.maxModelCalls', { limits: { maxModelCalls: -1 } }],
  ['limits.maxToolCalls', { limits: { maxToolCalls: NaN } }],
  ['limits.maxCostUsd', { limits: { maxCostUsd: Infinity } }],
  ['limits.maxTokens', { limits: { maxTokens: 5 } }],
  ['retry.maxRetries', { retry: { maxRetries: -1 } }],
  ['retry.maxRetries', { retry: { maxRetries: 0.5 } }],
  ['retry.delayMs', { retry: { delayMs: -1 } }],
  ['retry.maxDelayMs', { retry: { maxDelayMs: Infinity } }],
  ['fallbackModels', { fallbackModels: 'gpt-5' }],
  ['fallbackModels[1]', { fallbackModels: [mockModel([]), 'gpt-5'] }],
  ['fallbackModels[0]', { fallbackModels: [null] }],
  ['onAgentDrift', { onAgentDrift: 'refuse' }],
  ['approvalTtlMs', { approvalTtlMs: 0 }],
  ['approvalTtlMs', { approvalTtlMs: -5 }],
  ['approvalTtlMs', { approvalTtlMs: NaN }],
  ['lease.ttlMs', { lease: { ttlMs: 0 } }],
  ['lease.ttlMs', { lease: { ttlMs: Infinity } }],
  ['lease.heartbeatMs', { lease: { heartbeatMs: -1 } }],
  ['lease.heartbeatMs', { lease: { ttlMs: 10_000, heartbeatMs: 5_001 } }],
  ['hooks', { hooks: 'log' }],
  ['hooks.beforeTool', { hooks: { beforeTool: 'log' } }],
  ['onEvent', { onEvent: 'log' }],
  ['sandboxExecute', { sandboxExecute: {} }],
];

describe('options', () => {
  it.each(bad)('a wrong %s is refused by its name: %o', (option, options) => {
    let error: unknown;
    try {
      resolveEngine(options);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(isSDKError(error, 'LOUSHO_CONFIG_INVALID') && error.details.option).toBe(option);
    expect((error as Error).message).toContain(option);
  });

  it('have a default each', () => {
    expect(resolveEngine({})).toMatchObject({
      hooks: [],
      toolConcurrency: Infinity,
      maxSteps: 10,
      limits: {},
      retry: { maxRetries: 2, delayMs: 1_000, maxDelayMs: 30_000 },
      fallbackModels: [],
      onAgentDrift: { model: 'warn', tools: 'warn', instructions: 'warn' },
      approvalTtlMs: undefined,
      lease: { ttlMs: 30_000, heartbeatMs: 10_000 },
    });
  });

  it.each<readonly [string, EngineOptions, object]>([
    ['concurrency without bound', { toolConcurrency: 'unbounded' }, { toolConcurrency: Infinity }],
    ['no retries', { retry: { maxRetries: 0 } }, { retry: { maxRetries: 0, delayMs: 1_000 } }],
    [
      'a heartbeat that follows the lease',
      { lease: { ttlMs: 900 } },
      { lease: { ttlMs: 900, heartbeatMs: 300 } },
    ],
    ['one hook object', { hooks: { beforeModel: () => undefined } }, { hooks: [{}] }],
    ['a limit that is named and not set', { limits: { maxModelCalls: undefined } }, { limits: {} }],
  ])('may be %s', (_what, options, resolved) => {
    expect(resolveEngine(options)).toMatchObject(resolved);
  });
});

describe('what belongs to one input', () => {
  it.each<readonly [option: string, more: object]>([
    ['inputId', { inputId: 7 }],
    ['inputId', { inputId: '' }],
    ['metadata.when', { metadata: { when: 1n } }],
    ['metadata', { metadata: 'tenant' }],
    ['principal', { principal: 'ann' }],
    ['principal.id', { principal: {} }],
    ['principal.since', { principal: { id: 'ann', since: () => 1 } }],
    ['businessState.seen', { businessState: { seen: 1n } }],
    ['signal', { signal: 'stop' }],
  ])('a wrong %s is refused by its name, and nothing is stored', async (option, more) => {
    const world = givenWorld({ script: ['never'] });
    const error = await refusal(world.send('hi', more), 'LOUSHO_CONFIG_INVALID');
    expect(error.details).toMatchObject({ option });
    expect(world.storage.store.saves).toEqual([]);
    expect(world.model.calls).toEqual([]);
  });
});

describe('the agent', () => {
  const execute = (more: object): Promise<unknown> =>
    AgentExecutor.execute({
      agent: {},
      input: 'hi',
      provider: mockModel(['hello']),
      ...more,
    });

  it.each<readonly [string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['without generate', { providerId: 'p', modelId: 'm' }],
  ])('with a provider that is %s is refused', async (_what, provider) => {
    const error = await refusal(execute({ provider: provider as LLMProvider }), 'LOUSHO_CONFIG_INVALID');
    expect(error.details).toMatchObject({ option: 'provider' });
  });

  it('with a tool that nobody registered is refused', async () => {
    const error = await refusal(
      execute({ agent: { tools: ['mail'] }, toolRegistry: new ToolRegistry() }),
      'LOUSHO_CONFIG_INVALID',
    );
    expect(error.details).toMatchObject({ option: 'agent.tools', got: 'mail' });
  });

  it('with a tool named twice is refused, never resolved by order', async () => {
    const storage = givenStorage();
    const tool = noting(storage, 'mail');
    expect(() => new ToolRegistry([tool, noting(storage, 'mail')])).toThrow(ConfigurationError);
    const error = await refusal(
      execute({ agent: { tools: ['mail', 'mail'] }, toolRegistry: new ToolRegistry([tool]) }),
      'LOUSHO_CONFIG_INVALID',
    );
    expect(error.details).toMatchObject({ got: 'mail' });
  });

  it('has the tools that it names, in its order, or all of the registry', async () => {
    const storage = givenStorage();
    const toolRegistry = new ToolRegistry([noting(storage, 'a'), noting(storage, 'b'), noting(storage, 'c')]);
    const told = async (agent: object): Promise<readonly string[]> => {
      const provider = mockModel(['hello']);
      await execute({ agent, toolRegistry, provider });
      return (provider.calls[0]?.tools ?? []).map(({ name }) => name);
    };
    expect(await told({})).toEqual(['a', 'b', 'c']);
    expect(await told({ tools: ['c', 'a'] })).toEqual(['c', 'a']);
    expect(await told({ tools: [] })).toEqual([]);
  });

  it('that is no tool made by defineTool is refused', () => {
    expect(() => new ToolRegistry([{ name: 'a' } as never])).toThrow(ConfigurationError);
  });
});

describe('a run id', () => {
  it.each([
    '',
    '.a',
    'a.',
    'a.turn-3',
    'a.paused',
    'x.fire',
    'x.sub-1',
    '../evil',
    'a b',
    'é',
    'x'.repeat(201),
  ])('"%s" is refused', async (sessionId) => {
    await refusal(givenWorld().send('hi', { sessionId }), 'LOUSHO_SESSION_ID_INVALID');
  });
  it.each(['a.b-c_1', 'x', '__proto__', 'constructor', 'x'.repeat(200)])(
    '"%s" is fine',
    async (sessionId) => {
      const world = givenWorld({ script: ['hello', 'fine'] });
      await world.send('hi', { sessionId });
      expect((await world.send('and?', { sessionId })).messages).toHaveLength(4);
    },
  );
});
