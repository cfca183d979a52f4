/** A call that a person must agree to: shown, decided once, run as it was shown, wherever and whenever it is decided. */
import { PropagatingToolError, SessionAwaitingApprovalError, type Checkpoint } from '@lousho/contract';
import { mockModel, type MockResponse } from '@lousho/testing';
import { expect, it, vi } from 'vitest';
import {
  eventsOf,
  expectValid,
  lines,
  refusal,
  rejection,
  resultOfCall,
  results,
  roles,
  typesOf,
} from './support/read.ts';
import { deferred, emailTool, gatedTool, spyTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const askForEmail: MockResponse = {
  toolCalls: [{ name: 'email', args: { to: 'bob@example.com' }, id: 'call_email' }],
};

/** `chat-42` waits for a yes to one email. */
async function givenPausedOnEmail(world: World, ...answers: readonly MockResponse[]) {
  const email = emailTool();
  const model = mockModel([askForEmail, ...answers]);
  const agent = world.agent({ provider: model, tools: [email.tool], instructions: 'Mail.' });
  const paused = await agent.send('email bob', { sessionId: 'chat-42' });
  if (paused.finishReason !== 'awaiting-approval') throw new Error(`It ended ${paused.finishReason}.`);
  return { email, model, agent, paused, id: paused.approvalId };
}

onEveryStore('a gated call', (world) => {
  it('pauses the run, is listed, and runs once it is approved', async () => {
    const { email, agent, paused, id } = await givenPausedOnEmail(world, 'Email sent.');
    expect(paused).toMatchObject({ finishReason: 'awaiting-approval', approvalIds: [id], toolCalls: [] });
    expect(email.runs).toEqual([]);
    expect(await agent.approvals.list()).toMatchObject([
      {
        id,
        toolName: 'email',
        args: { to: 'bob@example.com' },
        toolCallId: 'call_email',
        sessionId: 'chat-42',
      },
    ]);
    const result = await agent.approvals.resolve({ id, approved: true });
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Email sent.', sessionId: 'chat-42' });
    expect(email.runs).toEqual([{ to: 'bob@example.com' }]);
    expect(email.contexts[0]?.approval).toEqual({ id });
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('is decided once: the second click learns who decided what, and when', async () => {
    const { email, agent, id } = await givenPausedOnEmail(world, 'Email sent.');
    await agent.approvals.resolve({ id, approved: true, by: 'ann' });
    const error = await refusal(
      agent.approvals.resolve({ id, approved: false, by: 'bob' }),
      'LOUSHO_APPROVAL_DECIDED',
    );
    expect(error.details).toEqual({
      approvalId: id,
      approved: true,
      by: 'ann',
      decidedAt: expect.any(String),
    });
    expect(error.retryable).toBe(false);
    expect(email.runs).toHaveLength(1);
  });

  it('is shown as the person who decides has to see it, and no more', async () => {
    const { agent, id, paused } = await givenPausedOnEmail(world);
    const [request] = await agent.approvals.list();
    expect(request).toEqual({
      id,
      kind: 'tool',
      sessionId: 'chat-42',
      runId: paused.runId,
      agentName: 'agent',
      toolCallId: 'call_email',
      toolName: 'email',
      args: { to: 'bob@example.com' },
      createdAt: expect.stringMatching(/^2026-01-01T/),
    });
    expect(await agent.approvals.get(id)).toEqual(request);
  });

  it('is listed under its session alone when that is asked for', async () => {
    const { agent, id } = await givenPausedOnEmail(world);
    expect(await agent.approvals.list({ sessionId: 'chat-42' })).toMatchObject([{ id }]);
    expect(await agent.approvals.list({ sessionId: 'chat-43' })).toEqual([]);
  });

  it('is decided in another process, days later', async () => {
    const { email, id } = await givenPausedOnEmail(world);
    const days = 10 * 24 * 60 * 60 * 1000;
    await world.clock.advance(days);
    const model = mockModel(['Email sent.']);
    const other = world.otherProcess().agent({ provider: model, tools: [email.tool], instructions: 'Mail.' });
    expect(await other.approvals.list()).toMatchObject([{ id }]);
    const result = await other.approvals.resolve({ id, approved: true });
    expect(result.text).toBe('Email sent.');
    expect(email.runs).toHaveLength(1);
    expectValid(model.calls[0]?.messages ?? []);
  });

  it('saves the decision and the start before it runs, and its result before the model is asked', async () => {
    const { agent, id } = await givenPausedOnEmail(world, 'Email sent.');
    await agent.approvals.resolve({ id, approved: true });
    const saves = (await world.saves('chat-42')).map(
      ({ status, startedToolCallIds, approvals, messages }) => [
        status,
        approvals.map(({ decision }) => decision?.approved),
        startedToolCallIds,
        results(messages).length,
      ],
    );
    expect(saves).toEqual([
      ['in-progress', [], [], 0],
      ['awaiting-approval', [undefined], [], 0],
      ['in-progress', [true], [], 0],
      ['in-progress', [true], ['call_email'], 0],
      ['in-progress', [], [], 1],
      ['finished', [], [], 1],
    ]);
  });

  it('that is rejected does not run, and the model reads the note', async () => {
    const { email, model, agent, id } = await givenPausedOnEmail(world, 'I will not.');
    const result = await agent.approvals.resolve({ id, approved: false, note: 'Not today', by: 'ann' });
    expect(result.text).toBe('I will not.');
    expect(email.runs).toEqual([]);
    expect(resultOfCall(model.calls[1]?.messages ?? [], 'call_email')).toMatchObject({
      isError: true,
      kind: 'rejected',
      result: { error: expect.any(String), note: 'Not today' },
      approval: { id, approved: false, by: 'ann', note: 'Not today' },
    });
    const error = await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_DECIDED');
    expect(error.details).toMatchObject({ approved: false, by: 'ann' });
  });

  it('that is approved with other arguments runs with them, and the transcript shows the call that ran', async () => {
    const { email, model, agent, id } = await givenPausedOnEmail(world, 'Email sent.');
    const args = { to: 'robert@example.com' };
    const result = await agent.approvals.resolve({ id, approved: true, args });
    expect(email.runs).toEqual([args]);
    for (const messages of [model.calls[1]?.messages ?? [], result.messages]) {
      const call = messages.flatMap((message) =>
        message.role === 'assistant' ? message.content.filter((part) => part.type === 'tool-call') : [],
      )[0];
      expect(call?.args).toEqual(args);
    }
    expect(resultOfCall(result.messages, 'call_email')?.approval?.proposedArgs).toEqual({
      to: 'bob@example.com',
    });
  });

  it('stays pending when the changed arguments do not fit, and can be decided again', async () => {
    const { email, agent, id } = await givenPausedOnEmail(world, 'Email sent.');
    const before = await world.stored('chat-42');
    const wrong = agent.approvals.resolve({ id, approved: true, args: { to: 7 } });
    const error = await refusal(wrong, 'LOUSHO_TOOL_ARGS_INVALID');
    expect(error.details).toMatchObject({ toolName: 'email', approvalId: id, issues: [{ path: 'to' }] });
    expect(email.runs).toEqual([]);
    expect(await world.stored('chat-42')).toEqual(before);
    expect(await agent.approvals.list()).toHaveLength(1);
    const right = { to: 'robert@example.com' };
    expect((await agent.approvals.resolve({ id, approved: true, args: right })).finishReason).toBe('stop');
    expect(email.runs).toEqual([right]);
  });

  it('that is rejected ignores arguments', async () => {
    const { email, agent, id } = await givenPausedOnEmail(world, 'I will not.');
    const result = await agent.approvals.resolve({ id, approved: false, args: { to: 7 } });
    expect(result.text).toBe('I will not.');
    expect(email.runs).toEqual([]);
    expect(resultOfCall(result.messages, 'call_email')?.approval).not.toHaveProperty('proposedArgs');
  });

  it('that throws has an error result, and the run goes on', async () => {
    const charge = gatedTool('charge', () => {
      throw new Error('payment gateway timeout');
    });
    const model = mockModel([{ toolCalls: [{ name: 'charge', id: 'call_1' }] }, 'It failed.']);
    const agent = world.agent({ provider: model, tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('charge', { sessionId: 'order-7' });
    const result = await agent.approvals.resolve({ id, approved: true });
    expect(result.text).toBe('It failed.');
    expect(resultOfCall(result.messages, 'call_1')).toMatchObject({
      kind: 'execution',
      result: { error: 'payment gateway timeout' },
    });
  });

  it('that rejects the run rejects with the very error of the tool, and is never run again', async () => {
    const broken = new PropagatingToolError('the till is on fire');
    const charge = gatedTool('charge', () => {
      throw broken;
    });
    const model = mockModel([{ toolCalls: [{ name: 'charge', id: 'call_1' }] }, 'I stop.']);
    const agent = world.agent({ provider: model, tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('charge', { sessionId: 'order-7' });
    expect(await rejection(agent.approvals.resolve({ id, approved: true }))).toBe(broken);
    expect(broken.details).toEqual({ toolName: 'charge', toolCallId: 'call_1' });
    const result = await agent.resume('order-7');
    expect(resultOfCall(result?.messages ?? [], 'call_1')?.kind).toBe('interrupted');
    expect(charge.runs).toHaveLength(1);
  });

  it('keeps one system message, the step count and the usage over the pause', async () => {
    const look = spyTool('look');
    const email = emailTool();
    const usage = { inputTokens: 100, outputTokens: 10 };
    const model = mockModel([
      { toolCalls: [{ name: 'look' }], usage },
      { toolCalls: [{ name: 'look' }], usage },
      { ...(askForEmail as object), usage },
      { text: 'Email sent.', usage: { inputTokens: 200, outputTokens: 20 } },
    ]);
    const agent = world.agent({ provider: model, tools: [look.tool, email.tool], instructions: 'Mail.' });
    const paused = await agent.send('email bob', { sessionId: 'chat-42' });
    expect(paused.steps).toBe(3);
    const result = await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(result.steps).toBe(4);
    expect(result.usage).toMatchObject({
      inputTokens: 500,
      outputTokens: 50,
      totalTokens: 550,
      modelCalls: 4,
    });
    expect(roles(model.calls[3]?.messages ?? []).match(/system/g)).toHaveLength(1);
    expect(result.toolCalls.map(({ toolName }) => toolName)).toEqual(['look', 'look', 'email']);
  });

  it('lets hooks see that a person had approved it', async () => {
    const email = emailTool();
    const seen: unknown[] = [];
    const agent = world.agent({
      provider: mockModel([askForEmail, 'Email sent.']),
      tools: [email.tool],
      hooks: { beforeTool: ({ resumedAfterApproval }) => void seen.push(resumedAfterApproval) },
    });
    const { approvalId: id = '' } = await agent.send('email bob', { sessionId: 'chat-42' });
    await agent.approvals.resolve({ id, approved: true });
    expect(seen).toEqual([undefined, true]);
  });

  it('does not run when a hook changes its arguments after the approval', async () => {
    const email = emailTool();
    const agent = world.agent({
      provider: mockModel([askForEmail, 'Refused.']),
      tools: [email.tool],
      hooks: {
        beforeTool: ({ resumedAfterApproval }) =>
          resumedAfterApproval ? { args: { to: 'mallory@example.com' } } : undefined,
      },
    });
    const { approvalId: id = '' } = await agent.send('email bob', { sessionId: 'chat-42' });
    const result = await agent.approvals.resolve({ id, approved: true });
    expect(email.runs).toEqual([]);
    expect(resultOfCall(result.messages, 'call_email')?.kind).toBe('validation');
  });

  it('refuses new input, in every form, until it is decided', async () => {
    const { email, model, agent, id } = await givenPausedOnEmail(world, 'Email sent.', 'Yes.');
    const before = await world.stored('chat-42');
    const refused = [
      () => agent.send('Are you done?', { sessionId: 'chat-42' }),
      () => agent.send([], { sessionId: 'chat-42' }),
      () => agent.stream('Are you done?', { sessionId: 'chat-42' }).result,
      () => agent.resume('chat-42'),
      () => world.otherProcess().agent({ provider: model }).send('Are you done?', { sessionId: 'chat-42' }),
    ];
    for (const call of refused) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(SessionAwaitingApprovalError);
      expect(error).toMatchObject({
        code: 'LOUSHO_SESSION_AWAITING_APPROVAL',
        sessionId: 'chat-42',
        approvalId: id,
        approvalIds: [id],
        approvalKind: 'tool',
      });
    }
    expect([model.calls.length, email.runs.length]).toEqual([1, 0]);
    expect(await world.stored('chat-42')).toEqual(before);
    await agent.approvals.resolve({ id, approved: true });
    expect((await agent.send('Are you done?', { sessionId: 'chat-42' })).text).toBe('Yes.');
  });

  it('asks again under a new id when the model calls it again', async () => {
    const { email, agent, id } = await givenPausedOnEmail(world, askForEmail, 'Both sent.');
    const second = await agent.approvals.resolve({ id, approved: true });
    expect(second.finishReason).toBe('awaiting-approval');
    expect(second.approvalId).not.toBe(id);
    expect(await agent.approvals.list()).toMatchObject([{ id: second.approvalId }]);
    const third = await agent.approvals.resolve({ id: second.approvalId ?? '', approved: true });
    expect(third.text).toBe('Both sent.');
    expect(email.runs).toHaveLength(2);
  });

  it('is not asked for again when the model call behind the decision fails', async () => {
    const { email, agent, id } = await givenPausedOnEmail(world, new TypeError('down'), 'Email sent.');
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const noRetries = world.agent({
      provider: mockModel([new TypeError('down')]),
      tools: [email.tool],
      instructions: 'Mail.',
      retry: { maxRetries: 0 },
    });
    await refusal(noRetries.approvals.resolve({ id, approved: true }), 'LOUSHO_PROVIDER_ERROR');
    expect(await agent.approvals.list()).toEqual([]);
    const result = await world
      .agent({ provider: mockModel(['Email sent.']), tools: [email.tool], instructions: 'Mail.' })
      .resume('chat-42');
    expect(result?.text).toBe('Email sent.');
    expect(email.runs).toHaveLength(1);
  });

  it('that waits for a run without a sessionId is decided from its record alone, once', async () => {
    const email = emailTool();
    const model = mockModel([askForEmail, 'Email sent.']);
    const agent = world.agent({ provider: model, tools: [email.tool] });
    const { approvalId: id = '' } = await agent.send('email bob');
    expect(await world.checkpoints.list()).toEqual([]);
    const other = world.otherProcess().agent({ provider: model, tools: [email.tool] });
    expect(await other.approvals.list()).toMatchObject([{ id, toolName: 'email' }]);
    const outcomes = await Promise.allSettled([
      other.approvals.resolve({ id, approved: true }),
      agent.approvals.resolve({ id, approved: true }),
    ]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(email.runs).toHaveLength(1);
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('carries the caller over the pause: principal, metadata and state', async () => {
    const email = emailTool();
    const agent = world.agent({ provider: mockModel([askForEmail, 'Email sent.']), tools: [email.tool] });
    const principal = { id: 'ann', tenant: 'acme' };
    const { approvalId: id = '' } = await agent.send('email bob', {
      sessionId: 'chat-42',
      principal,
      metadata: { source: 'web' },
      businessState: { stage: 'draft' },
    });
    expect(await agent.approvals.list()).toMatchObject([{ principal }]);
    const result = await agent.approvals.resolve({ id, approved: true });
    expect(email.contexts[0]).toMatchObject({ principal, metadata: { source: 'web' } });
    expect(result.businessState).toEqual({ stage: 'draft' });
  });
});

onEveryStore('a streamed decision', (world) => {
  it('tells of the resumed call, then of the rest, without a gap, and gives the result of resolve', async () => {
    const { agent, id } = await givenPausedOnEmail(world, 'Email sent.');
    const run = agent.approvals.streamResolve({ id, approved: true });
    const events = await eventsOf(run);
    expect(typesOf(events)).toEqual([
      'run.start',
      'step.start',
      'tool.resume',
      'tool.done',
      'step.done',
      'step.start',
      'text.delta',
      'text.delta',
      'text.done',
      'step.done',
      'run.done',
    ]);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index));
    expect(events.find(({ type }) => type === 'tool.resume')).toMatchObject({
      toolCallId: 'call_email',
      approvalId: id,
      sessionId: 'chat-42',
    });
    expect(await run.result).toMatchObject({ finishReason: 'stop', text: 'Email sent.' });
  });

  it('tells of a rejection as the error of the call', async () => {
    const { agent, id } = await givenPausedOnEmail(world, 'I will not.');
    const events = await eventsOf(agent.approvals.streamResolve({ id, approved: false, note: 'No' }));
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'tool.error', toolCallId: 'call_email', kind: 'rejected' }),
    );
  });

  it('ends with the next request when the model calls a gated tool again', async () => {
    const { agent, id } = await givenPausedOnEmail(world, askForEmail, 'Both sent.');
    const run = agent.approvals.streamResolve({ id, approved: true });
    const events = await eventsOf(run);
    expect(typesOf(events).slice(-3)).toEqual(['approval.requested', 'step.done', 'run.done']);
    const requested = events.find((event) => event.type === 'approval.requested');
    expect(requested?.approvalId).not.toBe(id);
    expect(events.at(-1)).toMatchObject({
      finishReason: 'awaiting-approval',
      approvalIds: [requested?.approvalId],
    });
    const last = await agent.approvals.resolve({ id: requested?.approvalId ?? '', approved: true });
    expect(last.text).toBe('Both sent.');
  });

  it('asks no model when it is aborted at the start of the decided call', async () => {
    const { model, agent, id } = await givenPausedOnEmail(world, 'never asked');
    const stop = new AbortController();
    const run = agent.approvals.streamResolve({ id, approved: true }, { signal: stop.signal });
    const types: string[] = [];
    for await (const event of run) {
      types.push(event.type);
      if (event.type === 'tool.resume') stop.abort();
    }
    expect((await run.result).finishReason).toBe('aborted');
    expect(types.at(-1)).toBe('run.done');
    expect(model.calls).toHaveLength(1);
  });

  it('takes input while the approved call runs: the next model call has it', async () => {
    const gate = deferred();
    const email = emailTool(() => gate.promise);
    const model = mockModel([askForEmail, 'Sent, in metric units.']);
    const agent = world.agent({ provider: model, tools: [email.tool] });
    const { approvalId: id = '' } = await agent.send('email bob', { sessionId: 'chat-42' });
    const run = agent.approvals.streamResolve({ id, approved: true });
    await until(() => email.runs.length === 1);
    const queued = run.enqueue('metric units');
    expect(await queued.joined).toBe(true);
    gate.resolve();
    await run.result;
    expect(lines(model.calls[1]?.messages ?? []).at(-1)).toBe('user metric units');
  });

  it('rejects through both the events and the result when there is nothing to decide', async () => {
    const { agent, id } = await givenPausedOnEmail(world, 'Email sent.');
    await agent.approvals.resolve({ id, approved: true });
    const run = agent.approvals.streamResolve({ id, approved: true });
    const read = async () => {
      for await (const event of run) void event;
    };
    await refusal(read(), 'LOUSHO_APPROVAL_DECIDED');
    await refusal(run.result, 'LOUSHO_APPROVAL_DECIDED');
  });
});

onEveryStore('several gated calls of one response', (world) => {
  const askForAll: MockResponse = {
    toolCalls: ['a', 'b', 'c', 'd'].map((name) => ({ name, id: `call_${name}` })),
  };

  /** `a` and `c` are free, `b` and `d` wait. */
  async function givenPausedOnBAndD(...answers: readonly MockResponse[]) {
    const tools = { a: spyTool('a'), b: gatedTool('b'), c: spyTool('c'), d: gatedTool('d') };
    const model = mockModel([askForAll, ...answers]);
    const agent = world.agent({ provider: model, tools: Object.values(tools).map(({ tool }) => tool) });
    const paused = await agent.send('go', { sessionId: 'job-1' });
    const [idB = '', idD = ''] = paused.approvalIds ?? [];
    const runs = () => Object.values(tools).map((tool) => tool.runs.length);
    return { tools, model, agent, paused, idB, idD, runs };
  }

  it('pause together, in call order, when the free ones have run', async () => {
    const { agent, paused, idB, idD, runs } = await givenPausedOnBAndD();
    expect(runs()).toEqual([1, 0, 1, 0]);
    expect(paused.approvalId).toBe(idB);
    expect(paused.approvalIds).toHaveLength(2);
    expect(await agent.approvals.list()).toMatchObject([
      { id: idB, toolName: 'b' },
      { id: idD, toolName: 'd' },
    ]);
  });

  it('run nothing until the last one is decided, then everything, in call order', async () => {
    const { model, agent, idB, idD, runs } = await givenPausedOnBAndD('Done.');
    const first = await agent.approvals.resolve({ id: idB, approved: true });
    expect(first).toMatchObject({ finishReason: 'awaiting-approval', approvalId: idD, approvalIds: [idD] });
    expect(runs()).toEqual([1, 0, 1, 0]);
    expect(model.calls).toHaveLength(1);
    expect(await agent.approvals.list()).toMatchObject([{ id: idD }]);
    const last = await agent.approvals.resolve({ id: idD, approved: true });
    expect(last.text).toBe('Done.');
    expect(runs()).toEqual([1, 1, 1, 1]);
    expect(results(model.calls[1]?.messages ?? []).map(({ result }) => result)).toEqual([
      'a done',
      'b done',
      'c done',
      'd done',
    ]);
    expectValid(last.messages);
  });

  it('can be decided in any order, one yes and one no', async () => {
    const { agent, idB, idD, runs } = await givenPausedOnBAndD('Done.');
    await agent.approvals.resolve({ id: idD, approved: true });
    const last = await agent.approvals.resolve({ id: idB, approved: false, note: 'too dear' });
    expect(runs()).toEqual([1, 0, 1, 1]);
    expect(results(last.messages).map(({ kind }) => kind)).toEqual([
      undefined,
      'rejected',
      undefined,
      undefined,
    ]);
    expect(resultOfCall(last.messages, 'call_b')?.result).toMatchObject({ note: 'too dear' });
  });

  it('decided at one moment in two processes both count', async () => {
    const { tools, idB, idD, runs, agent } = await givenPausedOnBAndD('Done.');
    const other = world.otherProcess().agent({
      provider: mockModel(['Done.']),
      tools: Object.values(tools).map(({ tool }) => tool),
    });
    const both = Promise.all([
      agent.approvals.resolve({ id: idB, approved: true }),
      other.approvals.resolve({ id: idD, approved: true }),
    ]);
    let isSettled = false;
    void both.finally(() => (isSettled = true)).catch(() => undefined);
    await until(async () => {
      await world.clock.advance(25);
      return isSettled;
    });
    const ends = (await both).map(({ finishReason }) => finishReason).sort();
    expect(ends).toEqual(['awaiting-approval', 'stop']);
    expect(runs()).toEqual([1, 1, 1, 1]);
  });

  it('say of one that is decided already that it is, while the other one waits', async () => {
    const { agent, idB } = await givenPausedOnBAndD();
    await agent.approvals.resolve({ id: idB, approved: true, by: 'ann' });
    const error = await refusal(
      agent.approvals.resolve({ id: idB, approved: true }),
      'LOUSHO_APPROVAL_DECIDED',
    );
    expect(error.details).toMatchObject({ approved: true, by: 'ann' });
    expect(await agent.approvals.get(idB)).toBeUndefined();
  });

  it('that are rejected leave the free calls of the response alone', async () => {
    const a = spyTool('a');
    const b = gatedTool('b');
    const c = spyTool('c');
    const model = mockModel([
      { toolCalls: [{ name: 'a' }, { name: 'b', id: 'call_b' }, { name: 'c' }] },
      'Done.',
    ]);
    const agent = world.agent({ provider: model, tools: [a.tool, b.tool, c.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    await agent.approvals.resolve({ id, approved: false, note: 'no' });
    expect([a, b, c].map(({ runs }) => runs.length)).toEqual([1, 0, 1]);
    expect(model.calls).toHaveLength(2);
    expect(results(model.calls[1]?.messages ?? []).map(({ kind }) => kind)).toEqual([
      undefined,
      'rejected',
      undefined,
    ]);
  });

  it('without a sessionId are decided one by one from their records', async () => {
    const tools = { a: gatedTool('a'), b: gatedTool('b') };
    const model = mockModel([{ toolCalls: [{ name: 'a' }, { name: 'b' }] }, 'Done.']);
    const agent = world.agent({ provider: model, tools: [tools.a.tool, tools.b.tool] });
    const paused = await agent.send('go');
    const [idA = '', idB = ''] = paused.approvalIds ?? [];
    expect(await agent.approvals.resolve({ id: idB, approved: true })).toMatchObject({ approvalIds: [idA] });
    const result = await agent.approvals.resolve({ id: idA, approved: false });
    expect(result.text).toBe('Done.');
    expect([tools.a.runs.length, tools.b.runs.length]).toEqual([0, 1]);
    expect(await agent.approvals.list()).toEqual([]);
  });
});

onEveryStore('a stale approval', (world) => {
  async function givenOrphan(forget: (stored: Checkpoint) => Promise<unknown>) {
    const given = await givenPausedOnEmail(world, 'never asked');
    await forget((await world.stored('chat-42')) as Checkpoint);
    return given;
  }

  it('is orphaned when its run was deleted: nothing runs, and it is gone from the list', async () => {
    const { email, agent, id } = await givenOrphan(() => world.checkpoints.delete('chat-42'));
    expect(await agent.approvals.list()).toEqual([]);
    expect(await agent.approvals.get(id)).toBeUndefined();
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(email.runs).toEqual([]);
    expect(await world.store.approvals.load(id)).toBeNull();
  });

  it('is orphaned when a newer run took the id, and leaves that run alone', async () => {
    const { email, agent, id } = await givenOrphan(() => world.checkpoints.delete('chat-42'));
    const newer = world.agent({ provider: mockModel([askForEmail]), tools: [email.tool] });
    const paused = await newer.send('another one', { sessionId: 'chat-42' });
    const before = await world.stored('chat-42');
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(await world.stored('chat-42')).toEqual(before);
    expect(await agent.approvals.list()).toMatchObject([{ id: paused.approvalId }]);
    expect(email.runs).toEqual([]);
  });

  it('is orphaned when what would run is not what the person saw', async () => {
    const { email, agent, id } = await givenOrphan(async (stored) => {
      const messages = stored.messages.map((message) =>
        message.role === 'assistant'
          ? {
              ...message,
              content: message.content.map((part) => ({ ...part, args: { to: 'mallory@example.com' } })),
            }
          : message,
      );
      await world.checkpoints.save('chat-42', { ...stored, messages: messages });
    });
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(email.runs).toEqual([]);
  });

  it.each(['nonsense', '', 'chat-42', '../../etc/passwd', 'chat-42.apr-00000000-1-0x'])(
    'never was one: %j',
    async (id) => {
      const { agent } = await givenPausedOnEmail(world);
      await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_NOT_FOUND');
      await refusal(
        agent.approvals.streamResolve({ id, approved: true }).result,
        'LOUSHO_APPROVAL_NOT_FOUND',
      );
      expect(await agent.approvals.get(id)).toBeUndefined();
      expect(await agent.approvals.list()).toHaveLength(1);
    },
  );
});

onEveryStore('an approval that expires', (world) => {
  async function givenPausedWithTtl(approvalTtlMs: number | undefined, agentTtlMs?: number) {
    const email = emailTool();
    const model = mockModel([askForEmail, 'Too late.']);
    const agent = world.agent({ provider: model, tools: [email.tool], approvalTtlMs: agentTtlMs });
    const paused = await agent.send('email bob', { sessionId: 'chat-42', approvalTtlMs });
    return { email, agent, id: paused.approvalId ?? '' };
  }

  it('runs when it is decided in time', async () => {
    const { email, agent, id } = await givenPausedWithTtl(60_000);
    const [request] = await agent.approvals.list();
    expect(Date.parse(request?.expiresAt ?? '') - Date.parse(request?.createdAt ?? '')).toBe(60_000);
    await world.clock.advance(59_999);
    await agent.approvals.resolve({ id, approved: true });
    expect(email.runs).toHaveLength(1);
  });

  it('is denied when it is decided too late, whatever was said', async () => {
    const { email, agent, id } = await givenPausedWithTtl(60_000);
    await world.clock.advance(60_000);
    const result = await agent.approvals.resolve({ id, approved: true });
    expect(email.runs).toEqual([]);
    expect(result.text).toBe('Too late.');
    expect(resultOfCall(result.messages, 'call_email')).toMatchObject({
      kind: 'denied',
      result: { error: expect.stringContaining('expired') },
      approval: { approved: false, source: 'expiry' },
    });
  });

  it('takes the time of the call over that of the agent, and has none without either', async () => {
    await givenPausedWithTtl(30_000, 60_000);
    const stored = await world.stored('chat-42');
    const { createdAt = '', expiresAt = '' } = stored?.approvals[0] ?? {};
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(30_000);
    await world.checkpoints.delete('chat-42');
    const { agent } = await givenPausedWithTtl(undefined);
    expect((await agent.approvals.list())[0]).not.toHaveProperty('expiresAt');
  });
});
