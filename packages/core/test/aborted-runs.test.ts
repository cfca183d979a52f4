/** A person stops a run: what began may end, what did not never runs, and the run stays resumable. */
import { LLMProviderError, type AgentEvent } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { eventsOf, expectValid, refusal, rejection, results, roles } from './support/read.ts';
import { deferred, failingOnceTool, spyTool } from './support/tools.ts';
import { isOpen, letPass, until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

const callsOfAAndB = {
  toolCalls: [
    { name: 'a', id: 'call_a' },
    { name: 'b', id: 'call_b' },
  ],
};

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

  it('says of a call that rejected the run that it ran, when the abort comes while its siblings are stored', async () => {
    const stop = new AbortController();
    const a = failingOnceTool('a');
    const b = spyTool('b');
    const onEvent = ({ type }: AgentEvent) => {
      if (type === 'checkpoint.saved' && b.runs.length === 1) stop.abort();
    };
    const agent = world.agent({ provider: mockModel([callsOfAAndB]), tools: [a.tool, b.tool], onEvent });
    const { finishReason, messages } = await agent.send('go', { sessionId: 'job-1', signal: stop.signal });
    expect(finishReason).toBe('aborted');
    expect(results(messages)).toMatchObject([
      { kind: 'cancelled', result: { error: expect.stringContaining('may or may not') } },
      { result: 'b done' },
    ]);
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

  it('is stopped by the signal of a resume, too', async () => {
    const work = spyTool('work');
    const stop = new AbortController();
    const model = mockModel([
      { toolCalls: [{ name: 'work' }] },
      new Error('down'),
      () => (stop.abort(), 'dropped'),
    ]);
    const agent = world.agent({ provider: model, tools: [work.tool], retry: { maxRetries: 0 } });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    const result = await agent.resume('job-1', { signal: stop.signal });
    expect(result?.finishReason).toBe('aborted');
    expect(await world.stored('job-1')).toMatchObject({ status: 'in-progress', finishReason: 'aborted' });
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
