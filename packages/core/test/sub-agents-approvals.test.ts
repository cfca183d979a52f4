/** Calls inside a sub-agent that wait for a person: the lead waits for them, people decide with the lead, and each runs where it was asked. */
import { classifyCheckpointId, defineTool, type SubAgent } from '@lousho/contract';
import { manualClock, mockModel, type MockModel } from '@lousho/testing';
import { crashingStore } from '@lousho/testing/crash';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { createAgent, type Agent } from '../src/index.ts';
import { calling, delegate, scripted } from './support/delegating.ts';
import { eventsOf, expectValid, refusal, resultOfCall } from './support/read.ts';
import { checkpointsWith, storeOf } from './support/stores.ts';
import { emailTool, gatedTool, spyTool } from './support/tools.ts';
import { later, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const sessionId = 'order-7';
const askForEmail = { toolCalls: [{ name: 'email', args: { to: 'bob@example.com' }, id: 'call_email' }] };

/** A lead whose mailer waits for a yes to one email. */
async function givenPausedMailer(world: World, more: Partial<SubAgent> = {}) {
  const email = emailTool();
  const mailer = scripted('mailer', [askForEmail, 'Mailed.'], { tools: [email.tool], ...more });
  const lead = mockModel([delegate('mailer'), 'All done.']);
  const make = (from: Pick<World, 'agent'> = world): Agent =>
    from.agent({ provider: lead, subagents: [mailer.subagent] });
  const agent = make();
  const paused = await agent.send('go', { sessionId });
  if (paused.finishReason !== 'awaiting-approval') throw new Error(`It ended ${paused.finishReason}.`);
  return { agent, email, mailer, lead, paused, id: paused.approvalId, make };
}

onEveryStore('a call inside a sub-agent that waits', (world) => {
  it('is one approval of the lead, which shows the call and who asks; a yes runs it once and finishes both', async () => {
    const { agent, email, lead, mailer, id, paused } = await givenPausedMailer(world);
    expect(await agent.approvals.list()).toEqual([
      expect.objectContaining({
        id,
        sessionId,
        kind: 'tool',
        toolName: 'email',
        toolCallId: 'call_email',
        args: { to: 'bob@example.com' },
        subagentPath: ['mailer'],
      }),
    ]);
    expect(paused.usage).toMatchObject({ modelCalls: 2, delegated: { runs: 1, modelCalls: 1 } });
    expect(await agent.pending()).toMatchObject([
      { sessionId, status: 'awaiting-approval', approvalIds: [id] },
    ]);
    const result = await agent.approvals.resolve({ id, approved: true, by: 'ann' });
    expect(result).toMatchObject({ text: 'All done.', usage: { modelCalls: 4, delegated: { runs: 1 } } });
    expect(email.runs).toEqual([{ to: 'bob@example.com' }]);
    expect(email.contexts[0]?.approval).toMatchObject({ id, by: 'ann' });
    expect([lead.calls.length, mailer.model.calls.length]).toEqual([2, 2]);
    expect(await agent.approvals.list()).toEqual([]);
    expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
    expectValid(result.messages);
  });

  it('is decided in another process after any time, and the sub-agent does not start over', async () => {
    const { email, mailer, id, make } = await givenPausedMailer(world);
    await world.clock.advance(7 * 24 * 3_600_000);
    const other = make(world.otherProcess());
    expect((await other.approvals.get(id))?.subagentPath).toEqual(['mailer']);
    expect(await other.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'All done.' });
    expect([email.runs.length, mailer.model.calls.length]).toEqual([1, 2]);
  });

  it('that a person rejects does not run, and the model of the sub-agent reads why', async () => {
    const { agent, email, mailer, id } = await givenPausedMailer(world);
    await agent.approvals.resolve({ id, approved: false, note: 'Not now.' });
    expect(email.runs).toEqual([]);
    expect(resultOfCall(mailer.model.calls[1]?.messages ?? [], 'call_email')).toMatchObject({
      kind: 'rejected',
      result: { note: 'Not now.' },
    });
  });

  it('runs with the arguments that a person changed; wrong ones are refused before anything changes', async () => {
    const { agent, email, mailer, id } = await givenPausedMailer(world);
    const before = await world.checkpoints.list();
    const error = await refusal(
      agent.approvals.resolve({ id, approved: true, args: { to: 5 } }),
      'LOUSHO_TOOL_ARGS_INVALID',
    );
    expect(error.details).toMatchObject({ toolName: 'email', approvalId: id });
    await refusal(agent.approvals.resolve({ id, approved: true, answer: 'yes' }), 'LOUSHO_TOOL_ARGS_INVALID');
    expect(await world.checkpoints.list()).toEqual(before);
    const result = await agent.approvals.resolve({ id, approved: true, args: { to: 'eve@example.com' } });
    expect(email.runs).toEqual([{ to: 'eve@example.com' }]);
    expect(result.toolCalls[0]?.args).toMatchObject({ agent: 'mailer' });
    const sent = mailer.model.calls[1]?.messages ?? [];
    expect(JSON.stringify(sent)).toContain('eve@example.com');
    expect(resultOfCall(sent, 'call_email')?.approval).toMatchObject({
      id,
      proposedArgs: { to: 'bob@example.com' },
    });
  });

  it('says who decided it when somebody decides again, while the run shows it', async () => {
    const { agent, id } = await givenPausedMailer(world);
    await agent.approvals.resolve({ id, approved: true, by: 'ann' });
    const error = await refusal(agent.approvals.resolve({ id, approved: false }), 'LOUSHO_APPROVAL_DECIDED');
    expect(error.details).toMatchObject({ approvalId: id, approved: true, by: 'ann' });
  });

  it('expires as the calls of the lead do', async () => {
    const email = emailTool();
    const { subagent } = scripted('mailer', [askForEmail, 'Sorry.'], { tools: [email.tool] });
    const agent = world.agent({
      provider: mockModel([delegate('mailer'), 'All done.']),
      subagents: [subagent],
      approvalTtlMs: 3_600_000,
    });
    const { approvalId: id = '' } = await agent.send('go', { sessionId, approvalTtlMs: 60_000 });
    const expiresAt = new Date(world.clock.wallMs() + 60_000).toISOString();
    expect((await agent.approvals.get(id))?.expiresAt).toBe(expiresAt);
    await world.clock.advance(60_000);
    expect(await agent.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'All done.' });
    expect(email.runs).toEqual([]);
  });

  it('may be a question, whose answer the sub-agent gets', async () => {
    const { askQuestionTool } = await import('@lousho/executor/wiring');
    const ask = {
      toolCalls: [{ name: 'ask_question', args: { question: 'Which colour?' }, id: 'call_ask' }],
    };
    const { subagent, model } = scripted('painter', [ask, 'Painted.'], { tools: [askQuestionTool()] });
    const agent = world.agent({
      provider: mockModel([delegate('painter'), 'All done.']),
      subagents: [subagent],
    });
    const { approvalId: id = '' } = await agent.send('go', { sessionId });
    expect(await agent.approvals.get(id)).toMatchObject({
      kind: 'question',
      question: { text: 'Which colour?' },
      subagentPath: ['painter'],
    });
    expect(await agent.approvals.answer({ id, answer: 'Red' })).toMatchObject({ text: 'All done.' });
    expect(resultOfCall(model.calls[1]?.messages ?? [], 'call_ask')?.result).toEqual({ answer: 'Red' });
  });

  it('may be three levels down: the path names each, and one decision finishes all', async () => {
    const email = emailTool();
    const mailer = scripted('mailer', [askForEmail, 'Mailed.'], { tools: [email.tool] });
    const manager = scripted('manager', [delegate('mailer'), 'Managed.'], { subagents: [mailer.subagent] });
    const boss = scripted('boss', [delegate('manager'), 'Bossed.'], { subagents: [manager.subagent] });
    const lead = mockModel([delegate('boss'), 'All done.']);
    const agent = world.agent({ provider: lead, subagents: [boss.subagent] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId });
    expect((await agent.approvals.get(id))?.subagentPath).toEqual(['boss', 'manager', 'mailer']);
    const result = await agent.approvals.resolve({ id, approved: true, args: { to: 'eve@example.com' } });
    expect(result).toMatchObject({ text: 'All done.', usage: { modelCalls: 8 } });
    expect(email.runs).toEqual([{ to: 'eve@example.com' }]);
    expect([boss, manager, mailer].map(({ model }) => model.calls.length)).toEqual([2, 2, 2]);
    expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
  });

  it('waits together with those of its siblings and of the lead; nothing runs before the last is decided', async () => {
    const [mail, charge, sign] = [gatedTool('mail'), gatedTool('charge'), gatedTool('sign')];
    const look = spyTool('look');
    const mailer = scripted('mailer', [calling('mail', 'look'), 'Mailed.'], {
      tools: [mail.tool, look.tool],
    });
    const cashier = scripted('cashier', [calling('charge'), 'Paid.'], { tools: [charge.tool] });
    const [tasks] = [delegate('mailer', 'cashier') as { toolCalls: object[] }];
    const lead = mockModel([
      { toolCalls: [...tasks.toolCalls, { name: 'sign', id: 'call_sign' }] } as never,
      'All done.',
    ]);
    const agent = world.agent({
      provider: lead,
      tools: [sign.tool],
      subagents: [mailer.subagent, cashier.subagent],
    });
    const paused = await agent.send('go', { sessionId });
    expect((await agent.approvals.list()).map(({ toolName }) => toolName).sort()).toEqual([
      'charge',
      'mail',
      'sign',
    ]);
    const [first = '', second = '', third = ''] = paused.approvalIds ?? [];
    expect(await agent.approvals.resolve({ id: second, approved: true })).toMatchObject({
      finishReason: 'awaiting-approval',
      approvalIds: [first, third],
    });
    expect(await agent.approvals.resolve({ id: third, approved: false })).toMatchObject({
      approvalIds: [first],
    });
    expect([mail.runs.length, charge.runs.length, look.runs.length]).toEqual([0, 0, 1]);
    const result = await agent.approvals.resolve({ id: first, approved: true });
    expect(result).toMatchObject({ text: 'All done.', usage: { modelCalls: 6, delegated: { runs: 2 } } });
    expect([mail, charge, look, sign].map(({ runs }) => runs.length)).toEqual([1, 1, 1, 0]);
  });

  it('may come again: a later pause of the same sub-agent has an id of its own', async () => {
    const charge = gatedTool('charge');
    const { subagent } = scripted('cashier', [calling('charge'), calling('charge'), 'Paid.'], {
      tools: [charge.tool],
    });
    const agent = world.agent({
      provider: mockModel([delegate('cashier'), 'All done.']),
      subagents: [subagent],
    });
    const { approvalId: first = '' } = await agent.send('go', { sessionId });
    const again = await agent.approvals.resolve({ id: first, approved: true });
    expect(again.finishReason).toBe('awaiting-approval');
    expect(again.approvalIds).not.toContain(first);
    expect((await agent.approvals.list()).map(({ id }) => id)).toEqual(again.approvalIds);
    await refusal(agent.approvals.resolve({ id: first, approved: true }), 'LOUSHO_APPROVAL_DECIDED');
    const result = await agent.approvals.resolve({ id: again.approvalId ?? '', approved: true });
    expect(result.text).toBe('All done.');
    expect(charge.runs).toHaveLength(2);
  });

  it('holds up the turn of a conversation, which has it all in the end', async () => {
    const email = emailTool();
    const { subagent } = scripted('mailer', [askForEmail, 'Mailed.'], { tools: [email.tool] });
    const lead = mockModel([delegate('mailer'), 'All done.', 'Yes.']);
    const agent = world.agent({ provider: lead, subagents: [subagent] });
    const session = agent.session({ id: 'chat' });
    const { approvalId: id = '' } = await session.send('go');
    expect(await agent.approvals.get(id)).toMatchObject({ sessionId: 'chat', subagentPath: ['mailer'] });
    const other = world.otherProcess().agent({ provider: lead, subagents: [subagent] });
    expect(await other.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'All done.' });
    expect(await session.send('Sure?')).toMatchObject({ text: 'Yes.' });
    expect(resultOfCall(await session.messages(), 'call_mailer')?.result).toContain('Mailed.');
    expect((await world.checkpoints.list()).length).toBe(0);
  });

  it('goes with the turn that is discarded', async () => {
    const email = emailTool();
    const { subagent } = scripted('mailer', [askForEmail], { tools: [email.tool] });
    const agent = world.agent({ provider: mockModel([delegate('mailer')]), subagents: [subagent] });
    const session = agent.session({ id: 'chat' });
    const { approvalId: id = '' } = await session.send('go');
    await session.discardPending();
    expect(await world.checkpoints.list()).toEqual([]);
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(email.runs).toEqual([]);
  });

  it('goes with the turn that is discarded, also when the turn knows nothing of it yet', async () => {
    const dying = world.otherProcess(manualClock(world.clock.wallMs()));
    // The turn's response, then the sub-agent's, then what the turn knows of that.
    const crashing = crashingStore(dying.store, { point: { call: 'saveIfLeased#3', when: 'before' } });
    const make = (from: Pick<World, 'agent'>, more: object = {}) => {
      const { subagent } = scripted('mailer', [askForEmail], { tools: [emailTool().tool] });
      return from.agent({ provider: mockModel([delegate('mailer')]), subagents: [subagent], ...more });
    };
    void later(make(dying, { store: crashing.store }).session({ id: 'chat' }).send('go'));
    await until(() => crashing.isDead && crashing.underWay.size === 0);
    await world.clock.advance(60_001);
    expect(await world.checkpoints.list()).toHaveLength(2);
    await make(world).session({ id: 'chat' }).discardPending();
    expect(await world.checkpoints.list()).toEqual([]);
  });

  it('is orphaned with its run', async () => {
    const { agent, id, email } = await givenPausedMailer(world);
    await world.checkpoints.delete(sessionId);
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(await agent.approvals.list()).toEqual([]);
    expect(email.runs).toEqual([]);
  });

  it('is orphaned when its sub-agent is gone', async () => {
    const { agent, id, email } = await givenPausedMailer(world);
    for (const entry of await world.checkpoints.list())
      if (classifyCheckpointId(entry.sessionId).kind === 'child')
        await world.checkpoints.delete(entry.sessionId);
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(email.runs).toEqual([]);
  });

  it('is not given up while the store does not show its sub-agent yet', async () => {
    const { id, email, make } = await givenPausedMailer(world);
    let isHidden = true;
    const { checkpoints } = world.otherProcess();
    const late = checkpointsWith(checkpoints, {
      claims: { ...checkpoints.claims, consistency: 'eventual' },
      load: async (key) =>
        isHidden && classifyCheckpointId(key).kind === 'child' ? null : checkpoints.load(key),
    });
    const store = storeOf(late, { approvals: world.store.approvals });
    const agent = make({ agent: (config) => world.agent({ ...config, store }) });
    const error = await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_STORE_READ_FAILED');
    expect(error.retryable).toBe(true);
    isHidden = false;
    expect(await agent.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'All done.' });
    expect(email.runs).toHaveLength(1);
  });

  it('is told with its path, and its run is heard again when it goes on', async () => {
    const email = emailTool();
    const { subagent } = scripted('mailer', [askForEmail, 'Mailed.'], { tools: [email.tool] });
    const agent = world.agent({
      provider: mockModel([delegate('mailer'), 'All done.']),
      subagents: [subagent],
    });
    const asked = await eventsOf(agent.stream('go', { sessionId }));
    const requested = asked.filter(({ type }) => type === 'approval.requested');
    expect(requested).toMatchObject([{ toolName: 'email', subagentPath: ['mailer'] }]);
    const id = requested[0]?.type === 'approval.requested' ? requested[0].approvalId : '';
    const went = await eventsOf(agent.approvals.streamResolve({ id, approved: true }));
    const resumed = went.find(({ type }) => type === 'tool.resume');
    expect(resumed).toMatchObject({ toolName: 'email', approvalId: id, subagentPath: ['mailer'] });
    expect(went.at(-1)).toMatchObject({ type: 'run.done', finishReason: 'stop' });
  });
});

