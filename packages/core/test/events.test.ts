/** What an agent's listener and a run's handle hear: the same, numbered, of every way to execute. */
import { agentEventTypes, type AgentEvent } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it, vi } from 'vitest';
import { eventsOf, refusal, rejection, typesOf } from './support/read.ts';
import { deferred, emailTool, failingOnceTool, spyTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

const callWork = { toolCalls: [{ name: 'work', id: 'call_1' }] };

onEveryStore('onEvent', (world) => {
  function givenListener() {
    const events: AgentEvent[] = [];
    return { events, onEvent: (event: AgentEvent) => void events.push(event) };
  }

  it('hears a send from its start to its end, numbered without a gap', async () => {
    const { events, onEvent } = givenListener();
    const work = spyTool('work');
    const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool], onEvent });
    const result = await agent.send('go', { sessionId: 'job-1' });
    expect(typesOf(events)).toEqual([
      'run.start',
      'step.start',
      'tool.start',
      'tool.done',
      'step.done',
      'step.start',
      'text.done',
      'step.done',
      'run.done',
    ]);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index));
    for (const event of events) {
      expect(agentEventTypes).toContain(event.type);
      expect(event).toMatchObject({ v: 1, runId: result.runId, sessionId: 'job-1' });
      expect(new Date(event.timestamp).toISOString()).toBe(event.timestamp);
      expect(Object.values(event)).not.toContain(undefined);
    }
    expect(events.at(-1)).toMatchObject({ finishReason: 'stop', text: 'Done.', usage: result.usage });
  });

  it('hears every save, with what was stored', async () => {
    const { events, onEvent } = givenListener();
    const work = spyTool('work');
    const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool], onEvent });
    await agent.send('go', { sessionId: 'job-1' });
    const saved = events.flatMap((event) =>
      event.type === 'checkpoint.saved' ? [[event.checkpointId, event.status, event.step]] : [],
    );
    expect(saved).toEqual(
      (await world.saves('job-1')).map(({ status, stepIndex }) => ['job-1', status, stepIndex]),
    );
  });

  it('hears a resume, and a decision', async () => {
    const { events, onEvent } = givenListener();
    const work = failingOnceTool('work');
    const email = emailTool();
    const model = mockModel([callWork, { toolCalls: [{ name: 'email', args: { to: 'a' } }] }, 'Done.']);
    const agent = world.agent({ provider: model, tools: [work.tool, email.tool], onEvent });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    expect(typesOf(events).slice(-3)).toEqual(['step.done', 'error', 'run.done']);
    events.length = 0;
    const paused = await agent.resume('job-1');
    expect(events[0]).toMatchObject({ type: 'run.start', resumed: true, seq: 0 });
    expect(typesOf(events).slice(-3)).toEqual(['approval.requested', 'step.done', 'run.done']);
    events.length = 0;
    await agent.approvals.resolve({ id: paused?.approvalId ?? '', approved: true });
    expect(typesOf(events).slice(0, 4)).toEqual(['run.start', 'step.start', 'tool.resume', 'tool.done']);
    expect(events.at(-1)).toMatchObject({ type: 'run.done', text: 'Done.' });
  });

  it('hears the same as the reader of the handle', async () => {
    const { events, onEvent } = givenListener();
    const work = spyTool('work');
    const agent = world.agent({ provider: mockModel([callWork, 'Done.']), tools: [work.tool], onEvent });
    expect(await eventsOf(agent.stream('go', { sessionId: 'job-1' }))).toEqual(events);
  });

  it('is told that a request waits only after the pause is stored', async () => {
    const stored: unknown[] = [];
    const email = emailTool();
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'email', args: { to: 'a' } }] }]),
      tools: [email.tool],
      onEvent(event) {
        if (event.type === 'approval.requested')
          stored.push(world.stored('job-1'), agent.approvals.get(event.approvalId));
      },
    });
    await agent.send('go', { sessionId: 'job-1' });
    const [checkpoint, request] = await Promise.all(stored);
    expect(checkpoint).toMatchObject({ status: 'awaiting-approval' });
    expect(request).toMatchObject({ toolName: 'email' });
  });

  it('may throw: the run goes on', async () => {
    const complaint = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const onEvent = () => {
      throw new Error('listener');
    };
    const agent = world.agent({ provider: mockModel(['Hello.']), onEvent });
    expect((await agent.send('hi', { sessionId: 'a' })).text).toBe('Hello.');
    expect(complaint).toHaveBeenCalled();
    complaint.mockRestore();
  });

  it('may reject: the run goes on, and nothing is left unhandled', async () => {
    const complaint = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', note);
    const onEvent = (async () => {
      throw new Error('async listener');
    }) as () => void;
    const agent = world.agent({ provider: mockModel(['Hello.']), onEvent });
    expect((await agent.send('hi', { sessionId: 'a' })).text).toBe('Hello.');
    await world.clock.advance(0);
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
    expect(complaint).toHaveBeenCalled();
    complaint.mockRestore();
  });

  it('cannot change what others hear', async () => {
    const { events, onEvent } = givenListener();
    const agent = world.agent({
      provider: mockModel(['Hello.']),
      onEvent(event) {
        expect(Object.isFrozen(event)).toBe(true);
        onEvent(event);
      },
    });
    await agent.send('hi', { sessionId: 'a' });
    expect(events.length).toBeGreaterThan(0);
  });
});

