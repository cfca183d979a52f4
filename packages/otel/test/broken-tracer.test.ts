import { mockModel } from '@lousho/testing';
import type { MeterProvider, Span, SpanContext, Tracer, TracerProvider } from '@opentelemetry/api';
import { memoryStore } from '@lousho/store-memory';
import { createAgent } from '@lousho/core';
import { describe, expect, it } from 'vitest';
import { openTelemetry } from '../src/index.ts';
import { calling, tool } from './support/tools.ts';

const broken = (): never => {
  throw new Error('the tracer is broken');
};

/** An object whose every method throws, but for those that are given. */
function breaking<Kind extends object>(working: Partial<Kind> = {}): Kind {
  return new Proxy(working as Kind, { get: (target, key) => Reflect.get(target, key) ?? broken });
}

const spanContext: SpanContext = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 };

const tracers: [string, TracerProvider][] = [
  ['begins no span', { getTracer: () => breaking() }],
  [
    'has spans that fail at everything',
    { getTracer: () => breaking<Tracer>({ startSpan: () => breaking<Span>() }) },
  ],
  [
    'has spans that fail when they end',
    {
      getTracer: () =>
        breaking<Tracer>({
          startSpan() {
            const span: Span = breaking<Span>({
              spanContext: () => spanContext,
              isRecording: () => true,
              setAttribute: () => span,
              setAttributes: () => span,
            });
            return span;
          },
        }),
    },
  ],
];
const meters: MeterProvider = { getMeter: () => breaking() };

describe('a run whose tracer', () => {
  it.each(tracers)('%s is what it would be without', async (_how, tracerProvider) => {
    const telemetry = openTelemetry({
      ...{ tracerProvider, meterProvider: meters },
      ...{ recordContent: true, recordCheckpoints: true },
    });
    const effects: string[] = [];
    const noting = (name: string, needsApproval = false) =>
      tool(name, () => void effects.push(name), { needsApproval });
    const provider = mockModel([
      calling('look', ['task', { agent: 'counter', prompt: 'Count.' }]),
      calling('pay'),
      'Paid.',
    ]);
    const agent = createAgent({
      ...{ provider, telemetry, store: memoryStore(), tools: [noting('look'), noting('pay', true)] },
      subagents: [{ name: 'counter', description: 'Counts.', provider: mockModel(['3']) }],
    });
    const paused = await agent.stream('go', { sessionId: 's' }).result;
    expect(paused.finishReason).toBe('awaiting-approval');
    const result = await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Paid.', steps: 3 });
    expect(effects).toEqual(['look', 'pay']);
    expect(provider.calls).toHaveLength(3);
    await expect(agent.send('again', { sessionId: 't' })).rejects.toMatchObject({
      code: 'LOUSHO_MOCK_EXHAUSTED',
    });
  });
});