onEveryStore('an agent whose sub-agents changed', (world) => {
  /** The same three levels in each process; `bottom` may differ. */
  function levels(world_: Pick<World, 'agent'>, bottom: Partial<SubAgent>, policy: 'warn' | 'error') {
    const email = emailTool();
    const model: MockModel = mockModel([askForEmail, 'Mailed.'], { answerBy: 'step', modelId: 'm' });
    const manager = mockModel([delegate('mailer'), 'Managed.'], { answerBy: 'step' });
    const lead = mockModel([delegate('manager'), 'All done.'], { answerBy: 'step' });
    const mailer = { name: 'mailer', description: 'Mails.', provider: model, tools: [email.tool], ...bottom };
    const agent = world_.agent({
      provider: lead,
      onAgentDrift: policy,
      subagents: [{ name: 'manager', description: 'Manages.', provider: manager, subagents: [mailer] }],
    });
    return { agent, email, lead, models: [lead, manager, model] };
  }

  it("is refused with 'error' whatever the level, and nothing changes; the right one can still decide", async () => {
    const { approvalId: id = '' } = await levels(world, {}, 'error').agent.send('go', { sessionId });
    const before = await world.checkpoints.list();
    const changed = levels(world.otherProcess(), { instructions: 'Be rude.' }, 'error');
    const error = await refusal(
      changed.agent.approvals.resolve({ id, approved: true }),
      'LOUSHO_AGENT_DRIFT',
    );
    expect(error.details.drift).toMatchObject({ subagent: 'mailer', instructions: true });
    expect(error.message).toContain('sub-agent mailer');
    expect(await world.checkpoints.list()).toEqual(before);
    expect(await changed.agent.approvals.list()).toHaveLength(1);
    expect(changed.models.map(({ calls }) => calls.length)).toEqual([0, 0, 0]);
    const right = levels(world.otherProcess(), {}, 'error');
    expect(await right.agent.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'All done.' });
    expect(right.email.runs).toHaveLength(1);
  });

  it("goes on with 'warn' after one warning and one event, which says which sub-agent and where", async () => {
    const { approvalId: id = '' } = await levels(world, {}, 'warn').agent.send('go', { sessionId });
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    try {
      const { agent } = levels(world.otherProcess(), { instructions: 'Be brief.' }, 'warn');
      const events = await eventsOf(agent.approvals.streamResolve({ id, approved: true }));
      expect(events.filter(({ type }) => type === 'agent.drift')).toMatchObject([
        { subagent: 'mailer', subagentPath: ['manager', 'mailer'], instructions: true },
      ]);
      expect(warn.mock.calls).toHaveLength(1);
      expect(String(warn.mock.calls[0]?.[0])).toContain('sub-agent mailer');
    } finally {
      warn.mockRestore();
    }
  });

  it('without the tool of the call cannot say yes, but can say no', async () => {
    const { approvalId: id = '' } = await levels(world, {}, 'warn').agent.send('go', { sessionId });
    const without = levels(world.otherProcess(), { tools: [] }, 'warn');
    const before = await world.checkpoints.list();
    const error = await refusal(
      without.agent.approvals.resolve({ id, approved: true }),
      'LOUSHO_RESUME_TOOL_MISSING',
    );
    expect(error.details).toMatchObject({ toolName: 'email', subagent: 'mailer' });
    expect(await world.checkpoints.list()).toEqual(before);
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const result = await without.agent.approvals.resolve({ id, approved: false });
    warn.mockRestore();
    expect(result).toMatchObject({ text: 'All done.' });
  });

  it('without the sub-agent itself is refused, also after a crash', async () => {
    const { approvalId: id = '' } = await levels(world, {}, 'warn').agent.send('go', { sessionId });
    const agent = world.otherProcess().agent({
      provider: mockModel([]),
      subagents: [{ name: 'other', description: 'Does other things.' }],
    });
    const error = await refusal(
      agent.approvals.resolve({ id, approved: true }),
      'LOUSHO_RESUME_TOOL_MISSING',
    );
    expect(error.details).toMatchObject({ toolName: 'task', subagent: 'manager' });
    expect(error.message).toContain('"manager"');
  });

  it('is the same to its lead: new sub-agents are no drift of it', async () => {
    const flaky = spyTool('flaky', (_args, _ctx, run) => {
      if (run === 1) throw Object.assign(new Error('died'), { name: 'Died' });
      return 'ok';
    });
    const first = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'flaky' }] }, new Error('down')]),
      tools: [flaky.tool],
      retry: { maxRetries: 0 },
    });
    await refusal(first.send('go', { sessionId }), 'LOUSHO_PROVIDER_ERROR');
    const { subagent } = scripted('clerk', []);
    const second = world.agent({
      provider: mockModel(['Done.']),
      tools: [flaky.tool],
      subagents: [subagent],
      onAgentDrift: 'error',
    });
    expect(await second.resume(sessionId)).toMatchObject({ text: 'Done.' });
  });
});

