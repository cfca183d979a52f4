/** Another agent takes the conversation over within the run: it answers from then on, wherever and whenever the run goes on. */
import { PropagatingToolError, SDKError, type AgentEvent, type HandoffTarget } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it, vi } from 'vitest';
import { createAgent } from '../src/index.ts';
import {
  eventsOf,
  expectValid,
  lines,
  refusal,
  rejection,
  resultOfCall,
  results,
  thrown,
  typesOf,
} from './support/read.ts';
import { watchedRecovery } from './support/recovery.ts';
import { givenShop, handoffCalls, toBilling, whoAnswers } from './support/shop.ts';
import { deferred, gatedTool, spyTool } from './support/tools.ts';
import { letPass, until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

onEveryStore('a handoff', (world) => {
  it('makes the target answer: with its instructions, its tools and its model', async () => {
    const { clerk, billing, refund, config } = givenShop({
      clerk: [toBilling],
      billing: [{ toolCalls: [{ name: 'refund' }] }, 'Refunded.'],
    });
    const result = await world.agent(config).send('I want my money back.', { sessionId: 'a' });
    expect(result).toMatchObject({
      text: 'Refunded.',
      agentName: 'billing',
      steps: 3,
      usage: { modelCalls: 3 },
    });
    expect(result.usage.byModel).toMatchObject({
      'clerk-model': { modelCalls: 1 },
      'billing-model': { modelCalls: 2 },
    });
    expect(refund.runs).toHaveLength(1);
    expect(refund.runs[0]?.ctx.agentName).toBe('billing');
    const [asked] = billing.calls;
    expect(lines(asked?.messages ?? [])).toEqual([
      'system Count.',
      'user I want my money back.',
      'assistant handoff_to_billing#call_handoff',
      'tool call_handoff "The conversation is handed over to \\"billing\\", which answers from here on."',
    ]);
    expect(asked?.tools.map(({ name }) => name)).toEqual(['refund', 'look', 'handoff_to_clerk']);
    expect(clerk.calls[0]?.tools.map(({ name }) => name)).toEqual(['look', 'pay', 'handoff_to_billing']);
    expect(clerk.calls[0]?.tools.at(-1)?.description).toContain('Knows about money.');
    expectValid(result.messages);
    expect(await world.stored('a')).toMatchObject({
      agentName: 'clerk',
      activeAgent: 'billing',
      fingerprint: { model: 'billing-model', tools: { refund: expect.any(String) } },
    });
  });

  it('is told of by one event, between the result of its call and the next step', async () => {
    const { config } = givenShop({ clerk: [toBilling] });
    const run = world.agent(config).stream('help', { sessionId: 'a' });
    const events = await eventsOf(run);
    expect(typesOf(events)).toEqual([
      ...['run.start', 'step.start', 'tool.start', 'tool.done', 'handoff', 'step.done'],
      ...['step.start', 'text.delta', 'text.delta', 'text.done', 'step.done', 'run.done'],
    ]);
    expect(events.find(({ type }) => type === 'handoff')).toMatchObject({
      from: 'clerk',
      to: 'billing',
      toolCallId: 'call_handoff',
    });
  });

  it('lasts: the next run of the session is answered by the target, until it hands back', async () => {
    const back = { toolCalls: [{ name: 'handoff_to_clerk' }] };
    const { config } = givenShop({ clerk: [toBilling, 'Clerk again.'], billing: ['Billing here.', back] });
    const agent = world.agent(config);
    expect(await agent.send('money', { sessionId: 'a' })).toMatchObject({ agentName: 'billing' });
    const second = await world.otherProcess().agent(config).send('thanks', { sessionId: 'a' });
    expect(second).toMatchObject({ agentName: 'clerk', text: 'Clerk again.' });
    const stored = await world.stored('a');
    expect(stored).not.toHaveProperty('activeAgent');
    expect(stored?.messages[0]).toMatchObject({ content: 'Serve.' });
    expect(stored?.messages.filter(({ role }) => role === 'system')).toHaveLength(1);
  });

  it('lasts in a session, too, over its turns, its processes and its forks', async () => {
    const back = { toolCalls: [{ name: 'handoff_to_clerk' }] };
    const { config } = givenShop({
      clerk: ['Hello.', toBilling, 'Clerk again.', 'Clerk of the fork.'],
      billing: ['Billing here.', 'Still billing.', back],
    });
    const session = world.agent(config).session({ id: 'chat' });
    expect(await session.send('hi')).toMatchObject({ agentName: 'clerk', steps: 1 });
    expect(await session.send('money')).toMatchObject({ agentName: 'billing', steps: 2 });
    const later = world.otherProcess().agent(config).session({ id: 'chat' });
    expect(await later.send('more money')).toMatchObject({ agentName: 'billing', text: 'Still billing.' });
    expect(await later.send('thanks')).toMatchObject({ agentName: 'clerk', text: 'Clerk again.' });
    const fork = await later.fork({ fromStep: 1 });
    expect(await fork.send('and you?')).toMatchObject({ agentName: 'clerk', text: 'Clerk of the fork.' });
  });

  it('of a session whose turn was cut is gone on with by the target', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const { config } = givenShop(
      { clerk: [toBilling], billing: [new Error('down'), 'Billing here.'] },
      { retry: { maxRetries: 0 } },
    );
    await rejection(world.agent(config).session({ id: 'chat' }).send('money'));
    const other = world.otherProcess().agent(config).session({ id: 'chat' });
    expect(await other.resume()).toMatchObject({ agentName: 'billing', text: 'Billing here.' });
  });

  it('lasts when the caller keeps the conversation and sends it again', async () => {
    const { config, billing } = givenShop({
      clerk: [toBilling],
      billing: ['Billing here.', 'Still billing.'],
    });
    const first = await world.agent(config).send('money');
    const second = await world.agent(config).send([...first.messages, { role: 'user', content: 'more' }]);
    expect(second).toMatchObject({ agentName: 'billing', text: 'Still billing.' });
    expect(lines(billing.calls[1]?.messages ?? []).filter((line) => line.startsWith('system'))).toEqual([
      'system Count.',
    ]);
  });

  it('comes last in its response: whatever else was asked for has its result first', async () => {
    const { config, look, billing } = givenShop({
      clerk: [
        {
          toolCalls: [
            { name: 'handoff_to_billing', id: 'h' },
            { name: 'look', id: 'l' },
          ],
        },
      ],
    });
    const { messages } = await world.agent(config).send('go', { sessionId: 'a' });
    expect(results(messages).map(({ toolCallId }) => toolCallId)).toEqual(['h', 'l']);
    expect(look.runs[0]?.ctx.agentName).toBe('clerk');
    expect(billing.calls).toHaveLength(1);
    const saves = await world.saves('a');
    // The result behind the handoff waits beside it; the handoff is one save with its own result.
    expect(
      saves.map((save) => [whoAnswers(save), save.settledResults.length, handoffCalls(save.messages)]),
    ).toEqual([
      ['the agent itself: Serve.', 0, []],
      ['the agent itself: Serve.', 1, []],
      ['billing: Count.', 0, ['h']],
      ['billing: Count.', 0, ['h']],
    ]);
  });

  it('happens once in a response: the first counts, and the others have an error result in the same save', async () => {
    const more = { name: 'sales', description: 'Sells.', provider: mockModel(['never']) };
    const shop = givenShop({
      clerk: [
        {
          toolCalls: [
            { name: 'handoff_to_billing', id: 'h1' },
            { name: 'handoff_to_sales', id: 'h2' },
            { name: 'handoff_to_billing', id: 'h3' },
          ],
        },
      ],
    });
    const agent = world.agent({ ...shop.config, handoffs: [...shop.config.handoffs, more] });
    const result = await agent.send('go', { sessionId: 'a' });
    expect(result.agentName).toBe('billing');
    expect(results(result.messages).map(({ kind }) => kind)).toEqual([undefined, 'not-run', 'not-run']);
    for (const save of await world.saves('a')) expect([0, 3]).toContain(results(save.messages).length);
  });

  it('happens at most maxHandoffs times in a run, and is counted anew in the next one', async () => {
    const to = (name: string) => ({ toolCalls: [{ name: `handoff_to_${name}` }] });
    const { config } = givenShop(
      {
        clerk: [to('billing'), to('billing'), 'Clerk again.'],
        billing: [to('clerk'), to('clerk'), 'I stay.', to('clerk')],
      },
      { maxHandoffs: 3, maxSteps: 20 },
    );
    const agent = world.agent(config);
    const result = await agent.send('go', { sessionId: 'a' });
    expect(result).toMatchObject({ agentName: 'billing', text: 'I stay.' });
    expect(results(result.messages).map(({ kind }) => kind)).toEqual([
      undefined,
      undefined,
      undefined,
      'not-run',
    ]);
    expect(JSON.stringify(results(result.messages).at(-1)?.result)).toContain('3 times');
    expect((await agent.send('and now?', { sessionId: 'a' })).text).toBe('Clerk again.');
  });

  it('beside a call that waits for a person waits with it, and takes place when that is decided', async () => {
    const { config, pay, billing } = givenShop({
      clerk: [
        {
          toolCalls: [
            { name: 'handoff_to_billing', id: 'h' },
            { name: 'pay', id: 'p' },
          ],
        },
      ],
    });
    const paused = await world.agent(config).send('go', { sessionId: 'a' });
    expect(paused.agentName).toBe('clerk');
    expect(paused.approvalIds).toHaveLength(1);
    expect(await world.agent(config).approvals.list()).toMatchObject([
      { toolName: 'pay', agentName: 'clerk' },
    ]);
    expect(billing.calls).toHaveLength(0);
    const other = world.otherProcess().agent(config);
    const result = await other.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(result).toMatchObject({ agentName: 'billing', text: 'Billing here.' });
    expect(pay.runs[0]?.ctx.agentName).toBe('clerk');
    expect(results(result.messages).map(({ toolCallId }) => toolCallId)).toEqual(['h', 'p']);
  });

  it('that a person must agree to is asked about when all else of its response is decided, under an id of its own', async () => {
    const shop = givenShop({
      clerk: [
        {
          toolCalls: [
            { name: 'pay', id: 'a' },
            { name: 'handoff_to_billing', id: 'h' },
            { name: 'pay', id: 'b' },
          ],
        },
      ],
    });
    const handoffs = shop.config.handoffs.map((target) => ({ ...target, needsApproval: true }));
    const config = { ...shop.config, handoffs };
    const agent = world.agent(config);
    const first = await agent.send('go', { sessionId: 's' });
    expect(first.approvalIds).toHaveLength(2);
    await agent.approvals.resolve({ id: first.approvalIds?.[0] ?? '', approved: true });
    const second = await agent.approvals.resolve({ id: first.approvalIds?.[1] ?? '', approved: false });
    expect(second).toMatchObject({ finishReason: 'awaiting-approval', agentName: 'clerk' });
    expect(first.approvalIds).not.toContain(second.approvalId);
    expect(await agent.approvals.list()).toMatchObject([{ toolName: 'handoff_to_billing', toolCallId: 'h' }]);
    const end = await world
      .otherProcess()
      .agent(config)
      .approvals.resolve({
        id: second.approvalId ?? '',
        approved: true,
        by: 'ann',
      });
    expect(end).toMatchObject({ agentName: 'billing', text: 'Billing here.' });
    expect(results(end.messages).map(({ kind }) => kind)).toEqual([undefined, undefined, 'rejected']);
    expect(resultOfCall(end.messages, 'h')?.approval).toMatchObject({ approved: true, by: 'ann' });
  });

  it('that a person rejects does not take place: the agent hears so and goes on', async () => {
    const shop = givenShop({ clerk: [toBilling, 'Then I help you.'] });
    const handoffs = shop.config.handoffs.map((target) => ({ ...target, needsApproval: true }));
    const agent = world.agent({ ...shop.config, handoffs });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 's' });
    const end = await agent.approvals.resolve({ id, approved: false, note: 'busy' });
    expect(end).toMatchObject({ agentName: 'clerk', text: 'Then I help you.' });
    expect(resultOfCall(end.messages, 'call_handoff')).toMatchObject({
      kind: 'rejected',
      result: { note: 'busy' },
    });
    expect(shop.billing.calls).toHaveLength(0);
  });

  it('is counted no more than made: the tries of one that nobody lets through leave the others', async () => {
    const { config } = givenShop(
      { clerk: [toBilling, toBilling, toBilling] },
      {
        maxHandoffs: 1,
        hooks: {
          beforeTool: ({ step }) =>
            step === 1 ? { deny: 'not yet' } : step === 2 ? { result: 'a hook says so' } : undefined,
        },
      },
    );
    const result = await world.agent(config).send('go', { sessionId: 'a' });
    expect(result.agentName).toBe('billing');
    expect(results(result.messages).map(({ kind, result: value }) => kind ?? value)).toEqual([
      'denied',
      'a hook says so',
      'The conversation is handed over to "billing", which answers from here on.',
    ]);
  });

  it('stands when a hook words its result', async () => {
    const { config } = givenShop(
      { clerk: [toBilling], billing: [toBilling, 'Mine.'] },
      { hooks: { afterTool: () => ({ result: 'Over to you.' }) } },
    );
    const result = await world.agent({ ...config, maxHandoffs: 1 }).send('go', { sessionId: 'a' });
    expect(result.agentName).toBe('billing');
    expect(resultOfCall(result.messages.slice(0, 4), 'call_handoff')?.result).toBe('Over to you.');
  });

  it('is not made when the run is steered, not even when it waits beside a pause', async () => {
    const gate = deferred();
    const slow = spyTool('slow', () => gate.promise);
    const pay = gatedTool('pay');
    const { config } = givenShop(
      {
        clerk: [
          {
            toolCalls: [
              { name: 'pay', id: 'p' },
              { name: 'slow', id: 's' },
              { name: 'handoff_to_billing', id: 'h' },
            ],
          },
          'As you wish.',
        ],
      },
      { tools: [slow.tool, pay.tool] },
    );
    const agent = world.agent(config);
    const run = agent.stream('go', { sessionId: 'a' });
    await until(() => slow.runs.length === 1);
    run.steer('Stay with me.');
    gate.resolve();
    const paused = await run.result;
    expect((await world.stored('a'))?.settledResults.map(({ kind }) => kind)).toEqual([undefined, 'not-run']);
    const end = await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(end).toMatchObject({ agentName: 'clerk', text: 'As you wish.' });
    expect(lines(end.messages).slice(-2)).toEqual(['user Stay with me.', 'assistant As you wish.']);
  });

  it('that an abort comes before never happens', async () => {
    const stop = new AbortController();
    const look = spyTool('look', () => stop.abort());
    const { config } = givenShop(
      { clerk: [{ toolCalls: [{ name: 'look' }, { name: 'handoff_to_billing', id: 'h' }] }, 'Still me.'] },
      { tools: [look.tool] },
    );
    const agent = world.agent(config);
    const result = await agent.send('go', { sessionId: 'a', signal: stop.signal });
    expect(result).toMatchObject({ finishReason: 'aborted', agentName: 'clerk' });
    expect(resultOfCall(result.messages, 'h')).toMatchObject({
      kind: 'cancelled',
      result: { error: expect.stringContaining('did not run') },
    });
    expect((await agent.resume('a'))?.text).toBe('Still me.');
  });

  it('that an abort comes before after a crash never began either', async () => {
    const stop = new AbortController();
    const look = spyTool('look', (_args, _ctx, run) => {
      if (run === 1) throw new PropagatingToolError('not now');
      stop.abort();
    });
    const { config } = givenShop(
      { clerk: [{ toolCalls: [{ name: 'look' }, { name: 'handoff_to_billing', id: 'h' }] }] },
      { tools: [look.tool] },
    );
    await rejection(world.agent(config).send('go', { sessionId: 'a' }));
    const result = await world.agent(config).resume('a', { signal: stop.signal });
    expect(resultOfCall(result?.messages ?? [], 'h')).toMatchObject({
      kind: 'cancelled',
      result: { error: expect.stringContaining('did not run') },
    });
  });

  it('spends the steps, the tool calls and the tokens of the one run that it is in', async () => {
    const back = { toolCalls: [{ name: 'handoff_to_clerk' }] };
    const scripts = { clerk: [toBilling, toBilling], billing: [back, 'never'] };
    const spent = await world
      .agent(givenShop(scripts, { maxSteps: 3 }).config)
      .send('go', { sessionId: 'a' });
    expect(spent).toMatchObject({ finishReason: 'max-steps', steps: 3, agentName: 'billing' });
    const { config } = givenShop(scripts, { limits: { maxToolCalls: 2 } });
    const limited = await world.agent(config).send('go', { sessionId: 'b' });
    expect(limited).toMatchObject({
      finishReason: 'limit',
      limit: { name: 'maxToolCalls' },
      agentName: 'clerk',
    });
  });

  it('takes over what the agent may ask: its questions wait as those of the agent do', async () => {
    const ask = { toolCalls: [{ name: 'ask_question', args: { question: 'Which card?' } }] };
    const { config } = givenShop({ clerk: [toBilling], billing: [ask, 'Done.'] }, { askQuestion: true });
    const agent = world.agent(config);
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'a' });
    expect(await agent.approvals.list()).toMatchObject([
      { kind: 'question', question: { text: 'Which card?' } },
    ]);
    const end = await world.otherProcess().agent(config).approvals.answer({ id, answer: 'The blue one.' });
    expect(end).toMatchObject({ agentName: 'billing', text: 'Done.' });
  });

  it('to one that says nothing of a provider and a model keeps those of the agent', async () => {
    const clerk = mockModel([toBilling, 'Done.']);
    const agent = world.agent({
      provider: clerk,
      model: 'big',
      instructions: 'Serve.',
      handoffs: [{ name: 'billing', description: 'Counts.' }],
    });
    const result = await agent.send('go', { sessionId: 'a' });
    expect(result.agentName).toBe('billing');
    expect(clerk.calls.map(({ model }) => model)).toEqual(['big', 'big']);
    // It has no instructions of its own, so those of the other one are not its.
    expect(lines(clerk.calls[1]?.messages ?? [])[0]).toBe('user go');
  });

  it('to one whose functions fail is an error result: the agent goes on', async () => {
    const broken = () => {
      throw new Error('no tools today');
    };
    const shop = givenShop({ clerk: [toBilling, 'Then I help you.'] });
    const agent = world.agent({
      ...shop.config,
      handoffs: [{ name: 'billing', description: 'Counts.', tools: broken }],
    });
    const result = await agent.send('go', { sessionId: 'a' });
    expect(result).toMatchObject({ agentName: 'clerk', text: 'Then I help you.' });
    expect(resultOfCall(result.messages, 'call_handoff')?.kind).toBe('execution');
  });

  it('of a run without a sessionId is in the record of its approval: another process goes on as the target', async () => {
    const pay = gatedTool('pay');
    const shop = givenShop({ clerk: [toBilling], billing: [{ toolCalls: [{ name: 'pay' }] }, 'Paid.'] });
    const handoffs: readonly HandoffTarget[] = shop.config.handoffs.map((target) => ({
      ...target,
      tools: [pay.tool],
    }));
    const config = { ...shop.config, handoffs };
    const { approvalId: id = '' } = await world.agent(config).send('go');
    const end = await world.otherProcess().agent(config).approvals.resolve({ id, approved: true });
    expect(end).toMatchObject({ agentName: 'billing', text: 'Paid.' });
    expect(pay.runs).toHaveLength(1);
  });
});

