/** `askPerson`: a tool that asks in the middle of its work waits as a call waits for a yes, and goes on with the answer. */
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { askPerson, createAgent, defineTool, type ToolContext, type ToolDefinition } from '../src/index.ts';
import { delegate, scripted } from './support/delegating.ts';
import { refusal, resultOfCall } from './support/read.ts';
import { onEveryStore, type World } from './support/world.ts';

const sessionId = 'trip';
const booking = { toolCalls: [{ id: 'call_book', name: 'book', args: { to: 'Porto' } }] };
const classes = { text: 'Which class?', options: ['first', 'second'], allowFreeText: false };

type Options = Partial<ToolDefinition<{ type: 'object' }, unknown>>;

/** Asks for a class, then says what it booked. */
function bookTool(more: Options = {}) {
  const contexts: ToolContext[] = [];
  const tool = defineTool<{ type: 'object' }, unknown>({
    name: 'book',
    description: 'Books a train.',
    input: { type: 'object' },
    execute(args, ctx) {
      contexts.push(ctx);
      if (ctx.answer === undefined) return askPerson(classes, { hold: 'H1' });
      return { ...args, answered: ctx.answer };
    },
    ...more,
  });
  return { tool, contexts };
}

async function givenAsked(world: World, more: Options = {}, script: readonly string[] = ['Booked.']) {
  const book = bookTool(more);
  const agent = world.agent({ provider: mockModel([booking, ...script]), tools: [book.tool] });
  const paused = await agent.send('Book a train.', { sessionId });
  return { agent, ...book, paused, id: paused.approvalId ?? '' };
}

