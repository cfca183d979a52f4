/** A call that a person must agree to: shown, decided once, run as it was shown, wherever and whenever it is decided. */
import { PropagatingToolError, SessionAwaitingApprovalError } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it, vi } from 'vitest';
import { expectValid, refusal, rejection, resultOfCall, results, roles } from './support/read.ts';
import { emailTool, gatedTool, spyTool } from './support/tools.ts';
import { onEveryStore } from './support/world.ts';
import { askForEmail, givenPausedOnEmail } from './support/paused-email.ts';

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
    const [request] = await other.approvals.list();
    expect(request).toMatchObject({ id, toolName: 'email' });
    expect(request).not.toHaveProperty('snapshot');
    expect(request).not.toHaveProperty('sessionId');
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