onEveryStore('a run that was handed over', (world) => {
  /** Billing's model fails behind the handoff. */
  async function givenInterrupted(
    billing = mockModel([new SDKError('LOUSHO_SHUTDOWN', {}), 'Billing again.']),
  ) {
    vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const shop = givenShop({ clerk: [toBilling] }, { retry: { maxRetries: 0 } });
    const handoffs = shop.config.handoffs.map((target) => ({ ...target, provider: billing }));
    const config = { ...shop.config, handoffs };
    await rejection(world.agent(config).send('go', { sessionId: 'a' }));
    expect(await world.stored('a')).toMatchObject({ status: 'in-progress', activeAgent: 'billing' });
    return { config, billing };
  }

  it('is resumed as the target, in another process', async () => {
    const { config, billing } = await givenInterrupted();
    expect(await world.agent(config).pending()).toMatchObject([{ sessionId: 'a', agentName: 'clerk' }]);
    const result = await world.otherProcess().agent(config).resume('a');
    expect(result).toMatchObject({ agentName: 'billing', text: 'Billing again.', steps: 2 });
    expect(lines(billing.calls.at(-1)?.messages ?? [])[0]).toBe('system Count.');
  });

  it('is recovered by every replica of the agent that lists the target, and by no other', async () => {
    const { config } = await givenInterrupted(mockModel([new Error('down'), 'Billing again.']));
    const { handoffs: _handoffs, ...alone } = config;
    const stranger = watchedRecovery(world.agent({ ...alone, name: 'billing' }));
    await world.clock.advance(60_000);
    await stranger.stop();
    expect([stranger.recovered, stranger.errors]).toEqual([[], []]);
    const recovery = watchedRecovery(world.otherProcess().agent(config), {
      onRecovered: () => void recovery.stop(),
    });
    await letPass(world.clock, recovery.done);
    expect(recovery.recovered).toEqual(['a: Billing again.']);
    expect(await world.stored('a')).toMatchObject({ status: 'finished', activeAgent: 'billing' });
  });

  it('is compared with the target: another clerk is no drift, another billing is', async () => {
    const { config } = await givenInterrupted();
    const events: AgentEvent[] = [];
    const heard = { onEvent: (event: AgentEvent) => void events.push(event), onAgentDrift: 'error' as const };
    const changed = config.handoffs.map((target) => ({ ...target, instructions: 'Count twice.' }));
    const before = await world.stored('a');
    const error = await refusal(
      world.agent({ ...config, ...heard, handoffs: changed }).resume('a'),
      'LOUSHO_AGENT_DRIFT',
    );
    expect(error.details.drift).toMatchObject({ instructions: true, toolsAdded: [], toolsRemoved: [] });
    expect(await world.stored('a')).toEqual(before);
    const result = await world
      .agent({ ...config, ...heard, instructions: 'Serve well.', tools: [] })
      .resume('a');
    expect(result?.agentName).toBe('billing');
    expect(events.map(({ type }) => type)).not.toContain('agent.drift');
  });

  it('takes the instructions of the target as they are now', async () => {
    const { config, billing } = await givenInterrupted();
    const handoffs = config.handoffs.map((target) => ({ ...target, instructions: 'Count twice.' }));
    await world.agent({ ...config, handoffs }).resume('a');
    expect(lines(billing.calls.at(-1)?.messages ?? [])[0]).toBe('system Count twice.');
  });

  it('is not resumed by an agent that does not list the target any more, in no way, and nothing changes', async () => {
    const { config } = await givenInterrupted();
    const before = await world.stored('a');
    const { handoffs: _handoffs, ...alone } = config;
    for (const agent of [
      world.agent(alone),
      world.agent({ ...config, handoffs: [{ name: 'sales', description: 'Sells.' }] }),
    ]) {
      for (const way of [() => agent.resume('a'), () => agent.send('and?', { sessionId: 'a' })]) {
        const error = await refusal(way(), 'LOUSHO_RESUME_TOOL_MISSING');
        expect(error.details).toEqual({
          sessionId: 'a',
          toolName: 'handoff_to_billing',
          toolCallId: 'call_handoff',
          activeAgent: 'billing',
        });
        expect(error.message).toContain('"billing"');
      }
    }
    expect(await world.stored('a')).toEqual(before);
    expect((await world.agent(config).resume('a'))?.agentName).toBe('billing');
  });

  it('and is over is gone on with by the agent itself when the target is not there any more', async () => {
    const { config } = givenShop({ clerk: [toBilling, 'It is me again.'] });
    await world.agent(config).send('go', { sessionId: 'a' });
    const { handoffs: _handoffs, ...alone } = config;
    const result = await world.agent(alone).send('still there?', { sessionId: 'a' });
    expect(result).toMatchObject({ agentName: 'clerk', text: 'It is me again.' });
    expect(whoAnswers((await world.stored('a')) ?? { messages: [] })).toBe('the agent itself: Serve.');
  });

  it('keeps the model that the target chose, and asks for its tools and instructions with the saved context', async () => {
    const seen: unknown[] = [];
    let models = 0;
    const billing = mockModel([new Error('down'), 'Done.']);
    const shop = givenShop({ clerk: [toBilling] }, { retry: { maxRetries: 0 } });
    const handoffs: readonly HandoffTarget[] = [
      {
        name: 'billing',
        description: 'Counts.',
        provider: billing,
        model: () => `model ${++models}`,
        instructions: ({ sessionId, metadata, principal }) => {
          seen.push([sessionId, metadata, principal]);
          return `Count for ${principal?.id ?? 'nobody'}.`;
        },
      },
    ];
    const config = { ...shop.config, handoffs };
    const given = { sessionId: 'a', metadata: { from: 'web' }, principal: { id: 'ann' } };
    await rejection(world.agent(config).send('go', given));
    const result = await world.otherProcess().agent(config).resume('a');
    expect(result).toMatchObject({ agentName: 'billing', text: 'Done.' });
    expect(billing.calls.map(({ model }) => model)).toEqual(['model 1', 'model 1']);
    expect(lines(billing.calls[1]?.messages ?? [])[0]).toBe('system Count for ann.');
    expect(seen).toEqual([1, 2].map(() => ['a', { from: 'web' }, { id: 'ann' }]));
  });
});