onEveryStore('a tool that asks a person', (world) => {
  it('pauses the run, says what it asks, and goes on with the answer and its own state', async () => {
    const { agent, contexts, id, paused } = await givenAsked(world);
    expect(paused.finishReason).toBe('awaiting-approval');
    expect(await agent.pending()).toMatchObject([{ sessionId, approvalKind: 'question' }]);
    expect(await agent.approvals.list()).toMatchObject([
      { id, kind: 'question', toolName: 'book', args: { to: 'Porto' }, question: classes },
    ]);
    const result = await agent.approvals.answer({ id, answer: 'SECOND', by: 'ann' });
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Booked.' });
    expect(resultOfCall(result.messages, 'call_book')).toMatchObject({
      result: { to: 'Porto', answered: { text: 'SECOND', option: 1, state: { hold: 'H1' }, by: 'ann' } },
    });
    expect(contexts.map(({ rerun }) => rerun)).toEqual([false, true]);
    expect(contexts[1]?.approval).toBeUndefined();
    expect(contexts[1]?.idempotencyKey).toBe(contexts[0]?.idempotencyKey);
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('is answered in another process, once', async () => {
    const { id } = await givenAsked(world);
    const { tool } = bookTool();
    const other = world.otherProcess().agent({ provider: mockModel(['Booked.']), tools: [tool] });
    const { messages } = await other.approvals.answer({ id, answer: 'first' });
    expect(resultOfCall(messages, 'call_book')?.result).toMatchObject({ answered: { option: 0 } });
    await refusal(other.approvals.answer({ id, answer: 'second' }), 'LOUSHO_APPROVAL_DECIDED');
  });

  it('asks as often as it likes; each question is decided once', async () => {
    const asks = (ctx: ToolContext): unknown => {
      const answers = [...((ctx.answer?.state ?? []) as string[]), ...(ctx.answer ? [ctx.answer.text] : [])];
      return answers.length < 3 ? askPerson({ text: `Question ${answers.length + 1}` }, answers) : answers;
    };
    const { agent, id } = await givenAsked(world, { execute: (_args, ctx) => asks(ctx) });
    const ids = [id];
    let result = await agent.approvals.answer({ id, answer: 'a' });
    for (const answer of ['b', 'c']) {
      ids.push(result.approvalId ?? '');
      result = await agent.approvals.answer({ id: result.approvalId ?? '', answer });
    }
    expect(new Set(ids).size).toBe(3);
    expect(resultOfCall(result.messages, 'call_book')?.result).toEqual(['a', 'b', 'c']);
    for (const decided of ids)
      await refusal(agent.approvals.answer({ id: decided, answer: 'z' }), 'LOUSHO_APPROVAL_DECIDED');
  });

  it('refuses an answer outside its options, and stays open', async () => {
    const { agent, id, contexts } = await givenAsked(world);
    const error = await refusal(agent.approvals.answer({ id, answer: 'third' }), 'LOUSHO_TOOL_ARGS_INVALID');
    expect(error.message).toContain('"book"');
    expect(contexts).toHaveLength(1);
    expect(await agent.approvals.list()).toMatchObject([{ id }]);
  });

  it('does not go on when the person declines', async () => {
    const { agent, id, contexts } = await givenAsked(world);
    const { messages } = await agent.approvals.resolve({ id, approved: false, note: 'too dear' });
    expect(resultOfCall(messages, 'call_book')).toMatchObject({
      kind: 'rejected',
      result: { error: expect.stringContaining('did not go on'), note: 'too dear' },
    });
    expect(contexts).toHaveLength(1);
  });

  it('that was approved before goes on as approved, with the arguments that the person changed', async () => {
    const { agent, id, contexts } = await givenAsked(world, { needsApproval: true });
    const asked = await agent.approvals.resolve({ id, approved: true, args: { to: 'Faro' }, by: 'ann' });
    const question = asked.approvalId ?? '';
    expect(question).not.toBe(id);
    expect(await agent.approvals.list()).toMatchObject([{ id: question, args: { to: 'Faro' } }]);
    const { messages } = await agent.approvals.answer({ id: question, answer: 'first', by: 'bob' });
    const result = resultOfCall(messages, 'call_book');
    expect(result?.result).toMatchObject({ to: 'Faro', answered: { by: 'bob' } });
    expect(result?.approval).toMatchObject({ id, by: 'ann', proposedArgs: { to: 'Porto' } });
    expect(contexts.map(({ approval }) => approval?.by)).toEqual(['ann', 'ann']);
    for (const decided of [id, question])
      await refusal(agent.approvals.resolve({ id: decided, approved: true }), 'LOUSHO_APPROVAL_DECIDED');
  });

  it('keeps what it changed in the business state before it asked', async () => {
    const { agent, id } = await givenAsked(world, {
      execute(_args, ctx) {
        if (ctx.answer !== undefined) return ctx.businessState;
        ctx.businessState = { held: true };
        return askPerson(classes);
      },
    });
    const { messages } = await agent.approvals.answer({ id, answer: 'first' });
    expect(resultOfCall(messages, 'call_book')?.result).toEqual({ held: true });
  });

  it('asks through the lead when it is the tool of a sub-agent', async () => {
    const { tool } = bookTool();
    const clerk = scripted('clerk', [booking, 'Booked.'], { tools: [tool] });
    const provider = mockModel([delegate('clerk'), 'All done.']);
    const agent = world.agent({ provider, subagents: [clerk.subagent] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId });
    expect(await agent.approvals.list()).toMatchObject([
      { id, kind: 'question', question: classes, subagentPath: ['clerk'] },
    ]);
    const { text } = await agent.approvals.answer({ id, answer: 'first' });
    expect(text).toBe('All done.');
    expect(resultOfCall(clerk.model.calls[1]?.messages ?? [], 'call_book')?.result).toMatchObject({
      answered: { option: 0, state: { hold: 'H1' } },
    });
  });

  it('loses no question to a shutdown', async () => {
    let ask = (): void => undefined;
    const asked = new Promise<void>((resolve) => (ask = resolve));
    const { tool } = bookTool({
      onInterrupted: 'never',
      execute: async () => {
        await asked;
        return askPerson(classes);
      },
    });
    const agent = world.agent({ provider: mockModel([booking]), tools: [tool] });
    const run = agent.stream('Book a train.', { sessionId });
    for await (const { type } of run) {
      if (type !== 'tool.start') continue;
      const ended = agent.shutdown({ timeoutMs: 60_000 });
      ask();
      await ended;
    }
    expect((await run.result).finishReason).toBe('awaiting-approval');
    expect((await world.stored(`${sessionId}`))?.status ?? 'awaiting-approval').toBe('awaiting-approval');
  });
});

it.each([
  ['no text', { text: ' ' }, null],
  ['no options in its list', { text: 'Which?', options: [] }, null],
  ['nothing to choose from and nothing to write', { text: 'Which?', allowFreeText: false }, null],
  ['a state that is too large', { text: 'Which?' }, 'x'.repeat(70_000)],
])('refuses a question with %s', (_what, question, state) => {
  expect(() => askPerson(question, state)).toThrow('must be');
});

it('waits for the answer without any store, too', async () => {
  const { tool } = bookTool();
  const agent = createAgent({ provider: mockModel([booking, 'Booked.']), tools: [tool] });
  const { approvalId: id = '' } = await agent.send('Book a train.');
  expect(await agent.approvals.answer({ id, answer: 'first' })).toMatchObject({ text: 'Booked.' });
});