describe('an agent without a store', () => {
  it('carries its sub-agents in the record of their approvals, over siblings, levels and later pauses', async () => {
    const [mail, charge] = [gatedTool('mail'), gatedTool('charge')];
    const look = spyTool('look');
    const mailer = scripted('mailer', [calling('look'), calling('mail'), calling('mail'), 'Mailed.'], {
      tools: [look.tool, mail.tool],
    });
    const manager = scripted('manager', [delegate('mailer'), 'Managed.'], { subagents: [mailer.subagent] });
    const cashier = scripted('cashier', [calling('charge'), 'Paid.'], { tools: [charge.tool] });
    const agent = createAgent({
      provider: mockModel([delegate('manager', 'cashier'), 'All done.']),
      subagents: [manager.subagent, cashier.subagent],
    });
    let result = await agent.send('go');
    expect(result.approvalIds).toHaveLength(2);
    const paths = (await agent.approvals.list()).map(({ subagentPath }) => subagentPath?.join('/'));
    expect(paths.sort()).toEqual(['cashier', 'manager/mailer']);
    let rounds = 0;
    while (result.approvalId !== undefined && rounds < 5) {
      rounds += 1;
      result = await agent.approvals.resolve({ id: result.approvalId, approved: true });
    }
    expect(result).toMatchObject({ text: 'All done.', usage: { modelCalls: 10, delegated: { runs: 2 } } });
    expect([rounds, look.runs.length, mail.runs.length, charge.runs.length]).toEqual([3, 1, 2, 1]);
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('refuses wrong arguments of a call inside, and keeps it waiting', async () => {
    const email = emailTool();
    const { subagent } = scripted('mailer', [askForEmail, 'Mailed.'], { tools: [email.tool] });
    const agent = createAgent({
      provider: mockModel([delegate('mailer'), 'All done.']),
      subagents: [subagent],
    });
    const { approvalId: id = '' } = await agent.send('go');
    await refusal(
      agent.approvals.resolve({ id, approved: true, args: { to: 5 } }),
      'LOUSHO_TOOL_ARGS_INVALID',
    );
    expect(await agent.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'All done.' });
    expect(email.runs).toHaveLength(1);
  });
});

it('the agent decides calls of its sub-agents in code, too', async () => {
  const asked: unknown[] = [];
  const charge = defineTool({
    name: 'charge',
    description: 'Charges.',
    input: z.object({ cents: z.number() }),
    needsApproval: true,
    execute: ({ cents }) => `${cents} charged`,
  });
  const script = [{ toolCalls: [{ name: 'charge', args: { cents: 5 } }] }, 'Paid.'];
  const { subagent } = scripted('cashier', script, { tools: [charge] });
  const agent = createAgent({
    provider: mockModel([delegate('cashier'), 'All done.']),
    subagents: [subagent],
    approve: ({ toolName, subagentPath, args }) => {
      asked.push([toolName, subagentPath, args]);
      return { approved: true };
    },
  });
  expect(await agent.send('go')).toMatchObject({ text: 'All done.' });
  expect(asked).toEqual([['charge', ['cashier'], { cents: 5 }]]);
});