it.each<readonly [string, object]>([
  ['handoffs', { handoffs: {} }],
  [
    'handoffs',
    {
      handoffs: [
        { name: 'a', description: 'A.' },
        { name: 'a', description: 'B.' },
      ],
    },
  ],
  ['handoffs', { name: 'a', handoffs: [{ name: 'a', description: 'A.' }] }],
  ['handoffs[0]', { handoffs: ['a'] }],
  ['handoffs[0].name', { handoffs: [{ name: 'with blanks', description: 'A.' }] }],
  ['handoffs[0].name', { handoffs: [{ name: 'a'.repeat(54), description: 'A.' }] }],
  ['handoffs[0].name', { handoffs: [{ description: 'A.' }] }],
  ['handoffs.a.description', { handoffs: [{ name: 'a', description: '' }] }],
  ['handoffs.a.needsApproval', { handoffs: [{ name: 'a', description: 'A.', needsApproval: 'yes' }] }],
  ['handoffs.a.maxSteps', { handoffs: [{ name: 'a', description: 'A.', maxSteps: 3 }] }],
  ['handoffs.a.limits', { handoffs: [{ name: 'a', description: 'A.', limits: {} }] }],
  ['handoffs.a.toolConcurrency', { handoffs: [{ name: 'a', description: 'A.', toolConcurrency: 1 }] }],
  ['handoffs.a.instruction', { handoffs: [{ name: 'a', description: 'A.', instruction: 'x' }] }],
  ['handoffs.a.provider', { handoffs: [{ name: 'a', description: 'A.', provider: {} }] }],
  [
    'handoffs.a.tools',
    {
      handoffs: [
        { name: 'a', description: 'A.', tools: [spyTool('handoff_to_b').tool] },
        { name: 'b', description: 'B.' },
      ],
    },
  ],
  [
    'handoffs.a.tools',
    { handoffs: [{ name: 'a', description: 'A.', tools: [spyTool('x').tool, spyTool('x').tool] }] },
  ],
  ['tools', { tools: [spyTool('handoff_to_a').tool], handoffs: [{ name: 'a', description: 'A.' }] }],
  ['name', { name: 'My agent', handoffs: [{ name: 'a', description: 'A.' }] }],
  ['maxHandoffs', { maxHandoffs: 0 }],
  ['maxHandoffs', { maxHandoffs: 1.5 }],
])('createAgent refuses by the name of %s: %j', (option, config) => {
  const error = thrown(() => createAgent({ provider: mockModel([]), ...config }));
  expect(error.code).toBe('LOUSHO_CONFIG_INVALID');
  expect((error.details as { readonly option: string }).option).toBe(option);
});
