/** `ask_question`: the run waits for a person's answer as it waits for a yes. */
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { createAgent, defineTool } from '../src/index.ts';
import { refusal, resultOfCall } from './support/read.ts';
import { onEveryStore, type World } from './support/world.ts';

interface Question {
  readonly question: string;
  readonly options?: readonly string[];
  readonly allowFreeText?: boolean;
}

async function givenAsked(world: World, question: Question, ...script: string[]) {
  const provider = mockModel([
    { toolCalls: [{ id: 'call_ask', name: 'ask_question', args: { ...question } }] },
    ...script,
  ]);
  const agent = world.agent({ provider, askQuestion: true });
  const paused = await agent.send('Book a flight.', { sessionId: 'trip' });
  return { agent, provider, id: paused.approvalId as string };
}

onEveryStore('a question', (world) => {
  it('pauses the run, says what it asks, and its answer is what the model reads', async () => {
    const { agent, provider, id } = await givenAsked(
      world,
      { question: 'Where to?', options: ['Porto', 'Lisbon'] },
      'Booked.',
    );
    expect(await agent.pending()).toMatchObject([{ sessionId: 'trip', approvalKind: 'question' }]);
    expect(await agent.approvals.list()).toMatchObject([
      { id, kind: 'question', question: { text: 'Where to?', options: ['Porto', 'Lisbon'] } },
    ]);
    const result = await agent.approvals.answer({ id, answer: 'lisbon', by: 'ann' });
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Booked.' });
    expect(resultOfCall(result.messages, 'call_ask')).toMatchObject({
      result: { answer: 'lisbon', option: 1 },
      approval: { approved: true, by: 'ann' },
    });
    expect(provider.calls[0]?.tools).toMatchObject([{ name: 'ask_question' }]);
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('takes another answer than its options unless it says no', async () => {
    const { agent, id } = await givenAsked(world, { question: 'Where to?', options: ['Porto'] }, 'Booked.');
    const { messages } = await agent.approvals.answer({ id, answer: 'Faro' });
    expect(resultOfCall(messages, 'call_ask')?.result).toEqual({ answer: 'Faro' });
  });

  it.each([
    ['no answer', {}],
    ['an empty answer', { answer: ' ' }],
    ['an answer outside its options', { answer: 'Faro' }],
    ['other arguments', { answer: 'Porto', args: { question: 'Why?' } }],
  ])('refuses %s, and stays open', async (_what, given) => {
    const closed = { question: 'Where to?', options: ['Porto', 'Lisbon'], allowFreeText: false };
    const { agent, id } = await givenAsked(world, closed, 'Booked.');
    const before = await world.stored('trip');
    await refusal(agent.approvals.resolve({ id, approved: true, ...given }), 'LOUSHO_TOOL_ARGS_INVALID');
    expect(await world.stored('trip')).toEqual(before);
    expect(await agent.approvals.list()).toMatchObject([{ id }]);
    expect(await agent.approvals.answer({ id, answer: 'PORTO' })).toMatchObject({ finishReason: 'stop' });
  });

  it('that nobody wants to answer tells the model so', async () => {
    const { agent, id } = await givenAsked(world, { question: 'Where to?' }, 'Never mind.');
    const { messages } = await agent.approvals.resolve({ id, approved: false, note: 'not now' });
    expect(resultOfCall(messages, 'call_ask')).toMatchObject({
      kind: 'rejected',
      result: { error: expect.stringContaining('declined'), note: 'not now' },
    });
  });

  it('is answered in another process, after a crash, once', async () => {
    const { id } = await givenAsked(world, { question: 'Where to?' });
    const other = world.otherProcess().agent({ provider: mockModel(['Booked.']), askQuestion: true });
    const result = await other.approvals.answer({ id, answer: 'Faro' });
    expect(resultOfCall(result.messages, 'call_ask')?.result).toEqual({ answer: 'Faro' });
    await refusal(other.approvals.answer({ id, answer: 'Porto' }), 'LOUSHO_APPROVAL_DECIDED');
  });

  it('without a text is told to the model at once', async () => {
    const provider = mockModel([{ toolCalls: [{ id: 'c', name: 'ask_question', args: {} }] }, 'Sorry.']);
    const result = await world.agent({ provider, askQuestion: true }).send('go', { sessionId: 'trip' });
    expect(resultOfCall(result.messages, 'c')).toMatchObject({ kind: 'validation' });
  });

  it('can be answered in code', async () => {
    const provider = mockModel([
      { toolCalls: [{ id: 'c', name: 'ask_question', args: { question: 'Where to?' } }] },
      'Booked.',
    ]);
    const agent = world.agent({
      provider,
      askQuestion: true,
      approve: ({ question }) => ({ approved: true, answer: `You asked: ${question?.text}` }),
    });
    const { messages } = await agent.send('go', { sessionId: 'trip' });
    expect(resultOfCall(messages, 'c')?.result).toEqual({ answer: 'You asked: Where to?' });
  });

  it('is no answer to a call of another tool', async () => {
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      needsApproval: true,
      execute: () => 'paid',
    });
    const agent = world.agent({ provider: mockModel([{ toolCalls: [{ name: 'pay' }] }]), tools: [pay] });
    const { approvalId } = await agent.send('go', { sessionId: 'trip' });
    const error = await refusal(
      agent.approvals.answer({ id: approvalId as string, answer: 'yes' }),
      'LOUSHO_TOOL_ARGS_INVALID',
    );
    expect(error.message).toContain('pay');
    expect(await agent.approvals.list()).toHaveLength(1);
  });
});

it('a tool of the same name beside it is refused', () => {
  const own = defineTool({
    name: 'ask_question',
    description: 'x',
    input: { type: 'object' },
    execute: () => '',
  });
  expect(() => createAgent({ provider: mockModel([]), askQuestion: true, tools: [own] })).toThrow(
    'ask_question',
  );
});
