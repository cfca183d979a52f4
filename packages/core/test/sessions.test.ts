/** A session is one conversation over many turns: each turn is durable, and the transcript holds what was committed. */
import { LLMProviderError, emptyUsage, type SessionRecord } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { createAgent } from '../src/index.ts';
import { expectValid, lines, refusal, rejection } from './support/read.ts';
import { deferred, failingOnceTool, spyTool } from './support/tools.ts';
import { watchedRecovery } from './support/recovery.ts';
import { threeMethods } from './support/stores.ts';
import { letPass } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const callsOfAAndB = {
  toolCalls: [
    { name: 'a', id: 'call_a' },
    { name: 'b', id: 'call_b' },
  ],
};

/** The first turn of `chat` is cut in the middle of `b`; `a` is recorded. */
async function givenTurnCutInB(world: World) {
  const a = spyTool('a');
  const b = failingOnceTool('b');
  const tools = [a.tool, b.tool];
  const agent = world.agent({ provider: mockModel([callsOfAAndB]), tools, instructions: 'Help.' });
  await rejection(agent.session({ id: 'chat' }).send('do both'));
  return { a, b, tools };
}

const emptyRecord: SessionRecord = {
  id: 'chat',
  revision: 0,
  turn: 0,
  messages: [],
  inputIds: [],
  usage: emptyUsage,
  savedAt: new Date(0).toISOString(),
};

