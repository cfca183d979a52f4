import { LLMProviderError, PropagatingToolError } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import { SpanKind, SpanStatusCode, context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { calling, tool } from './support/tools.ts';
import { Traced, inSpan, until } from './support/traced.ts';

let traced: Traced;
beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
afterAll(() => context.disable());
beforeEach(() => void (traced = new Traced()));
afterEach(() => traced.end());

const ok = { code: SpanStatusCode.UNSET };

describe('the spans of a run', () => {
  it('are those of its agent, with its model and tool calls below, and the spans of a tool below its call', async () => {
    const charge = tool('charge', () => inSpan(traced, 'POST /charges', async () => 'charged'));
    const { agent } = traced.process({
      tools: [charge, tool('log')],
      script: [calling('charge', 'log'), 'Done.'],
    });
    await inSpan(traced, 'GET /orders', () => agent.send('Charge order 7.', { sessionId: 'order-7' }));
    expect(traced.tree().split('\n')).toEqual([
      'GET /orders',
      '  invoke_agent clerk',
      '    chat mock',
      '    execute_tool charge',
      '      POST /charges',
      '    execute_tool log',
      '    chat mock',
    ]);
  });

  it('say what the conventions ask for, and nothing that was said', async () => {
    const provider = mockModel([
      {
        toolCalls: [{ name: 'charge', id: 'call_1', args: { cents: 5 } }],
        usage: {
          inputTokens: 100,
          outputTokens: 20,
          cachedInputTokens: 60,
          reasoningTokens: 5,
          costUsd: 0.01,
        },
      },
      { text: 'Done.', usage: { inputTokens: 130, outputTokens: 7 } },
    ]);
    const { agent } = traced.process({
      provider: {
        ...provider,
        providerId: 'google',
        modelId: 'gemini-9',
        generate: (r) => provider.generate(r),
      },
      tools: [tool('charge')],
      modelSettings: { maxOutputTokens: 500, temperature: 0.2, topP: 0.9, stopSequences: ['END'], seed: 3 },
    });
    const { runId } = await agent.send('Charge order 7.', { sessionId: 'order-7' });
    const [root, first, call, second] = traced.spans();
    expect(root).toMatchObject({
      name: 'invoke_agent clerk',
      kind: SpanKind.INTERNAL,
      status: ok,
      links: [],
    });
    expect(root?.attributes).toEqual({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'clerk',
      'gen_ai.conversation.id': 'order-7',
      'gen_ai.request.model': 'gemini-9',
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.usage.input_tokens': 230,
      'gen_ai.usage.output_tokens': 27,
      'lousho.run.attempts': 0,
      'lousho.run.id': runId,
      'lousho.run.resumed': false,
      'lousho.run.step': 0,
      'lousho.status': 'stop',
    });
    expect(first).toMatchObject({ name: 'chat gemini-9', kind: SpanKind.CLIENT, status: ok });
    expect(first?.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'gcp.gemini',
      'gen_ai.conversation.id': 'order-7',
      'gen_ai.request.max_tokens': 500,
      'gen_ai.request.model': 'gemini-9',
      'gen_ai.request.seed': 3,
      'gen_ai.request.stop_sequences': ['END'],
      'gen_ai.request.temperature': 0.2,
      'gen_ai.request.top_p': 0.9,
      'gen_ai.response.finish_reasons': ['tool_call'],
      'gen_ai.usage.cache_read.input_tokens': 60,
      'gen_ai.usage.input_tokens': 100,
      'gen_ai.usage.output_tokens': 20,
      'gen_ai.usage.reasoning.output_tokens': 5,
      'lousho.run.step': 0,
      'lousho.usage.cost_usd': 0.01,
    });
    expect(call).toMatchObject({ name: 'execute_tool charge', kind: SpanKind.INTERNAL, status: ok });
    expect(call?.attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.agent.name': 'clerk',
      'gen_ai.tool.call.id': 'call_1',
      'gen_ai.tool.description': 'Does charge.',
      'gen_ai.tool.name': 'charge',
      'gen_ai.tool.type': 'function',
      'lousho.run.step': 1,
    });
    expect(second?.attributes).toMatchObject({
      'gen_ai.response.finish_reasons': ['stop'],
      'lousho.run.step': 1,
    });
  });

  it('measure when a streamed response begins', async () => {
    const { agent } = traced.process({ script: [{ text: 'One two.', delayMs: 500 }] });
    const { text } = await traced.letTimePass(agent.stream('Count.').result);
    expect(text).toBe('One two.');
    expect(traced.only('chat mock').attributes).toMatchObject({
      'gen_ai.request.stream': true,
      'gen_ai.response.time_to_first_chunk': 0.5,
    });
  });

  it('are one for each request: retries are seen, with why, and the run is well', async () => {
    const busy = new LLMProviderError('slow down', { kind: 'api', status: 429, retryable: true });
    const lost = new LLMProviderError('gone', { kind: 'network', retryable: true });
    const { agent } = traced.process({ script: [busy, lost, 'Done.'] });
    await traced.letTimePass(agent.send('go'));
    expect(
      traced.named('chat mock').map(({ status, attributes }) => [status.code, attributes]),
    ).toMatchObject([
      [SpanStatusCode.ERROR, { 'error.type': '429', 'gen_ai.response.finish_reasons': ['error'] }],
      [SpanStatusCode.ERROR, { 'error.type': 'network', 'lousho.model.retries': 1 }],
      [SpanStatusCode.UNSET, { 'gen_ai.response.finish_reasons': ['stop'], 'lousho.model.retries': 2 }],
    ]);
    expect(traced.only('invoke_agent clerk').status).toEqual(ok);
  });

  it('of sub-agents lie below the call that runs them', async () => {
    const counter = mockModel([calling('count'), '3'], { modelId: 'small' });
    const { agent } = traced.process({
      script: [calling(['task', { agent: 'counter', prompt: 'Count.' }]), 'Three.'],
      subagents: [{ name: 'counter', description: 'Counts.', provider: counter, tools: [tool('count')] }],
    });
    await agent.send('How many?', { sessionId: 's' });
    expect(traced.tree().split('\n')).toEqual([
      'invoke_agent clerk',
      '  chat mock',
      '  execute_tool task',
      '    invoke_agent counter',
      '      chat small',
      '      execute_tool count',
      '      chat small',
      '  chat mock',
    ]);
    expect(traced.only('invoke_agent counter').attributes).toMatchObject({
      'lousho.subagent.path': ['counter'],
      'gen_ai.conversation.id': 's/call_task',
      'gen_ai.usage.input_tokens': 2,
    });
    // What an agent gives away is counted where it is spent.
    expect(traced.only('invoke_agent clerk').attributes).toMatchObject({ 'gen_ai.usage.input_tokens': 2 });
  });

  it('show who took over, and who was given it back', async () => {
    const cashier = mockModel([calling('refund'), calling('handoff_to_clerk')], { modelId: 'small' });
    const { agent } = traced.process({
      script: [calling('handoff_to_cashier'), 'It is done.'],
      handoffs: [
        { name: 'cashier', description: 'Handles money.', provider: cashier, tools: [tool('refund')] },
      ],
    });
    const { text } = await agent.send('My money, please.', { sessionId: 's' });
    expect(text).toBe('It is done.');
    expect(traced.tree().split('\n')).toEqual([
      'invoke_agent clerk',
      '  chat mock',
      '  execute_tool handoff_to_cashier',
      '  invoke_agent cashier',
      '    chat small',
      '    execute_tool refund',
      '    chat small',
      '    execute_tool handoff_to_clerk',
      '  chat mock',
    ]);
    expect(traced.only('invoke_agent cashier').attributes).toMatchObject({ 'lousho.status': 'handed-over' });
  });
});

