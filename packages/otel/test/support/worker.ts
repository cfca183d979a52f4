/** A Worker that runs a traced agent, as its author would write it, and answers with the spans that the SDK exported. */
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { openTelemetry } from '../../src/index.ts';
import { calling, tool } from './tools.ts';

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(
  new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
);
const telemetry = openTelemetry();

export default {
  async fetch(): Promise<Response> {
    const agent = createAgent({
      name: 'clerk',
      provider: mockModel([
        calling(['task', { agent: 'counter', prompt: 'Count.' }]),
        calling('pay'),
        'Paid.',
      ]),
      tools: [tool('pay', undefined, { needsApproval: true })],
      subagents: [{ name: 'counter', description: 'Counts.', provider: mockModel(['3']) }],
      ...{ store: memoryStore(), telemetry },
    });
    const paused = await agent.send('go', { sessionId: 'order-7' });
    const { text } = await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    const spans = exporter.getFinishedSpans().map((span) => ({
      name: span.name,
      id: span.spanContext().spanId,
      parentId: span.parentSpanContext?.spanId,
      links: span.links.map((link) => link.context.spanId),
    }));
    return Response.json({ text, spans });
  },
};
