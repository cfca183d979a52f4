/** Runs that delegate, found by `recover()`: a sub-agent is resumed with its lead, never by itself. */
import { manualClock, mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { calling, delegate, scripted } from './support/delegating.ts';
import { refusal, resultOfCall } from './support/read.ts';
import { watchedRecovery } from './support/recovery.ts';
import { checkpointsWith, storeOf } from './support/stores.ts';
import { emailTool, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { later, letPass, passUntil, until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

const sessionId = 'order-7';

onEveryStore('recover()', (world) => {
  it('finishes a run whose process died inside a sub-agent, which goes on where it stopped', async () => {
    const look = spyTool('look');
    const slow = spyTool('slow', (_args, _ctx, run) =>
      run === 1 ? new Promise(() => undefined) : 'slow done',
    );
    const make = () => {
      const clerk = scripted('clerk', [], { tools: [look.tool, slow.tool] });
      const model = mockModel([calling('look'), calling('slow'), 'Filed.'], { answerBy: 'step' });
      const lead = mockModel([delegate('clerk'), 'Done.'], { answerBy: 'step' });
      return { provider: lead, subagents: [{ ...clerk.subagent, provider: model }] };
    };
    const dying = world.otherProcess(manualClock(world.clock.wallMs()));
    void later(dying.agent(make()).send('go', { sessionId }));
    await until(() => slow.runs.length === 1);
    await world.clock.advance(60_001);
    const recovery = watchedRecovery(world.agent(make()));
    await passUntil(world.clock, 10_000, () => recovery.recovered.length > 0);
    await letPass(world.clock, recovery.stop());
    expect([recovery.recovered, recovery.errors]).toEqual([[`${sessionId}: Done.`], []]);
    expect([look.runs.length, slow.runs.length]).toEqual([1, 2]);
    expect((await world.checkpoints.list()).map((entry) => entry.sessionId)).toEqual([sessionId]);
  });

  it('denies a call inside a sub-agent that nobody decided in time', async () => {
    const email = emailTool();
    const ask = { toolCalls: [{ name: 'email', args: { to: 'bob@example.com' }, id: 'call_email' }] };
    const mailer = scripted('mailer', [ask, 'Sorry.'], { tools: [email.tool] });
    const agent = world.agent({
      provider: mockModel([delegate('mailer'), 'All done.']),
      subagents: [mailer.subagent],
      approvalTtlMs: 60_000,
    });
    await agent.send('go', { sessionId });
    await world.clock.advance(60_000);
    const recovery = watchedRecovery(agent);
    await passUntil(world.clock, 10_000, () => recovery.recovered.length > 0);
    await letPass(world.clock, recovery.stop());
    expect(recovery.errors).toEqual([]);
    expect(email.runs).toEqual([]);
    expect(resultOfCall(mailer.model.calls[1]?.messages ?? [], 'call_email')?.kind).toBe('denied');
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('leaves a run alone that waits for a call inside a sub-agent', async () => {
    const sign = gatedTool('sign');
    const clerk = scripted('clerk', [calling('sign')], { tools: [sign.tool] });
    const agent = world.agent({ provider: mockModel([delegate('clerk')]), subagents: [clerk.subagent] });
    await agent.send('go', { sessionId });
    const before = await world.checkpoints.list();
    const recovery = watchedRecovery(agent);
    await world.clock.advance(90_000);
    await letPass(world.clock, recovery.stop());
    expect([recovery.recovered, recovery.errors, sign.runs]).toEqual([[], [], []]);
    expect(await world.checkpoints.list()).toEqual(before);
  });

  it('does not park a run for as long as its sub-agents get on', async () => {
    const steps = Array.from({ length: 6 }, (_none, index) => `work_${index}`);
    const tools = steps.map((name) => failingOnceTool(name));
    const clerk = scripted('clerk', [], { tools: tools.map(({ tool }) => tool) });
    const model = mockModel([...steps.map((name) => calling(name)), 'Filed.'], { answerBy: 'step' });
    const agent = world.agent({
      provider: mockModel([delegate('clerk'), 'Done.'], { answerBy: 'step' }),
      subagents: [{ ...clerk.subagent, provider: model }],
    });
    await expect(agent.send('go', { sessionId })).rejects.toThrow();
    const recovery = watchedRecovery(agent, { maxAttempts: 2 });
    await passUntil(world.clock, 10_000, () => recovery.recovered.length > 0);
    await letPass(world.clock, recovery.stop());
    expect(recovery.errors).not.toContain(`${sessionId}: LOUSHO_RECOVERY_EXHAUSTED`);
    expect(tools.map(({ runs }) => runs.length)).toEqual(steps.map(() => 2));
  });

  it('of a store that does not show a sub-agent yet waits for it, and starts nothing over', async () => {
    const flaky = failingOnceTool('flaky');
    const clerk = scripted('clerk', [calling('flaky'), 'Filed.'], { tools: [flaky.tool] });
    const config = { provider: mockModel([delegate('clerk'), 'Done.']), subagents: [clerk.subagent] };
    await expect(world.agent(config).send('go', { sessionId })).rejects.toThrow();
    const { checkpoints } = world.otherProcess();
    let isHidden = true;
    const late = checkpointsWith(checkpoints, {
      claims: { ...checkpoints.claims, consistency: 'eventual' },
      load: async (id) => (isHidden && id.includes('.sub-') ? null : checkpoints.load(id)),
    });
    const agent = world.agent({ ...config, store: storeOf(late) });
    await refusal(agent.send([], { sessionId }), 'LOUSHO_STORE_READ_FAILED');
    expect(clerk.model.calls).toHaveLength(1);
    isHidden = false;
    expect(await agent.send([], { sessionId })).toMatchObject({ text: 'Done.', usage: { modelCalls: 4 } });
  });

  it('a tool of a sub-agent that sends to the session of its lead is refused, and the run goes on', async () => {
    const work = spyTool('work', async () => {
      await refusal(agent.send('again', { sessionId }), 'LOUSHO_SESSION_BUSY');
      return 'refused';
    });
    const clerk = scripted('clerk', [calling('work'), 'Filed.'], { tools: [work.tool] });
    const agent = world.agent({
      provider: mockModel([delegate('clerk'), 'Done.']),
      subagents: [clerk.subagent],
    });
    expect(await agent.send('go', { sessionId })).toMatchObject({ text: 'Done.' });
    expect(work.runs).toHaveLength(1);
  });
});
