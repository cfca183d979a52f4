import { mockModel } from '@lousho/testing';
import { context, type SpanContext } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { formatTraceparent, parseTraceparent } from '../src/traceparent.ts';
import { calling, tool } from './support/tools.ts';
import { Traced, inSpan } from './support/traced.ts';

const THREE_DAYS_MS = 3 * 24 * 60 * 60_000;

let traced: Traced;
beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
afterAll(() => context.disable());
beforeEach(() => void (traced = new Traced()));
afterEach(() => traced.end());

function linkedTo(span: ReadableSpan | undefined): readonly string[] {
  return (span?.links ?? []).map(({ context: { traceId, spanId } }) => `${traceId} ${spanId}`);
}
function nameOf(span: { spanContext(): SpanContext } | undefined): string {
  const { traceId = '', spanId = '' } = span?.spanContext() ?? {};
  return `${traceId} ${spanId}`;
}

describe('a run that pauses', () => {
  it('is one trace before and one after, linked, also when the decision comes days later from another process', async () => {
    const setup = {
      tools: [tool('pay', undefined, { needsApproval: true })],
      script: [calling('pay'), 'Paid.'],
    };
    const { agent } = traced.process(setup);
    const paused = await inSpan(traced, 'GET /orders', () => agent.send('Pay.', { sessionId: 'order-7' }));
    const ended = traced.only('invoke_agent clerk');
    expect(ended.attributes).toMatchObject({ 'lousho.status': 'awaiting-approval' });
    expect(ended.events).toMatchObject([
      {
        name: 'lousho.approval.requested',
        attributes: {
          'lousho.approval.id': paused.approvalId,
          'lousho.approval.kind': 'tool',
          'gen_ai.tool.name': 'pay',
          'gen_ai.tool.call.id': 'call_pay',
        },
      },
    ]);
    await traced.clock.advance(THREE_DAYS_MS);

    const { agent: other } = traced.process({ ...setup, script: ['Paid.'] });
    const id = paused.approvalId ?? '';
    // Saves that come before the run goes on must not put the span of the request in the place of the one that paused.
    await inSpan(traced, 'POST /approvals', () => other.approvals.resolve({ id, approved: true }));
    expect(traced.tree().split('\n')).toEqual([
      'GET /orders',
      '  invoke_agent clerk',
      '    chat mock',
      'POST /approvals',
      '  invoke_agent clerk',
      '    execute_tool pay',
      '    chat mock',
    ]);
    const [before, after] = traced.named('invoke_agent clerk');
    expect(linkedTo(before)).toEqual([]);
    expect(linkedTo(after)).toEqual([nameOf(before)]);
    expect(after?.spanContext().traceId).not.toBe(before?.spanContext().traceId);
    expect(after?.attributes).toMatchObject({
      'gen_ai.conversation.id': 'order-7',
      'lousho.run.resumed': true,
      'lousho.run.step': 1,
      'lousho.run.id': before?.attributes['lousho.run.id'],
    });
    expect(traced.only('execute_tool pay').attributes).toMatchObject({ 'lousho.approval.id': id });
  });

  it('links each stretch to the one before it, over any number of pauses', async () => {
    const setup = { tools: [tool('pay', undefined, { needsApproval: true })] };
    const { agent } = traced.process({ ...setup, script: [calling('pay'), calling('pay'), 'Paid.'] });
    let result = await agent.send('Pay twice.', { sessionId: 'order-7' });
    while (result.finishReason === 'awaiting-approval')
      result = await agent.approvals.resolve({ id: result.approvalId, approved: true });
    const [first, second, third] = traced.named('invoke_agent clerk');
    expect(linkedTo(second)).toEqual([nameOf(first)]);
    expect(linkedTo(third)).toEqual([nameOf(second)]);
  });
});

describe('a run that is interrupted by a crash', () => {
  it('goes on in another trace that is linked to the dead one, and says what runs again', async () => {
    const setup = { tools: [tool('charge')], script: [calling('charge'), 'Done.'] };
    const dying = traced.process({ ...setup, diesAt: { call: 'saveIfLeased#2', when: 'before' } });
    await dying.untilDead(dying.agent.send('go', { sessionId: 'order-7' }));
    const [dead] = traced.begun('invoke_agent clerk');
    expect(traced.named('invoke_agent clerk')).toEqual([]);

    const { agent } = traced.process({ ...setup, script: ['Done.'] });
    expect(await agent.resume('order-7')).toMatchObject({ text: 'Done.' });
    const resumed = traced.only('invoke_agent clerk');
    expect(linkedTo(resumed)).toEqual([nameOf(dead)]);
    expect(resumed.attributes).toMatchObject({ 'lousho.run.resumed': true, 'lousho.run.step': 1 });
    const calls = traced.named('execute_tool charge');
    expect(calls.map(({ attributes }) => attributes['lousho.tool.rerun'])).toEqual([undefined, true]);
    expect(calls[1]?.parentSpanContext?.spanId).toBe(resumed.spanContext().spanId);
  });

  it('links a sub-agent to its own dead stretch', async () => {
    const counter = (): ReturnType<typeof mockModel> =>
      mockModel([calling('count'), '3'], { modelId: 'small', answerBy: 'step' });
    const setup = () => ({
      provider: mockModel([calling(['task', { agent: 'counter', prompt: 'Count.' }]), 'Three.'], {
        answerBy: 'step',
      }),
      subagents: [{ name: 'counter', description: 'Counts.', provider: counter(), tools: [tool('count')] }],
    });
    const dying = traced.process({ ...setup(), diesAt: { call: 'saveIfLeased#4', when: 'before' } });
    await dying.untilDead(dying.agent.send('How many?', { sessionId: 's' }));
    const [dead] = traced.begun('invoke_agent counter');
    expect(dead).toBeDefined();

    const { agent } = traced.process(setup());
    expect(await agent.resume('s')).toMatchObject({ text: 'Three.' });
    const resumed = traced.only('invoke_agent counter');
    expect(linkedTo(resumed)).toEqual([nameOf(dead)]);
    expect(linkedTo(traced.only('invoke_agent clerk'))).toEqual([
      nameOf(traced.begun('invoke_agent clerk')[0]),
    ]);
  });
});

describe('what a checkpoint keeps of a span', () => {
  const spanContext = {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    traceFlags: 1,
  };

  it('is a W3C traceparent', () => {
    const text = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect(formatTraceparent(spanContext)).toBe(text);
    expect(parseTraceparent(text)).toEqual({ ...spanContext, isRemote: true });
    expect(formatTraceparent({ ...spanContext, traceFlags: 0 })).toMatch(/-00$/);
  });

  it.each([
    '',
    'order-7',
    '00-abc-def-01',
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${'g'.repeat(32)}`,
  ])('links to nothing when it is %j', (text) => expect(parseTraceparent(text)).toBeUndefined());

  it('is nothing when nothing is traced', () => {
    expect(
      formatTraceparent({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), traceFlags: 0 }),
    ).toBeUndefined();
  });
});

it('of a fork says what it was forked from, and links to nothing', async () => {
  const { agent } = traced.process({ tools: [tool('log')], script: [calling('log'), 'Done.', 'Again.'] });
  await agent.send('go', { sessionId: 'source' });
  const fork = await agent.fork('source', { fromStep: 1, newSessionId: 'copy' });
  await agent.resume(fork.sessionId);
  const forked = traced.named('invoke_agent clerk')[1];
  expect(forked?.attributes).toMatchObject({ 'lousho.fork.of': 'source', 'lousho.fork.step': 1 });
  expect(linkedTo(forked)).toEqual([]);
});
