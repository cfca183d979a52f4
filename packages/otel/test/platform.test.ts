/** Without a context manager, without an SDK, with one that comes later: what other tests have is not there. */
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openTelemetry } from '../src/index.ts';
import { calling, tool } from './support/tools.ts';
import { Traced } from './support/traced.ts';

let traced: Traced;
beforeEach(() => void (traced = new Traced()));
afterEach(async () => {
  await traced.end();
  context.disable();
  trace.disable();
  metrics.disable();
});

const counting = () => ({
  script: [calling('look', ['task', { agent: 'counter', prompt: 'Count.' }]), 'Three.'],
  tools: [tool('look')],
  subagents: [
    {
      ...{ name: 'counter', description: 'Counts.', tools: [tool('count')] },
      provider: mockModel([calling('count'), '3'], { modelId: 'small' }),
    },
  ],
});

describe('on a platform without async context', () => {
  it('the spans of a run and of its sub-agents form the same tree', async () => {
    await traced.process(counting()).agent.send('go', { sessionId: 's' });
    const without = traced.tree();
    await traced.end();
    traced = new Traced();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    await traced.process(counting()).agent.send('go', { sessionId: 's' });
    expect(without).toBe(traced.tree());
    expect(without.split('\n')).toContain('    invoke_agent counter');
  });

  it('runs that execute at once stay apart, and a resumed one is linked', async () => {
    const { agent } = traced.process({
      tools: [tool('pay', undefined, { needsApproval: true })],
      script: [calling('pay'), calling('pay'), 'Paid.', 'Paid.'],
    });
    const paused = await Promise.all(['a', 'b'].map((sessionId) => agent.send('go', { sessionId })));
    await Promise.all(
      paused.map(({ approvalId }) => agent.approvals.resolve({ id: approvalId ?? '', approved: true })),
    );
    const stretch = ['invoke_agent clerk', '  chat mock'];
    const resumed = ['invoke_agent clerk', '  execute_tool pay', '  chat mock'];
    expect(traced.tree().split('\n')).toEqual([...stretch, ...stretch, ...resumed, ...resumed]);
    const byRun = new Map(
      traced.named('invoke_agent clerk').map((span) => [span.attributes['gen_ai.conversation.id'], span]),
    );
    for (const sessionId of ['a', 'b']) {
      const [before] = traced
        .named('invoke_agent clerk')
        .filter(({ attributes }) => attributes['gen_ai.conversation.id'] === sessionId);
      expect(byRun.get(sessionId)?.links.map((link) => link.context.spanId)).toEqual([
        before?.spanContext().spanId,
      ]);
    }
  });
});

describe('what is registered with the API', () => {
  it('may be nothing: the run is untouched, and its checkpoint names no trace', async () => {
    const store = memoryStore();
    const agent = createAgent({ provider: mockModel(['Hello.']), store, telemetry: openTelemetry() });
    expect(await agent.send('Hi.', { sessionId: 's' })).toMatchObject({ text: 'Hello.' });
    expect(await store.checkpoints.load('s')).not.toHaveProperty('traceparent');
  });

  it('may come after the agent, even after its first run', async () => {
    const telemetry = openTelemetry();
    const agent = createAgent({ name: 'clerk', provider: mockModel(['One.', 'Two.']), telemetry });
    await agent.send('Hi.');
    trace.setGlobalTracerProvider(traced.tracers);
    metrics.setGlobalMeterProvider(traced.meters);
    await agent.send('Hi.');
    expect(traced.tree().split('\n')).toEqual(['invoke_agent clerk', '  chat mock']);
    expect([...(await traced.metrics()).keys()]).toContain('gen_ai.client.inference.duration');
  });
});

describe('an option', () => {
  it.each([
    ['recordContent', { recordContent: 'false' }],
    ['recordCheckpoints', { recordCheckpoints: 1 }],
    ['recordContents', { recordContents: true }],
  ])('%s that cannot be is refused by name', (option, options) => {
    expect(() => openTelemetry(options as never)).toThrow(
      expect.objectContaining({
        code: 'LOUSHO_CONFIG_INVALID',
        details: expect.objectContaining({ option }),
      }),
    );
  });
});