onEveryStore('the handle of a run', (world) => {
  it('keeps every event for a reader who comes late, and is read once', async () => {
    const agent = world.agent({ provider: mockModel(['Hello there.']) });
    const run = agent.stream('hi', { sessionId: 'a' });
    const result = await run.result;
    const events = await eventsOf(run);
    expect(events[0]?.type).toBe('run.start');
    expect(events.at(-1)).toMatchObject({ type: 'run.done', text: result.text });
    expect(() => run[Symbol.asyncIterator]()).toThrow(
      expect.objectContaining({ code: 'LOUSHO_RUN_ALREADY_ITERATED' }),
    );
  });

  it('gives the words alone, beside the events', async () => {
    const run = world
      .agent({ provider: mockModel(['Hello there, friend.']) })
      .stream('hi', { sessionId: 'a' });
    const reading = eventsOf(run);
    let text = '';
    for await (const part of run.textStream) text += part;
    expect(text).toBe('Hello there, friend.');
    const deltas = (await reading).filter(({ type }) => type === 'text.delta');
    expect(deltas.length).toBeGreaterThan(1);
  });

  it('gives the same result and stores the same as send', async () => {
    const work = spyTool('work');
    const script = [callWork, 'Done.'];
    const sent = await world
      .agent({ provider: mockModel(script), tools: [work.tool] })
      .send('go', { sessionId: 'a' });
    const streamed = await world
      .agent({ provider: mockModel(script), tools: [work.tool] })
      .stream('go', { sessionId: 'b' }).result;
    const { runId: _sentId, sessionId: _a, ...sentRest } = sent;
    const { runId: _streamedId, sessionId: _b, ...streamedRest } = streamed;
    expect(streamedRest).toEqual(sentRest);
    const saves = async (id: string) =>
      (await world.saves(id)).map(({ runId: _id, ...checkpoint }) => ({ ...checkpoint, runId: '' }));
    expect(await saves('b')).toEqual(await saves('a'));
  });

  it('is no unhandled rejection when nobody reads its result', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', note);
    const agent = world.agent({ provider: mockModel([new Error('down')]), retry: { maxRetries: 0 } });
    const run = agent.stream('hi', { sessionId: 'a' });
    await eventsOf(run);
    await world.clock.advance(0);
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
    await refusal(run.result, 'LOUSHO_PROVIDER_ERROR');
  });

  it('takes input and aborts while it runs', async () => {
    const gate = deferred();
    const slow = spyTool('slow', () => gate.promise);
    const model = mockModel([{ toolCalls: [{ name: 'slow' }] }, 'In metric units.']);
    const run = world.agent({ provider: model, tools: [slow.tool] }).stream('go', { sessionId: 'a' });
    await until(() => slow.runs.length === 1);
    const queued = run.enqueue('metric units');
    expect(queued.applied).toBe('queued');
    expect(await queued.joined).toBe(true);
    gate.resolve();
    expect((await run.result).text).toBe('In metric units.');
    expect(run.enqueue('too late').applied).toBe(false);
    run.abort();
    expect((await run.result).finishReason).toBe('stop');
  });
});