onEveryStore('sessions', (world) => {
  it('keeps the transcript over turns, and no checkpoint of a turn that is over', async () => {
    const model = mockModel(['It is x.', 'Bye.']);
    const session = world.agent({ provider: model, instructions: 'Help.' }).session({ id: 'chat' });
    const first = await session.send('what is it?');
    expect(first).toMatchObject({ finishReason: 'stop', text: 'It is x.', sessionId: 'chat' });
    await session.send('bye');
    expect(lines(await session.messages())).toEqual([
      'user what is it?',
      'assistant It is x.',
      'user bye',
      'assistant Bye.',
    ]);
    expect(lines(model.calls[1]?.messages ?? [])).toEqual([
      'system Help.',
      'user what is it?',
      'assistant It is x.',
      'user bye',
    ]);
    expect(await world.checkpoints.list()).toEqual([]);
    expect(await session.pending()).toBeNull();
  });

  it('stores a turn under <id>.turn-<n>, and tools see the plain id', async () => {
    const seen: unknown[] = [];
    const probe = spyTool('probe', async (_args, ctx) => {
      seen.push(
        ctx.sessionId,
        (await world.checkpoints.list()).map(({ sessionId }) => sessionId),
      );
    });
    const model = mockModel(['Hi.', { toolCalls: [{ name: 'probe' }] }, 'Done.']);
    const session = world.agent({ provider: model, tools: [probe.tool] }).session({ id: 'chat' });
    await session.send('hi');
    await session.send('go');
    expect(seen).toEqual(['chat', ['chat.turn-1']]);
  });

  it('finishes an interrupted turn with session.resume() in another process', async () => {
    const { a, b, tools } = await givenTurnCutInB(world);
    const agent = world
      .otherProcess()
      .agent({ provider: mockModel(['All done.']), tools, instructions: 'Help.' });
    const session = agent.session({ id: 'chat' });
    expect(await session.pending()).toMatchObject({
      kind: 'session',
      sessionId: 'chat',
      status: 'in-progress',
    });
    expect(await session.resume()).toMatchObject({ text: 'All done.', sessionId: 'chat' });
    expect([a.runs.length, b.runs.length]).toEqual([1, 2]);
    expect(lines(await session.messages())).toEqual([
      'user do both',
      'assistant a#call_a b#call_b',
      'tool call_a "a done"',
      'tool call_b "b done"',
      'assistant All done.',
    ]);
    expect(await session.pending()).toBeNull();
    expect(await session.resume()).toBeNull();
    expect(await world.checkpoints.list()).toEqual([]);
  });

  it('finishes an interrupted turn with agent.resume(), which lists it as a session', async () => {
    const { tools } = await givenTurnCutInB(world);
    const agent = world.agent({ provider: mockModel(['All done.']), tools, instructions: 'Help.' });
    expect(await agent.pending()).toMatchObject([
      { sessionId: 'chat', kind: 'session', checkpointId: 'chat.turn-0' },
    ]);
    expect(await agent.resume('chat', { kind: 'run' })).toBeNull();
    expect(await agent.resume('chat')).toMatchObject({ text: 'All done.' });
    expect(lines(await agent.session({ id: 'chat' }).messages()).at(-1)).toBe('assistant All done.');
  });

  it('finishes an interrupted turn first when it gets another input', async () => {
    const { tools } = await givenTurnCutInB(world);
    const model = mockModel(['All done.', 'Second.']);
    const session = world.agent({ provider: model, tools, instructions: 'Help.' }).session({ id: 'chat' });
    expect(await session.send('second')).toMatchObject({ text: 'Second.' });
    expect(lines(await session.messages())).toEqual([
      'user do both',
      'assistant a#call_a b#call_b',
      'tool call_a "a done"',
      'tool call_b "b done"',
      'assistant All done.',
      'user second',
      'assistant Second.',
    ]);
    expect(model.calls).toHaveLength(2);
  });

  it('takes the same input again as a retry of the interrupted turn', async () => {
    const { tools } = await givenTurnCutInB(world);
    const model = mockModel(['All done.']);
    const session = world.agent({ provider: model, tools, instructions: 'Help.' }).session({ id: 'chat' });
    expect(await session.send('do both')).toMatchObject({ text: 'All done.' });
    expect(lines(await session.messages()).filter((line) => line.startsWith('user'))).toEqual([
      'user do both',
    ]);
  });

  it('gives a retry of a committed input what it came to, without a model call', async () => {
    const model = mockModel(['One.']);
    const session = world.agent({ provider: model }).session({ id: 'chat' });
    const first = await session.send('one', { inputId: 'in-1' });
    const again = await world
      .otherProcess()
      .agent({ provider: model })
      .session({ id: 'chat' })
      .send('one', { inputId: 'in-1' });
    expect(again).toEqual(first);
    expect(model.calls).toHaveLength(1);
  });

  it('shows what an unfinished turn has recorded so far to whoever asks for it', async () => {
    const free = spyTool('free');
    const gated = spyTool('gated', undefined, { needsApproval: true });
    const calls = [
      { name: 'gated', id: 'call_g' },
      { name: 'free', id: 'call_f' },
    ];
    const model = mockModel(['Hello.', { text: 'Look:', toolCalls: calls }, 'Done.']);
    const config = { provider: model, tools: [free.tool, gated.tool], instructions: 'Be kind.' };
    await world.agent(config).session({ id: 'chat' }).send('hi');
    await world.agent(config).session({ id: 'chat' }).send('go');
    const session = world.otherProcess().agent(config).session({ id: 'chat' });
    expect(lines(await session.messages())).toEqual(['user hi', 'assistant Hello.']);
    const soFar = await session.messages({ includePending: true });
    expect(lines(soFar).slice(0, 4)).toEqual([
      ...['user hi', 'assistant Hello.'],
      ...['user go', 'assistant gated#call_g free#call_f Look:'],
    ]);
    expect(soFar.slice(4)).toMatchObject([{ role: 'tool', content: [{ toolCallId: 'call_f' }] }]);
  });

  it('refuses every way into a paused turn until it is decided, and the decision completes the transcript', async () => {
    const gated = spyTool('gated', undefined, { needsApproval: true });
    const model = mockModel([{ toolCalls: [{ name: 'gated', id: 'call_g' }] }, 'Done.', 'Next.']);
    const config = { provider: model, tools: [gated.tool] };
    const session = world.agent(config).session({ id: 'chat' });
    const paused = await session.send('go');
    expect(paused.finishReason).toBe('awaiting-approval');
    const id = paused.approvalId ?? '';
    expect(await session.messages()).toEqual([]);
    const agent = world.otherProcess().agent(config);
    const later = agent.session({ id: 'chat' });
    expect(await later.pending()).toMatchObject({ status: 'awaiting-approval', approvalId: id });
    for (const entry of [() => later.send('x'), () => later.resume(), () => later.clear()])
      expect(await refusal(entry(), 'LOUSHO_SESSION_AWAITING_APPROVAL')).toMatchObject({
        details: { approvalId: id },
      });
    expect(await agent.approvals.resolve({ id, approved: true })).toMatchObject({
      text: 'Done.',
      sessionId: 'chat',
    });
    expect(lines(await later.messages()).at(-1)).toBe('assistant Done.');
    expect(await world.checkpoints.list()).toEqual([]);
    expect(await later.send('next')).toMatchObject({ text: 'Next.' });
    expectValid(await later.messages());
  });

  it('says who decided what to a second decision, at the same moment and after the turn is over', async () => {
    const gated = spyTool('gated', undefined, { needsApproval: true });
    const model = mockModel([{ toolCalls: [{ name: 'gated' }] }, 'Done.']);
    const agent = world.agent({ provider: model, tools: [gated.tool] });
    const { approvalId: id = '' } = await agent.session({ id: 'chat' }).send('go');
    const both = await Promise.allSettled([
      agent.approvals.resolve({ id, approved: true, by: 'ada' }),
      agent.approvals.resolve({ id, approved: true, by: 'bob' }),
    ]);
    const late = { code: 'LOUSHO_APPROVAL_DECIDED', details: { approvalId: id, approved: true } };
    expect(both.filter(({ status }) => status === 'rejected')).toMatchObject([{ reason: late }]);
    expect(await rejection(agent.approvals.resolve({ id, approved: false }))).toMatchObject(late);
    expect(gated.runs).toHaveLength(1);
  });

  it('refuses a sessionId for one input: the session has its id', async () => {
    const session = world.agent({ provider: mockModel([]) }).session({ id: 'chat' });
    const options = { sessionId: 'other' } as object;
    expect(await refusal(session.send('x', options), 'LOUSHO_CONFIG_INVALID')).toMatchObject({
      details: { option: 'sessionId' },
    });
  });

  it('drops an unfinished turn with its approvals on discardPending(), and keeps what is committed', async () => {
    const gated = spyTool('gated', undefined, { needsApproval: true });
    const model = mockModel(['Hi.', { toolCalls: [{ name: 'gated' }] }, 'Again.']);
    const agent = world.agent({ provider: model, tools: [gated.tool] });
    const session = agent.session({ id: 'chat' });
    await session.send('hi');
    await session.send('go');
    expect(await agent.approvals.list()).toHaveLength(1);
    expect(await session.discardPending()).toBe(true);
    expect(await session.discardPending()).toBe(false);
    expect(await agent.approvals.list()).toEqual([]);
    expect(await world.store.approvals.list()).toEqual([]);
    expect(lines(await session.messages())).toEqual(['user hi', 'assistant Hi.']);
    expect(await session.send('again')).toMatchObject({ text: 'Again.' });
  });

  it('fails at once behind a turn that would fail the same way, resumes it on request, and drops it on request', async () => {
    const overflow = () => new LLMProviderError('too long', { kind: 'api', status: 400, retryable: false });
    const a = spyTool('a');
    const model = mockModel([{ toolCalls: [{ name: 'a' }] }, overflow()]);
    const session = world.agent({ provider: model, tools: [a.tool] }).session({ id: 'chat' });
    await refusal(session.send('go'), 'LOUSHO_PROVIDER_ERROR');
    expect(await session.pending()).toMatchObject({ attempts: 1, lastError: { retryable: false } });
    const failed = await refusal(session.send('next'), 'LOUSHO_SESSION_TURN_FAILED');
    expect(failed.hint).toContain('discardPending');
    expect(model.calls).toHaveLength(2);
    model.push(overflow());
    await refusal(session.resume(), 'LOUSHO_PROVIDER_ERROR');
    expect(await session.pending()).toMatchObject({ attempts: 2 });
    expect(await session.discardPending()).toBe(true);
    model.push('Fresh.');
    expect(await session.send('fresh')).toMatchObject({ text: 'Fresh.' });
    expect(lines(await session.messages())).toEqual(['user fresh', 'assistant Fresh.']);
  });

  it('commits an aborted turn with what ran and what was said, and the next input starts a new one', async () => {
    const stop = new AbortController();
    const a = spyTool('a', () => stop.abort());
    const model = mockModel([{ toolCalls: [{ name: 'a', id: 'call_a' }] }, 'Next.']);
    const session = world.agent({ provider: model, tools: [a.tool] }).session({ id: 'chat' });
    expect(await session.send('go', { signal: stop.signal })).toMatchObject({ finishReason: 'aborted' });
    expect(await session.pending()).toBeNull();
    expect(await session.discardPending()).toBe(false);
    expect(lines(await session.messages()).slice(0, 2)).toEqual(['user go', 'assistant a#call_a']);
    expect(await session.send('next')).toMatchObject({ text: 'Next.' });
    expectValid(model.calls[1]?.messages ?? []);
  });

  it('keeps what was heard of a streamed reply that an abort cut, marked as interrupted', async () => {
    const model = mockModel(['Contract A-7 covers everything.', 'Next.']);
    const session = world.agent({ provider: model }).session({ id: 'chat' });
    const run = session.stream('what does it cover?');
    for await (const event of run) if (event.type === 'text.delta') run.abort();
    expect(await run.result).toMatchObject({ finishReason: 'aborted' });
    const [, reply] = await session.messages();
    expect(reply).toMatchObject({ role: 'assistant', providerMetadata: { lousho: { interrupted: true } } });
    await session.send('go on');
    expectValid(model.calls[1]?.messages ?? []);
  });

  it('lists one step a response, newest first, and branches off at any of them', async () => {
    const a = spyTool('a', () => 'x');
    const model = mockModel([{ toolCalls: [{ name: 'a', id: 'c1' }] }, 'It is x.', 'Bye.', 'Forked.']);
    const agent = world.agent({ provider: model, tools: [a.tool] });
    const session = agent.session({ id: 'chat' });
    await session.send('what?');
    await session.send('bye');
    expect((await session.history()).map(({ step, turn, text }) => [step, turn, text])).toEqual([
      [3, 1, 'Bye.'],
      [2, 0, 'It is x.'],
      [1, 0, ''],
    ]);
    expect((await session.history()).at(-1)?.toolCalls).toMatchObject([{ toolName: 'a', result: 'x' }]);
    const fork = await session.fork({ fromStep: 2 });
    expect(fork.id).toBe('chat-fork-1');
    expect((await session.fork({ fromStep: 2 })).id).toBe('chat-fork-2');
    expect(lines(await fork.messages()).at(-1)).toBe('assistant It is x.');
    expect(
      await world
        .otherProcess()
        .agent({ provider: model, tools: [a.tool] })
        .session({ id: 'chat-fork-1' })
        .send('more'),
    ).toMatchObject({ text: 'Forked.' });
    expect(lines(await session.messages())).toHaveLength(6);
    await refusal(session.fork({ fromStep: 1, newSessionId: 'chat-fork-2' }), 'LOUSHO_SESSION_EXISTS');
    expect(await refusal(session.fork({ fromStep: 9 }), 'LOUSHO_CHECKPOINT_NOT_FOUND')).toMatchObject({
      details: { keptSteps: [1, 2, 3] },
    });
    expect(await (await session.fork({ fromStep: 0 })).messages()).toEqual([]);
  });

  it('forgets everything on clear(), and starts anew', async () => {
    const { tools } = await givenTurnCutInB(world);
    const model = mockModel(['Fresh.']);
    const session = world.agent({ provider: model, tools, instructions: 'Help.' }).session({ id: 'chat' });
    await session.clear();
    expect(await session.messages()).toEqual([]);
    expect(await world.checkpoints.list()).toEqual([]);
    expect(await world.checkpoints.history('chat.turn-0')).toEqual([]);
    expect(await session.send('fresh')).toMatchObject({ text: 'Fresh.' });
  });

  it('lets two sends of one session follow each other', async () => {
    const model = mockModel(['One.', 'Two.']);
    const agent = world.agent({ provider: model });
    const results = await Promise.all([
      agent.session({ id: 'chat' }).send('one'),
      agent.session({ id: 'chat' }).send('two'),
    ]);
    expect(results.map(({ text }) => text)).toEqual(['One.', 'Two.']);
    expect(lines(await agent.session({ id: 'chat' }).messages())).toHaveLength(4);
  });

  it('lets a second input join the turn under way with turnPolicy queue', async () => {
    const begun = deferred();
    const ended = deferred();
    const slow = spyTool('slow', async () => {
      begun.resolve();
      await ended.promise;
    });
    const model = mockModel([{ toolCalls: [{ name: 'slow' }] }, 'Done.']);
    const agent = world.agent({ provider: model, tools: [slow.tool] });
    const first = agent.session({ id: 'chat', turnPolicy: 'queue' }).send('go');
    await begun.promise;
    const second = agent.session({ id: 'chat', turnPolicy: 'queue' }).send('and metric units');
    ended.resolve();
    expect(await second).toBe(await first);
    expect(
      lines(await agent.session({ id: 'chat' }).messages()).filter((line) => line.startsWith('user')),
    ).toEqual(['user go', 'user and metric units']);
  });

  it('refuses a tool that sends to its own session, with every policy', async () => {
    const seen: unknown[] = [];
    const inner = spyTool('inner', async () => {
      for (const turnPolicy of ['wait', 'queue', 'steer'] as const)
        seen.push(await rejection(agent.session({ id: 'chat', turnPolicy }).send('me again')));
    });
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'inner' }] }, 'Done.']),
      tools: [inner.tool],
    });
    await agent.session({ id: 'chat' }).send('go');
    expect(seen).toMatchObject(Array.from({ length: 3 }, () => ({ code: 'LOUSHO_SESSION_BUSY' })));
  });

  it('refuses a plain run under the id of a session that waits for a person', async () => {
    const gated = spyTool('gated', undefined, { needsApproval: true });
    const model = mockModel([{ toolCalls: [{ name: 'gated' }] }]);
    const agent = world.agent({ provider: model, tools: [gated.tool] });
    const { approvalId } = await agent.session({ id: 'chat' }).send('go');
    expect(
      await refusal(agent.send('x', { sessionId: 'chat' }), 'LOUSHO_SESSION_AWAITING_APPROVAL'),
    ).toMatchObject({
      details: { approvalId },
    });
    expect(await world.stored('chat')).toBeNull();
    expect(model.calls).toHaveLength(1);
  });

  it('is busy at once for another process while a turn runs', async () => {
    const codes: unknown[] = [];
    const probe = spyTool('probe', async () => {
      const other = world
        .otherProcess()
        .agent({ provider: mockModel([]) })
        .session({ id: 'chat' });
      for (const call of [
        () => other.send('x'),
        () => other.resume(),
        () => other.clear(),
        () => other.discardPending(),
      ])
        codes.push(await rejection(call()));
    });
    const model = mockModel([{ toolCalls: [{ name: 'probe' }] }, 'Done.']);
    await world
      .agent({ provider: model, tools: [probe.tool] })
      .session({ id: 'chat' })
      .send('go');
    expect(codes).toMatchObject(Array.from({ length: 4 }, () => ({ code: 'LOUSHO_SESSION_BUSY' })));
  });

  it('keeps what a turn did when somebody else wrote the transcript meanwhile, and says so', async () => {
    const write = spyTool('write', async () => {
      const { sessions } = world.store;
      const record = { ...(await sessions.load('chat')), messages: [{ role: 'user', content: 'theirs' }] };
      await sessions.saveIfRevision({ ...emptyRecord, ...record } as SessionRecord, 0);
    });
    const model = mockModel([{ toolCalls: [{ name: 'write', id: 'call_w' }] }, 'Done.']);
    const session = world.agent({ provider: model, tools: [write.tool] }).session({ id: 'chat' });
    const busy = await refusal(session.send('mine'), 'LOUSHO_SESSION_BUSY');
    expect(busy).toMatchObject({ details: { executed: true } });
    expect(lines(await session.messages())).toEqual([
      'user theirs',
      'user mine',
      'assistant write#call_w',
      'tool call_w null',
      'assistant Done.',
    ]);
    expect(await world.checkpoints.list()).toEqual([]);
  });

  it('needs no part for sessions: three methods of a checkpoint store are enough', async () => {
    const store = { checkpoints: threeMethods(world.checkpoints), approvals: world.store.approvals };
    const a = failingOnceTool('a');
    const model = mockModel([{ toolCalls: [{ name: 'a' }] }, 'Done.', 'Next.']);
    const open = () => world.agent({ store, provider: model, tools: [a.tool] }).session({ id: 'chat' });
    await rejection(open().send('go'));
    expect(await open().resume()).toMatchObject({ text: 'Done.' });
    expect(await open().send('next')).toMatchObject({ text: 'Next.' });
    expect(lines(await open().messages())).toHaveLength(6);
    expect((await world.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['chat.transcript']);
    expect(await world.agent({ provider: model }).pending()).toEqual([]);
  });

  it('is finished by recover(), which puts the turn into the transcript', async () => {
    const { a, tools } = await givenTurnCutInB(world);
    const agent = world.agent({ provider: mockModel(['All done.']), tools, instructions: 'Help.' });
    const recovery = watchedRecovery(agent);
    await letPass(world.clock, expect.poll(() => recovery.recovered).toEqual(['chat: All done.']));
    await recovery.stop();
    expect(a.runs).toHaveLength(1);
    expect(recovery.errors).toEqual([]);
    expect(lines(await agent.session({ id: 'chat' }).messages()).at(-1)).toBe('assistant All done.');
    expect(await world.checkpoints.list()).toEqual([]);
  });

  it('ends a turn with limit when the whole session has spent its limit', async () => {
    const model = mockModel(['One.', 'Two.', 'Three.']);
    const session = world.agent({ provider: model }).session({ id: 'chat', limits: { maxModelCalls: 2 } });
    await session.send('1');
    await session.send('2');
    expect(await session.send('3')).toMatchObject({
      finishReason: 'limit',
      limit: { name: 'maxModelCalls', max: 2, used: 2 },
    });
    expect(model.calls).toHaveLength(2);
  });

  it('refuses ids that are no session ids, and options that nobody knows', () => {
    const agent = world.agent({ provider: mockModel([]) });
    for (const id of ['a.b', '', 'x'.repeat(129), '.a'])
      expect(() => agent.session({ id })).toThrow(
        expect.objectContaining({ code: 'LOUSHO_SESSION_ID_INVALID' }) as Error,
      );
    const options = { id: 'a', turnpolicy: 'queue' } as { id: string };
    expect(() => agent.session(options)).toThrow(/turnPolicy/);
  });
});

