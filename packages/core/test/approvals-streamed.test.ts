/** A decision with events: the resumed call, then the rest of the run. */
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { eventsOf, lines, refusal, typesOf } from './support/read.ts';
import { deferred, emailTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';
import { askForEmail, givenPausedOnEmail } from './support/paused-email.ts';

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
