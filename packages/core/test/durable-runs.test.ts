/** A run with a sessionId survives whatever interrupts it: what was recorded stays, what is open runs, input finds its place. */
import { LLMProviderError, PropagatingToolError } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { eventsOf, expectValid, lines, refusal, rejection, results, roles } from './support/read.ts';
import { checkpointsWith, storeOf } from './support/stores.ts';
import { deferred, failingOnceTool, spyTool } from './support/tools.ts';
import { isOpen, letPass, until } from './support/wait.ts';
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

onEveryStore('failed runs', (world) => {
  const unavailable = new LLMProviderError('busy', { kind: 'api', status: 503, retryable: true });
  const noRetry = { maxRetries: 0 };

  it('counts failed attempts in a row, and forgets them with the first progress', async () => {
    const work = spyTool('work');
    const step = { toolCalls: [{ name: 'work' }] };
    const model = mockModel([step, unavailable, unavailable, step, unavailable, 'Done.']);
    const agent = world.agent({ provider: model, tools: [work.tool], retry: noRetry });
    const failure = async () => {
      const [run] = await agent.pending();
      return [run?.attempts, run?.lastError?.retryable, run?.lastError?.code];
    };
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    expect(await failure()).toEqual([1, true, 'LOUSHO_PROVIDER_ERROR']);
    await rejection(agent.resume('job-1'));
    expect(await failure()).toEqual([2, true, 'LOUSHO_PROVIDER_ERROR']);
    await rejection(agent.resume('job-1'));
    expect(await failure()).toEqual([1, true, 'LOUSHO_PROVIDER_ERROR']);
    await agent.resume('job-1');
    expect(await world.stored('job-1')).not.toHaveProperty('lastError');
    expect(await world.stored('job-1')).not.toHaveProperty('attempts');
  });

  it('drops the failure with the very save that records progress', async () => {
    const work = spyTool('work');
    const model = mockModel([
      { toolCalls: [{ name: 'work' }] },
      unavailable,
      { toolCalls: [{ name: 'work' }] },
      'Done.',
    ]);
    const agent = world.agent({ provider: model, tools: [work.tool], retry: noRetry });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    await agent.resume('job-1');
    const failures = (await world.saves('job-1')).map((save) => 'lastError' in save);
    // Model turn, result; failure; the resume began, model turn, result, end.
    expect(failures).toEqual([false, false, true, true, false, false, false]);
  });

  it('says whether a failed model call may be tried again', async () => {
    const refused = new LLMProviderError('too long', { kind: 'api', status: 400, retryable: false });
    const work = spyTool('work');
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }, refused]);
    const agent = world.agent({ provider: model, tools: [work.tool] });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    expect((await agent.pending())[0]).toMatchObject({
      attempts: 1,
      lastError: { retryable: false, message: 'too long' },
    });
    expect(model.calls).toHaveLength(2);
  });

  it('keeps the record as it was when the store cannot be written, and rejects with its error', async () => {
    const a = spyTool('a');
    const broken = new Error('disk full');
    let saves = 0;
    const checkpoints = checkpointsWith(world.checkpoints, {
      async saveIfLeased(...args) {
        saves += 1;
        if (saves > 1) throw broken;
        return world.checkpoints.saveIfLeased(...args);
      },
    });
    const store = storeOf(checkpoints);
    const model = mockModel([{ toolCalls: [{ name: 'a' }] }, 'never asked']);
    const sent = rejection(
      world.agent({ store, provider: model, tools: [a.tool] }).send('go', { sessionId: 'job-1' }),
    );
    expect(await letPass(world.clock, sent)).toBe(broken);
    expect([a.runs.length, model.calls.length]).toEqual([1, 1]);
    expect(lines((await world.stored('job-1'))?.messages ?? [])).toEqual(['user go', 'assistant a#call_1']);
    // The store works again: the call without a result runs once more.
    const result = await world.agent({ provider: mockModel(['Done.']), tools: [a.tool] }).resume('job-1');
    expect([result?.text, a.runs.length]).toEqual(['Done.', 2]);
  });
});