describe('a session of an agent without a store', () => {
  it('keeps its transcript for as long as the agent lives, over a pause, too', async () => {
    const gated = spyTool('gated', undefined, { needsApproval: true });
    const model = mockModel([
      'Hi.',
      { toolCalls: [{ name: 'gated', id: 'c1' }] },
      { toolCalls: [{ name: 'gated', id: 'c2' }] },
      'Done.',
      'Next.',
    ]);
    const agent = createAgent({ provider: model, tools: [gated.tool] });
    const session = agent.session({ id: 'chat' });
    await session.send('hi');
    const first = await session.send('go');
    await refusal(session.send('x'), 'LOUSHO_SESSION_AWAITING_APPROVAL');
    const second = await agent.approvals.resolve({ id: first.approvalId ?? '', approved: true });
    const refused = await refusal(session.send('x'), 'LOUSHO_SESSION_AWAITING_APPROVAL');
    expect(refused).toMatchObject({ details: { approvalId: second.approvalId } });
    await agent.approvals.resolve({ id: second.approvalId ?? '', approved: false });
    expect(lines(await session.messages()).at(-1)).toBe('assistant Done.');
    expect(await session.send('next')).toMatchObject({ text: 'Next.' });
    expectValid(model.calls.at(-1)?.messages ?? []);
  });
});
