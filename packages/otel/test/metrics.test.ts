import { LLMProviderError } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { calling, tool } from './support/tools.ts';
import { Traced, bounds, points, until } from './support/traced.ts';

let traced: Traced;
beforeEach(() => void (traced = new Traced()));
afterEach(() => traced.end());

const model = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'mock',
  'gen_ai.request.model': 'mock',
};

/** Two seconds in the model, half of one in the tool, one sub-agent. */
async function spend(): Promise<void> {
  const wait = tool('wait', () => new Promise((resolve) => traced.clock.setTimer(() => resolve('ok'), 500)));
  const counter = mockModel(['3'], { modelId: 'small', clock: traced.clock });
  const usage = {
    inputTokens: 100,
    outputTokens: 20,
    cachedInputTokens: 60,
    cacheWriteTokens: 7,
    reasoningTokens: 5,
  };
  const { agent } = traced.process({
    tools: [wait],
    script: [
      {
        ...(calling('wait', ['task', { agent: 'counter', prompt: 'Count.' }]) as object),
        delayMs: 2_000,
        usage,
      },
      { text: 'Done.', usage: { inputTokens: 150, outputTokens: 2 } },
    ],
    subagents: [{ name: 'counter', description: 'Counts.', provider: counter }],
  });
  const running = agent.send('go', { sessionId: 's' });
  await until(() => traced.begun('chat mock').length === 1);
  await traced.clock.advance(2_000);
  await until(() => traced.named('execute_tool task').length === 1);
  await traced.clock.advance(500);
  await running;
}

describe('the metrics', () => {
  it('of model calls are their durations and their tokens, in all and for each call', async () => {
    await spend();
    const metrics = await traced.metrics();
    const small = { ...model, 'gen_ai.request.model': 'small' };
    const unknown = { 'gen_ai.token.modality': 'unknown' };
    const duration = metrics.get('gen_ai.client.inference.duration');
    expect(duration?.descriptor.unit).toBe('s');
    expect(points(duration)).toEqual([
      [model, 2, 2],
      [small, 0, 1],
    ]);
    expect(points(metrics.get('gen_ai.client.inference.operation.input_tokens'))).toEqual([
      [model, 250, 2],
      [small, 1, 1],
    ]);
    expect(points(metrics.get('gen_ai.client.inference.operation.output_tokens'))).toEqual([
      [model, 22, 2],
      [small, 1, 1],
    ]);
    const usage = (kind: string) => points(metrics.get(`gen_ai.client.inference.usage.${kind}`))[0];
    expect(usage('input_tokens')).toEqual([{ ...model, ...unknown }, 250]);
    expect(usage('output_tokens')).toEqual([{ ...model, ...unknown }, 22]);
    expect(usage('cache_read.input_tokens')).toEqual([{ ...model, ...unknown }, 60]);
    expect(usage('cache_write.input_tokens')).toEqual([{ ...model, ...unknown }, 7]);
    expect(usage('reasoning.output_tokens')).toEqual([{ ...model, ...unknown }, 5]);
  });

  it('of tools and agents are theirs alone: each call counts once', async () => {
    await spend();
    const metrics = await traced.metrics();
    const calls = points(metrics.get('gen_ai.execute_tool.duration'));
    const common = { 'gen_ai.agent.name': 'clerk', 'gen_ai.tool.type': 'function' };
    expect(calls).toContainEqual([{ ...common, 'gen_ai.tool.name': 'wait' }, 0.5, 1]);
    const clerk = { 'gen_ai.agent.name': 'clerk' };
    const counter = { 'gen_ai.agent.name': 'counter' };
    expect(points(metrics.get('gen_ai.invoke_agent.duration'))).toEqual([
      [counter, 0, 1],
      [clerk, 2.5, 1],
    ]);
    expect(points(metrics.get('gen_ai.invoke_agent.inference_calls'))).toEqual([
      [counter, 1, 1],
      [clerk, 2, 1],
    ]);
    expect(points(metrics.get('gen_ai.invoke_agent.tool_calls'))).toEqual([
      [counter, 0, 1],
      [clerk, 2, 1],
    ]);
  });

  it('have the buckets that the conventions ask for', async () => {
    await spend();
    const metrics = await traced.metrics();
    expect(bounds(metrics.get('gen_ai.client.inference.duration'))).toEqual([
      0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    ]);
    expect(bounds(metrics.get('gen_ai.client.inference.operation.input_tokens'))).toEqual([
      1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
    ]);
    expect(bounds(metrics.get('gen_ai.invoke_agent.duration'))?.at(-1)).toBe(409.6);
    expect(bounds(metrics.get('gen_ai.invoke_agent.tool_calls'))).toEqual([1, 2, 4, 8, 16, 32, 64, 128]);
  });

  it('count what failed, with why, and its tokens as none', async () => {
    const lost = new LLMProviderError('gone', { kind: 'network', retryable: false });
    const { agent } = traced.process({ script: [lost] });
    await expect(agent.send('go')).rejects.toBe(lost);
    const metrics = await traced.metrics();
    const failed = { ...model, 'error.type': 'network' };
    expect(points(metrics.get('gen_ai.client.inference.duration'))).toEqual([[failed, 0, 1]]);
    expect(points(metrics.get('gen_ai.client.inference.operation.input_tokens'))).toEqual([[failed, 0, 1]]);
    expect(points(metrics.get('gen_ai.invoke_agent.duration'))).toEqual([
      [{ 'gen_ai.agent.name': 'clerk', 'error.type': 'network' }, 0, 1],
    ]);
  });

  it('measure when a stream begins, and nothing for what is not streamed', async () => {
    const { agent } = traced.process({ script: ['Done.', { text: 'One two.', delayMs: 500 }] });
    await agent.send('go');
    expect((await traced.metrics()).get('gen_ai.client.inference.time_to_first_chunk')).toBeUndefined();
    await traced.letTimePass(agent.stream('Count.').result);
    const first = (await traced.metrics()).get('gen_ai.client.inference.time_to_first_chunk');
    expect(points(first)).toEqual([[model, 0.5, 1]]);
  });
});