onEveryStore('aborted runs', (world) => {
  it('calls no model when the signal has aborted before', async () => {
    const model = mockModel(['never']);
    const events: string[] = [];
    const agent = world.agent({
      provider: model,
      instructions: 'Help.',
      onEvent: ({ type }) => events.push(type),
    });
    const result = await agent.send('hi', { sessionId: 'job-1', signal: AbortSignal.abort() });
    expect(result).toMatchObject({ finishReason: 'aborted', steps: 0 });
    expect(roles(result.messages)).toBe('system user');
    expect(model.calls).toHaveLength(0);
    expect(events).toEqual(['run.start', 'run.done']);
    expect(await world.stored('job-1')).toBeNull();
  });

  it('ends aborted when the signal fires while the model thinks, and stays resumable', async () => {
    const model = mockModel([{ text: 'late', delayMs: 60_000 }, 'Hello.'], { clock: world.clock });
    const stop = new AbortController();
    const agent = world.agent({ provider: model, instructions: 'Help.' });
    const sent = agent.send('hi', { sessionId: 'job-1', signal: stop.signal });
    await until(() => model.calls.length === 1);
    stop.abort('user left');
    const result = await sent;
    expect(result).toMatchObject({
      finishReason: 'aborted',
      text: '',
      abortReason: { name: 'AbortError', message: 'user left' },
    });
    expect(roles(result.messages)).toBe('system user');
    const stored = await world.stored('job-1');
    expect(stored).toMatchObject({ status: 'in-progress', finishReason: 'aborted' });
    expect(stored).not.toHaveProperty('lastError');
    expect((await agent.pending())[0]).toMatchObject({ status: 'in-progress', aborted: true });
    const resumed = await agent.resume('job-1');
    expect(resumed).toMatchObject({ finishReason: 'stop', text: 'Hello.' });
    expect(resumed).not.toHaveProperty('abortReason');
  });

  it('adds nothing when the same request is sent again after an abort', async () => {
    const stop = new AbortController();
    const work = spyTool('work', () => 'ok');
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }, () => (stop.abort(), 'dropped'), 'Done.']);
    const agent = world.agent({ provider: model, tools: [work.tool], instructions: 'Help.' });
    await agent.send('go', { sessionId: 'job-1', signal: stop.signal });
    const result = await agent.send('go', { sessionId: 'job-1' });
    expect(roles(result.messages)).toBe('system user assistant tool assistant');
    expect(result.text).toBe('Done.');
    expect(work.runs).toHaveLength(1);
    expect(await world.stored('job-1')).toMatchObject({ status: 'finished' });
  });

  it('does not run a tool again when new input follows an abort behind its result', async () => {
    const stop = new AbortController();
    const work = spyTool('work', () => (stop.abort(), 'ok'));
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }, 'Something else.']);
    const agent = world.agent({ provider: model, tools: [work.tool], instructions: 'Help.' });
    expect((await agent.send('go', { sessionId: 'job-1', signal: stop.signal })).finishReason).toBe(
      'aborted',
    );
    const result = await agent.send('do something else', { sessionId: 'job-1' });
    expect(roles(result.messages)).toBe('system user assistant tool user assistant');
    expect(work.runs).toHaveLength(1);
    expect(result.steps).toBe(2);
  });

  it('gives a call that did not begin a cancelled result and never runs it', async () => {
    const stop = new AbortController();
    const a = spyTool('a', () => stop.abort());
    const b = spyTool('b');
    const model = mockModel([callsOfAAndB, 'Stopped.']);
    const agent = world.agent({ provider: model, tools: [a.tool, b.tool], toolConcurrency: 1 });
    const aborted = await agent.send('go', { sessionId: 'job-1', signal: stop.signal });
    expect(aborted.finishReason).toBe('aborted');
    expect(results(aborted.messages).map(({ toolCallId, kind }) => [toolCallId, kind])).toEqual([
      ['call_a', undefined],
      ['call_b', 'cancelled'],
    ]);
    const resumed = await agent.resume('job-1');
    expect(b.runs).toHaveLength(0);
    expectValid(resumed?.messages ?? []);
  });

  it('waits for a tool that ignores the abort for a second, then cancels its call', async () => {
    const stop = new AbortController();
    const never = deferred();
    const slow = spyTool('slow', () => never.promise);
    const model = mockModel([{ toolCalls: [{ name: 'slow' }] }]);
    const agent = world.agent({ provider: model, tools: [slow.tool] });
    const sent = agent.send('go', { sessionId: 'job-1', signal: stop.signal });
    await until(() => slow.runs.length === 1);
    stop.abort();
    await world.clock.advance(999);
    expect(await isOpen(sent)).toBe(true);
    await world.clock.advance(1);
    const result = await sent;
    expect(result.finishReason).toBe('aborted');
    expect(results(result.messages)[0]?.kind).toBe('cancelled');
  });

  it('keeps the result of a tool that ends within the second after the abort', async () => {
    const stop = new AbortController();
    const slow = spyTool(
      'slow',
      (_args, _ctx) => new Promise((resolve) => world.clock.setTimer(() => resolve('made it'), 500)),
    );
    const model = mockModel([{ toolCalls: [{ name: 'slow' }] }]);
    const sent = world
      .agent({ provider: model, tools: [slow.tool] })
      .send('go', { sessionId: 'job-1', signal: stop.signal });
    await until(() => slow.runs.length === 1);
    stop.abort();
    expect(results((await letPass(world.clock, sent)).messages)[0]).toMatchObject({ result: 'made it' });
  });

  it('drops what a provider that ignores the abort says later', async () => {
    const model = mockModel([{ text: 'too late', delayMs: 300, ignoreSignal: true }], { clock: world.clock });
    const stop = new AbortController();
    const run = world.agent({ provider: model }).stream('hi', { sessionId: 'job-1', signal: stop.signal });
    const reading = eventsOf(run);
    await until(() => model.calls.length === 1);
    stop.abort();
    const result = await run.result;
    await world.clock.advance(1_000);
    const events = await reading;
    expect(result).toMatchObject({ finishReason: 'aborted', text: '' });
    expect(events.filter(({ type }) => type.startsWith('text.'))).toEqual([]);
    expect(events.at(-1)).toMatchObject({ type: 'run.done', finishReason: 'aborted' });
  });

  it('takes the abort for what it is when a provider reports it as an error of its own', async () => {
    const stop = new AbortController();
    const model = mockModel([() => (stop.abort(), new Error('Request aborted')), 'never']);
    const events: string[] = [];
    const agent = world.agent({ provider: model, onEvent: ({ type }) => events.push(type) });
    const result = await agent.send('hi', { sessionId: 'job-1', signal: stop.signal });
    expect(result.finishReason).toBe('aborted');
    expect(model.calls).toHaveLength(1);
    expect(events).not.toContain('error');
    expect(await world.stored('job-1')).not.toHaveProperty('lastError');
  });

  it('rejects with a real failure although a signal is there', async () => {
    const model = mockModel([new LLMProviderError('no', { kind: 'api', status: 400, retryable: false })]);
    const agent = world.agent({ provider: model });
    await refusal(agent.send('hi', { signal: new AbortController().signal }), 'LOUSHO_PROVIDER_ERROR');
  });

  it('names a time-out as the reason', async () => {
    const timedOut = new DOMException('The operation timed out.', 'TimeoutError');
    const result = await world
      .agent({ provider: mockModel(['never']) })
      .send('hi', { signal: AbortSignal.abort(timedOut) });
    expect(result).toMatchObject({ finishReason: 'aborted', abortReason: { name: 'TimeoutError' } });
  });

  it('aborts the run when the reader of its events leaves', async () => {
    const work = spyTool('work');
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }, 'never asked']);
    const run = world.agent({ provider: model, tools: [work.tool] }).stream('go', { sessionId: 'job-1' });
    for await (const event of run) if (event.type === 'tool.done') break;
    expect((await run.result).finishReason).toBe('aborted');
    expect(await world.stored('job-1')).toMatchObject({ status: 'in-progress', finishReason: 'aborted' });
  });
});