describe('the end of a span', () => {
  it('is an error when the tool failed, and the run is well', async () => {
    const broken = tool('broken', () => {
      throw new TypeError('no such order');
    });
    const { agent } = traced.process({ tools: [broken], script: [calling('broken'), 'Sorry.'] });
    await agent.send('go');
    const { attributes, status } = traced.only('execute_tool broken');
    expect(status).toEqual({ code: SpanStatusCode.ERROR });
    expect(attributes).toMatchObject({ 'error.type': 'execution' });
    expect(traced.only('invoke_agent clerk').status).toEqual(ok);
  });

  it('is an error of the run when the model fails for good, or a tool rejects the run', async () => {
    const refused = new LLMProviderError('no', { kind: 'api', status: 401, retryable: false });
    await expect(traced.process({ script: [refused] }).agent.send('go')).rejects.toBe(refused);
    expect(traced.only('invoke_agent clerk')).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': '401', 'lousho.status': 'failed' },
    });
    const stop = tool('stop', () => {
      throw new PropagatingToolError('stop everything');
    });
    const rejecting = traced.process({ name: 'other', tools: [stop], script: [calling('stop')] });
    await expect(rejecting.agent.send('go')).rejects.toThrow('stop everything');
    for (const name of ['execute_tool stop', 'invoke_agent other'])
      expect(traced.only(name)).toMatchObject({
        status: { code: SpanStatusCode.ERROR },
        attributes: { 'error.type': 'LOUSHO_TOOL_PROPAGATED' },
      });
  });

  it('is no error when a person stopped the run', async () => {
    const aborting = new AbortController();
    const { agent } = traced.process({ script: [{ text: 'late', delayMs: 9e9 }] });
    const running = agent.send('go', { signal: aborting.signal });
    await until(() => traced.begun('chat mock').length === 1);
    aborting.abort(new Error('changed my mind'));
    await running;
    expect(traced.only('chat mock')).toMatchObject({ status: ok, attributes: { 'lousho.cancelled': true } });
    expect(traced.only('invoke_agent clerk')).toMatchObject({
      status: ok,
      attributes: { 'lousho.status': 'aborted' },
    });
  });

  it('is no error when the process goes away: another one goes on', async () => {
    let begun = false;
    const slow = tool('slow', () => new Promise(() => void (begun = true)));
    const { agent } = traced.process({ tools: [slow], script: [calling('slow')] });
    const running = agent.send('go', { sessionId: 's' });
    const rejected = expect(running).rejects.toThrow();
    await until(() => begun);
    await traced.letTimePass(agent.shutdown({ timeoutMs: 1_000 }));
    await rejected;
    for (const name of ['execute_tool slow', 'invoke_agent clerk'])
      expect(traced.only(name)).toMatchObject({ status: ok, attributes: { 'lousho.status': 'suspended' } });
  });
});

describe('saves', () => {
  it('are spans when they are asked for', async () => {
    const script = [calling('log'), 'Done.'];
    await traced.process({ tools: [tool('log')], script }).agent.send('go', { sessionId: 'a' });
    expect(traced.named('lousho.checkpoint.save')).toEqual([]);
    const asking = traced.process({ tools: [tool('log')], script, otel: { recordCheckpoints: true } });
    await asking.agent.send('go', { sessionId: 'b' });
    const saves = traced.named('lousho.checkpoint.save');
    expect(saves.map(({ attributes }) => attributes)).toMatchObject([
      {
        'lousho.checkpoint.id': 'b',
        'lousho.checkpoint.status': 'in-progress',
        'lousho.checkpoint.fenced': true,
      },
      { 'lousho.checkpoint.status': 'in-progress' },
      { 'lousho.checkpoint.status': 'finished' },
    ]);
    const root = traced.named('invoke_agent clerk')[1];
    expect(new Set(saves.map(({ parentSpanContext }) => parentSpanContext?.spanId))).toEqual(
      new Set([root?.spanContext().spanId]),
    );
  });
});
