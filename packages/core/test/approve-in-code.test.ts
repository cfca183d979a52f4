/** The agent's `approve` decides in code what a person would decide; what it defers waits for a person. */
import { mockModel } from '@lousho/testing';
import { expect, it, vi } from 'vitest';
import { createAgent, once, type ApprovalRequest, type ApproveOutcome } from '../src/index.ts';
import { refusal, rejection, resultOfCall } from './support/read.ts';
import { failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { onEveryStore } from './support/world.ts';

const twice = [
  { toolCalls: [{ id: 'call_a', name: 'look', args: { n: 1 } }] },
  { toolCalls: [{ id: 'call_b', name: 'mail', args: { n: 2 } }] },
  'done',
];

function deciding(outcomes: { readonly [toolName: string]: ApproveOutcome }) {
  return vi.fn((request: ApprovalRequest): ApproveOutcome => outcomes[request.toolName] ?? 'defer');
}

onEveryStore('approve', (world) => {
  it('runs what it agrees to and refuses what it does not: nothing is left to decide', async () => {
    const [look, mail] = [gatedTool('look'), gatedTool('mail')];
    const approve = deciding({ look: { approved: true }, mail: { approved: false, note: 'not today' } });
    const agent = world.agent({ provider: mockModel(twice), tools: [look.tool, mail.tool], approve });
    const result = await agent.send('go', { sessionId: 'job' });
    expect(result).toMatchObject({ finishReason: 'stop', text: 'done' });
    expect([look.runs.length, mail.runs.length]).toEqual([1, 0]);
    expect(resultOfCall(result.messages, 'call_a')).toMatchObject({
      approval: { approved: true, source: 'callback' },
    });
    expect(resultOfCall(result.messages, 'call_b')).toMatchObject({
      kind: 'rejected',
      result: { note: 'not today' },
    });
    expect(approve.mock.calls.map(([{ toolName, args }]) => [toolName, args])).toEqual([
      ['look', { n: 1 }],
      ['mail', { n: 2 }],
    ]);
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('leaves to a person what it defers, and is asked again about what comes after', async () => {
    const [look, mail] = [gatedTool('look'), gatedTool('mail')];
    const approve = deciding({ look: { approved: true } });
    const agent = world.agent({ provider: mockModel(twice), tools: [look.tool, mail.tool], approve });
    const paused = await agent.send('go', { sessionId: 'job' });
    expect(paused).toMatchObject({ finishReason: 'awaiting-approval' });
    const waiting = await agent.approvals.list();
    expect(waiting).toMatchObject([{ id: paused.approvalId, toolName: 'mail' }]);
    expect(look.runs).toHaveLength(1);
    const result = await agent.approvals.resolve({ id: paused.approvalId as string, approved: true });
    expect(result).toMatchObject({ finishReason: 'stop' });
    expect(mail.runs).toHaveLength(1);
    expect(approve).toHaveBeenCalledTimes(2);
  });

  it('of several calls in one step decides some: the rest waits, and nothing runs before', async () => {
    const [look, mail] = [gatedTool('look'), gatedTool('mail')];
    const both = {
      toolCalls: [...twice.slice(0, 2)].flatMap((step) => (step as { toolCalls: [] }).toolCalls),
    };
    const approve = deciding({ mail: { approved: true, args: { n: 3 } } });
    const agent = world.agent({
      provider: mockModel([both, 'done']),
      tools: [look.tool, mail.tool],
      approve,
    });
    const paused = await agent.send('go', { sessionId: 'job' });
    const [request] = await agent.approvals.list();
    expect(paused).toMatchObject({ finishReason: 'awaiting-approval', approvalIds: [request?.id] });
    expect(request?.toolName).toBe('look');
    expect([look.runs.length, mail.runs.length]).toEqual([0, 0]);
    await agent.approvals.resolve({ id: paused.approvalId as string, approved: true });
    expect(look.runs.map(({ args }) => args)).toEqual([{ n: 1 }]);
    expect(mail.runs.map(({ args }) => args)).toEqual([{ n: 3 }]);
  });

  it('decides for resume and runOnce too, and after a person has decided', async () => {
    const mail = gatedTool('mail');
    const approve = deciding({ mail: { approved: true } });
    const script = [{ toolCalls: [{ name: 'mail' }] }, { toolCalls: [{ name: 'mail' }] }, 'done'];
    const withApprove = world.agent({ provider: mockModel(script), tools: [mail.tool], approve });
    expect(await withApprove.runOnce('hook-1', 'go')).toMatchObject({ finishReason: 'stop' });
    expect(mail.runs).toHaveLength(2);

    const without = world.agent({ provider: mockModel(script), tools: [mail.tool] });
    const paused = await without.send('go', { sessionId: 'by-hand' });
    const after = world.agent({ provider: mockModel(script.slice(1)), tools: [mail.tool], approve });
    const result = await after.approvals.resolve({ id: paused.approvalId as string, approved: true });
    expect(result).toMatchObject({ finishReason: 'stop' });
    expect(mail.runs).toHaveLength(4);

    const work = failingOnceTool('work');
    const cut = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'work' }] }, ...script]),
      tools: [work.tool, mail.tool],
      approve,
    });
    await rejection(cut.send('go', { sessionId: 'cut' }));
    expect(await cut.resume('cut')).toMatchObject({ finishReason: 'stop' });
    expect(mail.runs).toHaveLength(6);
  });

  it('is not asked by stream: its handle ends at the pause', async () => {
    const mail = gatedTool('mail');
    const approve = deciding({ mail: { approved: true } });
    const agent = world.agent({ provider: mockModel(twice.slice(1)), tools: [mail.tool], approve });
    expect(await agent.stream('go', { sessionId: 'job' }).result).toMatchObject({
      finishReason: 'awaiting-approval',
    });
    expect(approve).not.toHaveBeenCalled();
  });

  it('that throws rejects the call, and the approval stays as it was', async () => {
    const mail = gatedTool('mail');
    const fault = new Error('the rules cannot be read');
    const agent = world.agent({
      provider: mockModel(twice.slice(1)),
      tools: [mail.tool],
      approve: () => Promise.reject(fault),
    });
    expect(await rejection(agent.send('go', { sessionId: 'job' }))).toBe(fault);
    expect(await agent.approvals.list()).toHaveLength(1);
    expect(mail.runs).toEqual([]);
  });

  it.each([true, undefined, { approved: 'yes' }])('that gives %j has decided nothing', async (outcome) => {
    const mail = gatedTool('mail');
    const agent = world.agent({
      provider: mockModel(twice.slice(1)),
      tools: [mail.tool],
      approve: () => outcome as unknown as ApproveOutcome,
    });
    const error = await refusal(agent.send('go', { sessionId: 'job' }), 'LOUSHO_CONFIG_INVALID');
    expect(error.message).toContain('"approve"');
    expect(await agent.approvals.list()).toHaveLength(1);
    expect(mail.runs).toEqual([]);
  });

  it('whose arguments do not fit decides nothing', async () => {
    const mail = spyTool('mail', undefined, { needsApproval: true });
    const agent = world.agent({
      provider: mockModel(twice.slice(1)),
      tools: [mail.tool],
      approve: () => ({ approved: true, args: 'no object' }),
    });
    await refusal(agent.send('go', { sessionId: 'job' }), 'LOUSHO_TOOL_ARGS_INVALID');
    expect(await agent.approvals.list()).toHaveLength(1);
  });

  it('that a person overtakes leaves the run to the person', async () => {
    const mail = gatedTool('mail');
    const other = world.agent({ provider: mockModel(['done by hand']), tools: [mail.tool] });
    const agent = world.agent({
      provider: mockModel(twice.slice(1)),
      tools: [mail.tool],
      async approve({ id }) {
        await other.approvals.resolve({ id, approved: true, by: 'ann' });
        return { approved: false };
      },
    });
    expect(await agent.send('go', { sessionId: 'job' })).toMatchObject({ finishReason: 'awaiting-approval' });
    expect(mail.runs).toHaveLength(1);
    expect(await world.stored('job')).toMatchObject({ status: 'finished' });
  });

  it('that thinks until the approval has expired has lost', async () => {
    const mail = gatedTool('mail');
    const agent = world.agent({
      provider: mockModel(twice.slice(1)),
      tools: [mail.tool],
      approvalTtlMs: 1_000,
      async approve() {
        await world.clock.advance(1_001);
        return { approved: true };
      },
    });
    const { messages } = await agent.send('go', { sessionId: 'job' });
    expect(resultOfCall(messages, 'call_b')).toMatchObject({ kind: 'denied' });
    expect(mail.runs).toEqual([]);
  });

  it('is no person: once() asks it again', async () => {
    const mail = spyTool('mail', undefined, { needsApproval: once() });
    const approve = deciding({ mail: { approved: true } });
    const script = [{ toolCalls: [{ name: 'mail' }] }, { toolCalls: [{ name: 'mail' }] }, 'done'];
    const agent = world.agent({ provider: mockModel(script), tools: [mail.tool], approve });
    await agent.send('go', { sessionId: 'job' });
    expect(approve).toHaveBeenCalledTimes(2);
  });
});

it('decides for an agent without a store', async () => {
  const mail = gatedTool('mail');
  const agent = createAgent({
    provider: mockModel(twice.slice(1)),
    tools: [mail.tool],
    approve: () => ({ approved: true }),
  });
  expect(await agent.send('go')).toMatchObject({ finishReason: 'stop' });
  expect(mail.runs).toHaveLength(1);
});

it('that is no function is refused by name', () => {
  const approve = { approved: true } as unknown as () => ApproveOutcome;
  expect(() => createAgent({ provider: mockModel([]), approve })).toThrow('"approve"');
});
