/** A run with a sessionId survives whatever interrupts it: what was recorded stays, what is open runs, input finds its place. */
import { LLMProviderError, PropagatingToolError } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { eventsOf, expectValid, lines, refusal, rejection, roles } from './support/read.ts';
import { failingOnceTool, spyTool } from './support/tools.ts';
import { onEveryStore, type World } from './support/world.ts';

const callsOfAAndB = {
  toolCalls: [
    { name: 'a', id: 'call_a' },
    { name: 'b', id: 'call_b' },
  ],
};

/** A run of two calls: `a` is recorded, `b` rejected the run. */
async function givenRunInterruptedInB(world: World) {
  const a = spyTool('a');
  const b = failingOnceTool('b');
  const tools = [a.tool, b.tool];
  const agent = world.agent({ provider: mockModel([callsOfAAndB]), tools, instructions: 'Help.' });
  const error = await rejection(agent.send('do both', { sessionId: 'job-1' }));
  expect(error).toBeInstanceOf(PropagatingToolError);
  return { a, b, tools };
}

onEveryStore('durable runs', (world) => {
  it('is durable exactly when the agent has a store and the call a sessionId', async () => {
    const agent = world.agent({ provider: mockModel(['Hello.', 'Hello.']) });
    const result = await agent.send('hi');
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Hello.' });
    expect(result).not.toHaveProperty('sessionId');
    expect(await world.checkpoints.list()).toEqual([]);
    await agent.send('hi', { sessionId: 'chat-42' });
    expect((await world.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['chat-42']);
  });

  it('stores what the model asked for before the first tool starts', async () => {
    const seen: unknown[] = [];
    const probe = spyTool('probe', async () => {
      const stored = await world.stored('job-1');
      seen.push(stored?.status, lines(stored?.messages ?? []).at(-1));
    });
    const model = mockModel([{ toolCalls: [{ name: 'probe', id: 'call_probe' }] }, 'Done.']);
    await world.agent({ provider: model, tools: [probe.tool] }).send('go', { sessionId: 'job-1' });
    expect(seen).toEqual(['in-progress', 'assistant probe#call_probe']);
  });

  it('writes nothing before the first model response of a run that rejects', async () => {
    const model = mockModel([new LLMProviderError('no', { kind: 'api', status: 400, retryable: false })]);
    await refusal(
      world.agent({ provider: model }).send('hi', { sessionId: 'job-1' }),
      'LOUSHO_PROVIDER_ERROR',
    );
    expect(await world.stored('job-1')).toBeNull();
  });

  it('runs only the calls without a result when the same input is sent again', async () => {
    const { a, b, tools } = await givenRunInterruptedInB(world);
    const model = mockModel(['all done']);
    const agent = world.agent({ provider: model, tools, instructions: 'Help.' });
    const result = await agent.send('do both', { sessionId: 'job-1' });
    expect([a.runs.length, b.runs.length]).toEqual([1, 2]);
    expect(b.runs.map(({ ctx }) => ctx.toolCallId)).toEqual(['call_b', 'call_b']);
    expect(b.runs.map(({ ctx }) => ctx.rerun)).toEqual([false, true]);
    expect(new Set(b.runs.map(({ ctx }) => ctx.idempotencyKey)).size).toBe(1);
    expect(model.calls).toHaveLength(1);
    expect(lines(model.calls[0]?.messages ?? [])).toEqual([
      'system Help.',
      'user do both',
      'assistant a#call_a b#call_b',
      'tool call_a "a done"',
      'tool call_b "b done"',
    ]);
    expect(lines(result.messages).at(-1)).toBe('assistant all done');
    expect(result.toolCalls.map(({ toolName }) => toolName)).toEqual(['a', 'b']);
  });

  it('puts other input behind the results of the open calls', async () => {
    const { tools } = await givenRunInterruptedInB(world);
    const model = mockModel(['Both, and sunny.']);
    const agent = world.agent({ provider: model, tools, instructions: 'Help.' });
    const result = await agent.send('also check the weather', { sessionId: 'job-1' });
    const asked = model.calls[0]?.messages ?? [];
    expect(roles(asked)).toBe('system user assistant tool tool user');
    expect(lines(asked).at(-1)).toBe('user also check the weather');
    expectValid(asked);
    expect(lines(result.messages).at(-1)).toBe('assistant Both, and sunny.');
  });

  it('adds of a retry with more messages only those that are new', async () => {
    const { tools } = await givenRunInterruptedInB(world);
    const model = mockModel(['Done.']);
    await world.agent({ provider: model, tools, instructions: 'Help.' }).send(
      [
        { role: 'user', content: 'do both' },
        { role: 'user', content: 'quickly' },
      ],
      { sessionId: 'job-1' },
    );
    const users = lines(model.calls[0]?.messages ?? []).filter((line) => line.startsWith('user'));
    expect(users).toEqual(['user do both', 'user quickly']);
  });

  it('only continues when the input is an empty list', async () => {
    const { tools } = await givenRunInterruptedInB(world);
    const model = mockModel(['Done.']);
    const agent = world.agent({ provider: model, tools, instructions: 'Help.' });
    const result = await agent.send([], { sessionId: 'job-1' });
    expect(roles(result.messages)).toBe('system user assistant tool tool assistant');
  });

  it('is finished by resume in another process, once; there is nothing to resume afterwards', async () => {
    const { tools } = await givenRunInterruptedInB(world);
    const model = mockModel(['all done']);
    const agent = world.otherProcess().agent({ provider: model, tools, instructions: 'Help.' });
    const result = await agent.resume('job-1');
    expect(result).toMatchObject({ finishReason: 'stop', text: 'all done', sessionId: 'job-1' });
    expect(model.calls).toHaveLength(1);
    expect(await agent.resume('job-1')).toBeNull();
    expect(await agent.resume('never-ran')).toBeNull();
  });

  it('goes on as a conversation after a resume has finished it', async () => {
    const { tools } = await givenRunInterruptedInB(world);
    const model = mockModel(['all done', 'A summary.']);
    const agent = world.agent({ provider: model, tools, instructions: 'Help.' });
    await agent.resume('job-1');
    const next = await agent.send('Now write a summary', { sessionId: 'job-1' });
    expect(lines(model.calls[1]?.messages ?? []).slice(-2)).toEqual([
      'assistant all done',
      'user Now write a summary',
    ]);
    expect(next).toMatchObject({ steps: 1, toolCalls: [], usage: { modelCalls: 1 } });
  });

  it('streams a resume: the open calls and the answer are events, and nothing is added', async () => {
    const { tools } = await givenRunInterruptedInB(world);
    const agent = world.agent({ provider: mockModel(['all done']), tools, instructions: 'Help.' });
    const run = agent.stream([], { sessionId: 'job-1' });
    const events = await eventsOf(run);
    expect(events[0]).toMatchObject({ type: 'run.start', resumed: true, sessionId: 'job-1' });
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'tool.done', toolCallId: 'call_b', result: 'b done' }),
    );
    expect(events.at(-1)).toMatchObject({ type: 'run.done', finishReason: 'stop', text: 'all done' });
    const result = await run.result;
    expect(result.text).toBe('all done');
    expect(result.messages.filter(({ role }) => role === 'user')).toHaveLength(1);
  });

  it('counts usage over the interruption, every model call once', async () => {
    const a = spyTool('a');
    const b = failingOnceTool('b');
    const tools = [a.tool, b.tool];
    const first = mockModel([{ ...callsOfAAndB, usage: { inputTokens: 100, outputTokens: 10 } }]);
    await rejection(world.agent({ provider: first, tools }).send('go', { sessionId: 'job-1' }));
    const second = mockModel([{ text: 'Done.', usage: { inputTokens: 200, outputTokens: 20 } }]);
    const result = await world.agent({ provider: second, tools }).resume('job-1');
    expect(result?.usage).toMatchObject({
      inputTokens: 300,
      outputTokens: 30,
      totalTokens: 330,
      modelCalls: 2,
    });
    expect(result?.steps).toBe(2);
  });

  it('counts usage, steps and calls of a new turn from zero', async () => {
    const work = spyTool('work');
    const model = mockModel([
      { toolCalls: [{ name: 'work' }], usage: { inputTokens: 100, outputTokens: 10 } },
      { text: 'One.', usage: { inputTokens: 100, outputTokens: 10 } },
      { text: 'Two.', usage: { inputTokens: 50, outputTokens: 5 } },
    ]);
    const agent = world.agent({ provider: model, tools: [work.tool] });
    await agent.send('first', { sessionId: 'chat-42' });
    const second = await agent.send('second', { sessionId: 'chat-42' });
    expect(second).toMatchObject({
      steps: 1,
      toolCalls: [],
      usage: { inputTokens: 50, outputTokens: 5, modelCalls: 1 },
    });
    expect(roles(second.messages)).toBe('user assistant tool assistant user assistant');
  });

  it('keeps the step budget over an interruption', async () => {
    const a = failingOnceTool('a');
    const script = [{ toolCalls: [{ name: 'a' }] }, { toolCalls: [{ name: 'a' }] }, 'never asked'];
    const model = mockModel(script);
    const agent = world.agent({ provider: model, tools: [a.tool], maxSteps: 2 });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    const result = await agent.resume('job-1');
    expect(result).toMatchObject({ finishReason: 'max-steps', steps: 2 });
    expect(model.calls).toHaveLength(2);
    expectValid(result?.messages ?? []);
  });

  it('runs the open calls of a run whose budget is spent, and asks no model', async () => {
    const a = failingOnceTool('a');
    const model = mockModel([{ toolCalls: [{ name: 'a' }] }, 'never asked']);
    const agent = world.agent({ provider: model, tools: [a.tool], maxSteps: 1 });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    const result = await agent.resume('job-1');
    expect(result).toMatchObject({ finishReason: 'max-steps', steps: 1 });
    expect([a.runs.length, model.calls.length]).toEqual([2, 1]);
    expect(await world.stored('job-1')).toMatchObject({ status: 'finished', finishReason: 'max-steps' });
  });

  it('answers new input to a run whose budget is spent in a run of its own', async () => {
    const a = failingOnceTool('a');
    const model = mockModel([{ toolCalls: [{ name: 'a' }] }, 'Hello again.']);
    const agent = world.agent({ provider: model, tools: [a.tool], maxSteps: 1 });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    const result = await agent.send('still there?', { sessionId: 'job-1' });
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Hello again.', steps: 1 });
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
  });

  it('starts afresh after its checkpoint was deleted, with the instructions of now', async () => {
    await givenRunInterruptedInB(world);
    await world.checkpoints.delete('job-1');
    const model = mockModel(['Fresh.']);
    const agent = world.agent({ provider: model, instructions: 'New rules.' });
    await agent.send('hello', { sessionId: 'job-1' });
    expect(lines(model.calls[0]?.messages ?? [])).toEqual(['system New rules.', 'user hello']);
  });

  it('leaves system messages of later input out, and keeps those of the first', async () => {
    const model = mockModel(['One.', 'Two.']);
    const agent = world.agent({ provider: model, instructions: 'Own.' });
    await agent.send(
      [
        { role: 'system', content: 'Given.' },
        { role: 'user', content: 'first' },
      ],
      { sessionId: 'chat-42' },
    );
    await agent.send(
      [
        { role: 'system', content: 'Ignored.' },
        { role: 'user', content: 'second' },
      ],
      { sessionId: 'chat-42' },
    );
    expect(lines(model.calls[0]?.messages ?? [])).toEqual(['system Own.', 'system Given.', 'user first']);
    expect(lines(model.calls[1]?.messages ?? [])).toEqual([
      'system Own.',
      'system Given.',
      'user first',
      'assistant One.',
      'user second',
    ]);
  });

  it('refuses an empty input on an id that has no run', async () => {
    const agent = world.agent({ provider: mockModel([]) });
    const error = await refusal(agent.send([], { sessionId: 'job-1' }), 'LOUSHO_INPUT_EMPTY');
    expect(error.details).toEqual({ sessionId: 'job-1' });
    await refusal(agent.send([]), 'LOUSHO_INPUT_EMPTY');
    await refusal(agent.stream([], { sessionId: 'job-1' }).result, 'LOUSHO_INPUT_EMPTY');
  });

  it('gives the stored result of a finished run when there is nothing new to say', async () => {
    const model = mockModel(['Hello.']);
    const agent = world.agent({ provider: model });
    const first = await agent.send('hi', { sessionId: 'chat-42' });
    const again = await agent.send([], { sessionId: 'chat-42' });
    expect(again).toEqual(first);
    expect(model.calls).toHaveLength(1);
  });

  it('takes a text, the parts of one message, one message and several', async () => {
    const model = mockModel([], { onExhausted: 'repeat-last' });
    model.push('Yes.');
    const agent = world.agent({ provider: model });
    const inputs = [
      'hi',
      [{ type: 'text', text: 'hi' }],
      { role: 'user', content: 'hi' },
      [{ role: 'user', content: 'hi' }],
    ] as const;
    for (const input of inputs) expect((await agent.send(input)).text).toBe('Yes.');
    expect(model.calls.map(({ messages }) => lines(messages))).toEqual(inputs.map(() => ['user hi']));
  });
});
