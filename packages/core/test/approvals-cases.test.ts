/** What people met in other systems: an approval ends, on every store, as the person who decides would expect. */
import { PropagatingToolError, once, type Tool } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { crashingStore } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { ToolRegistry, createAgent, resumeAfterApproval } from '../src/index.ts';
import { askForEmail, givenPausedOnEmail } from './support/paused-email.ts';
import { expectValid, refusal, rejection, resultOfCall, results } from './support/read.ts';
import { deferred, emailTool, gatedTool, spyTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

onEveryStore('approvals of one storage', (world) => {
  it('are listed by every agent on it, the oldest first', async () => {
    const first = await givenPausedOnEmail(world);
    await world.clock.advance(5);
    const other = world.otherProcess().agent({
      name: 'second',
      provider: mockModel([askForEmail]),
      tools: [first.email.tool],
    });
    const second = await other.send('email bob', { sessionId: 'a-first-by-its-name' });
    for (const agent of [first.agent, other])
      expect((await agent.approvals.list()).map(({ id }) => id)).toEqual([first.id, second.approvalId]);
  });

  it('shrink with every decision, and each hits its own call, whatever the order and the process', async () => {
    const pay = gatedTool('pay');
    const config = {
      provider: mockModel([{ toolCalls: [1, 2, 3].map((n) => ({ name: 'pay', args: { n } })) }, 'Paid.'], {
        answerBy: 'step',
      }),
      tools: [pay.tool],
    };
    const { approvalIds = [] } = await world.agent(config).send('pay', { sessionId: 'order-7' });
    const left: number[] = [];
    for (const [at, n] of [3, 1, 2].entries()) {
      const agent = world.otherProcess().agent(config);
      left.push((await agent.approvals.list()).length);
      const id = approvalIds[n - 1] ?? '';
      await agent.approvals.resolve({ id, approved: n !== 1, note: `decision ${at}` });
      expect(await agent.approvals.get(id)).toBeUndefined();
    }
    expect(left).toEqual([3, 2, 1]);
    expect(await world.store.approvals.list()).toEqual([]);
    const stored = await world.stored('order-7');
    expect(results(stored?.messages ?? []).map(({ kind, approval }) => [kind, approval?.note])).toEqual([
      ['rejected', 'decision 1'],
      [undefined, 'decision 2'],
      [undefined, 'decision 0'],
    ]);
    expect(pay.runs.map(({ args }) => args)).toEqual([{ n: 2 }, { n: 3 }]);
    expect(config.provider.calls).toHaveLength(2);
  });

  it('of a call that the model made again leave the new one alone: the first answer stays for the first', async () => {
    const { email, agent, id } = await givenPausedOnEmail(world, askForEmail, 'Then not.');
    const again = await agent.approvals.resolve({ id, approved: false, by: 'ann' });
    const before = await world.stored('chat-42');
    const error = await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_DECIDED');
    expect(error.details).toMatchObject({ approvalId: id, approved: false, by: 'ann' });
    expect(await world.stored('chat-42')).toEqual(before);
    expect(await agent.approvals.list()).toMatchObject([{ id: again.approvalId }]);
    expect(email.runs).toEqual([]);
  });

  it('name only the new calls when the next response pauses again', async () => {
    const look = spyTool('look');
    const email = emailTool();
    const ask = { toolCalls: [{ name: 'look' }, { name: 'email', args: { to: 'bob@example.com' } }] };
    const agent = world.agent({ provider: mockModel([ask, ask, 'Sent.']), tools: [look.tool, email.tool] });
    const first = await agent.send('go', { sessionId: 'a' });
    const second = await agent.approvals.resolve({ id: first.approvalId ?? '', approved: true });
    expect(second.approvalIds).toHaveLength(1);
    expect(second.approvalIds).not.toEqual(first.approvalIds);
    expect((await agent.approvals.list()).map(({ id }) => id)).toEqual(second.approvalIds);
    expect((await world.stored('a'))?.approvals).toHaveLength(1);
  });

  it('that the inbox lost are still in the run: it says what it waits for, and is decided', async () => {
    const { email, agent, id } = await givenPausedOnEmail(world, 'Email sent.');
    await world.store.approvals.delete(id);
    expect(await agent.pending()).toMatchObject([{ status: 'awaiting-approval', approvalIds: [id] }]);
    expect(await rejection(agent.resume('chat-42'))).toMatchObject({ approvalId: id });
    const result = await agent.approvals.resolve({ id, approved: true });
    expect(result.text).toBe('Email sent.');
    expect(email.runs).toHaveLength(1);
  });

  it('that nobody can read the end of never expire', async () => {
    const { email, agent, id } = await givenPausedOnEmail(world, 'Email sent.');
    const stored = await world.stored('chat-42');
    if (stored === null) throw new Error('It is not there.');
    const approvals = stored.approvals.map((approval) => ({ ...approval, expiresAt: 'soon' }));
    await world.checkpoints.save('chat-42', { ...stored, approvals });
    await world.clock.advance(1_000_000_000);
    await agent.approvals.resolve({ id, approved: true });
    expect(email.runs).toHaveLength(1);
  });
});

onEveryStore('a decision', (world) => {
  it('that was stored, and after which nobody went on, is acted on by a resume, and not asked for again', async () => {
    const { email, agent, id, paused } = await givenPausedOnEmail(world);
    const crashing = crashingStore(world.otherProcess().store, {
      point: { call: 'saveIfLeased#1', when: 'after' },
    });
    const dying = world.agent({
      store: crashing.store,
      provider: mockModel(['never asked']),
      tools: [email.tool],
      instructions: 'Mail.',
    });
    void dying.approvals.resolve({ id, approved: true, by: 'ann' }).catch(() => undefined);
    await until(() => crashing.isDead);
    expect(await agent.pending()).toMatchObject([{ sessionId: 'chat-42', status: 'in-progress' }]);
    expect(await agent.approvals.list()).toEqual([]);
    await refusal(agent.approvals.resolve({ id, approved: false }), 'LOUSHO_APPROVAL_DECIDED');
    await world.clock.advance(60_001);
    const heir = world
      .otherProcess()
      .agent({ provider: mockModel(['Email sent.']), tools: [email.tool], instructions: 'Mail.' });
    const result = await heir.resume('chat-42');
    expect(result).toMatchObject({ text: 'Email sent.', runId: paused.runId });
    expect(email.runs).toHaveLength(1);
    expect(resultOfCall(result?.messages ?? [], 'call_email')?.approval).toMatchObject({ by: 'ann' });
    expect(await world.store.approvals.list()).toEqual([]);
  });

  it('made twice at one moment in one process has one result and one model call behind it', async () => {
    const { model, agent, id } = await givenPausedOnEmail(world, 'Then not.');
    const ends = await Promise.allSettled([1, 2].map(() => agent.approvals.resolve({ id, approved: false })));
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(model.calls).toHaveLength(2);
    const stored = await world.stored('chat-42');
    expect(results(stored?.messages ?? [])).toHaveLength(1);
    expectValid(stored?.messages ?? []);
  });

  it('is never asked of the gate again', async () => {
    let asked = 0;
    const pay = spyTool('pay', undefined, {
      needsApproval: () => {
        asked += 1;
        if (asked > 1) throw new Error('asked twice');
        return true;
      },
    });
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'pay' }] }, 'Paid.']),
      tools: [pay.tool],
    });
    const { approvalId: id = '' } = await agent.send('pay', { sessionId: 'a' });
    expect((await agent.approvals.resolve({ id, approved: true })).text).toBe('Paid.');
    expect([asked, pay.runs.length]).toEqual([1, 1]);
  });

  it('goes on being stored under the id of the run, step by step', async () => {
    const email = emailTool();
    const look = spyTool('look');
    const agent = world.agent({
      provider: mockModel([askForEmail, { toolCalls: [{ name: 'look' }] }, 'Sent.']),
      tools: [email.tool, look.tool],
    });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'a' });
    await agent.approvals.resolve({ id, approved: true });
    const saves = await world.saves('a');
    expect(saves.map(({ stepIndex, status }) => `${stepIndex} ${status}`)).toEqual([
      ...['1 in-progress', '1 awaiting-approval', '1 in-progress', '1 in-progress', '1 in-progress'],
      ...['2 in-progress', '2 in-progress', '3 finished'],
    ]);
  });

  it('gives the call a signal that a person can still pull', async () => {
    const gate = deferred();
    const email = emailTool((_args, { signal }) => {
      signal.addEventListener('abort', () => gate.reject(new Error('stopped')));
      return gate.promise;
    });
    const agent = world.agent({ provider: mockModel([askForEmail, 'never asked']), tools: [email.tool] });
    const { approvalId: id = '' } = await agent.send('email bob', { sessionId: 'chat-42' });
    const stop = new AbortController();
    const deciding = agent.approvals.resolve({ id, approved: true }, { signal: stop.signal });
    await until(() => email.runs.length === 1);
    stop.abort();
    const result = await deciding;
    expect(result.finishReason).toBe('aborted');
    expect(resultOfCall(result.messages, 'call_email')).toMatchObject({
      kind: 'cancelled',
      approval: { approved: true },
    });
  });

  it('of the function form goes on in the inbox that it names', async () => {
    const { email, id } = await givenPausedOnEmail(world);
    const inbox = createAgent({ provider: mockModel([]), store: { approvals: world.store.approvals } });
    const second = world.otherProcess().store.approvals;
    const saved: string[] = [];
    const result = await resumeAfterApproval(
      { id, approved: true },
      world.store.approvals,
      new ToolRegistry([email.tool]),
      mockModel([askForEmail]),
      {
        ports: world.ports,
        approvalStore: {
          ...second,
          list: (options) => second.list(options),
          load: (each) => second.load(each),
          delete: (each) => second.delete(each),
          async save(record) {
            saved.push(record.id);
            await second.save(record);
          },
        },
      },
      world.checkpoints,
    );
    expect(result.finishReason).toBe('awaiting-approval');
    expect(saved).toEqual([result.approvalId]);
    expect((await inbox.approvals.list()).map((request) => request.id)).toEqual(saved);
  });
});

onEveryStore('a pause', (world) => {
  it('comes after the free calls; one of those that rejects the run leaves none, and the next resume makes it', async () => {
    const a = spyTool('a');
    const b = spyTool('b', (_args, _ctx, run) => {
      if (run === 1) throw new PropagatingToolError('not now');
      return 'b done';
    });
    const pay = gatedTool('pay');
    const tools: readonly Tool[] = [a.tool, b.tool, pay.tool];
    const script = [{ toolCalls: ['a', 'pay', 'b'].map((name) => ({ name })) }, 'Paid.'];
    const agent = world.agent({ provider: mockModel(script, { answerBy: 'step' }), tools });
    await rejection(agent.send('go', { sessionId: 'a' }));
    expect(await world.store.approvals.list()).toEqual([]);
    expect(await world.stored('a')).toMatchObject({ status: 'in-progress', approvals: [] });
    const paused = await agent.resume('a');
    expect(paused?.finishReason).toBe('awaiting-approval');
    expect([a, b, pay].map(({ runs }) => runs.length)).toEqual([1, 2, 0]);
    const end = await agent.approvals.resolve({ id: paused?.approvalId ?? '', approved: true });
    expect(end.text).toBe('Paid.');
    expect([a, b, pay].map(({ runs }) => runs.length)).toEqual([1, 2, 1]);
  });

  it('names its calls in call order, however long each gate thinks', async () => {
    const gates = [30, 5, 15].map((ms, at) =>
      spyTool(`tool_${at}`, undefined, {
        needsApproval: () => new Promise<boolean>((resolve) => world.clock.setTimer(() => resolve(true), ms)),
      }),
    );
    const agent = world.agent({
      provider: mockModel([
        { toolCalls: gates.map(({ tool }) => ({ name: tool.name, args: { of: tool.name } })) },
      ]),
      tools: gates.map(({ tool }) => tool),
    });
    const sending = agent.send('go', { sessionId: 'a' });
    let isOver = false;
    void sending.finally(() => (isOver = true));
    await until(async () => {
      await world.clock.advance(1);
      return isOver;
    });
    const { approvalIds = [] } = await sending;
    const requests = await Promise.all(approvalIds.map((id) => agent.approvals.get(id)));
    expect(requests.map((request) => request?.args)).toEqual([0, 1, 2].map((at) => ({ of: `tool_${at}` })));
    expect(new Set(approvalIds).size).toBe(3);
  });

  it('of an agent that makes its tools anew for each run comes on a resume too: nothing runs ungated', async () => {
    const pay = gatedTool('pay');
    const config = { tools: () => [pay.tool] };
    const crashing = crashingStore(world.otherProcess().store, {
      point: { call: 'saveIfLeased#1', when: 'after' },
    });
    const provider = mockModel([{ toolCalls: [{ name: 'pay' }] }]);
    const dying = world.agent({ ...config, store: crashing.store, provider });
    void dying.send('pay', { sessionId: 'a' }).catch(() => undefined);
    await until(() => crashing.isDead);
    await world.clock.advance(60_001);
    const heir = world.otherProcess().agent({ ...config, provider: mockModel(['never asked']) });
    expect(await heir.resume('a')).toMatchObject({ finishReason: 'awaiting-approval' });
    expect(pay.runs).toEqual([]);
  });

  it('happens once for a tool that asks once(), when a person said yes', async () => {
    const mail = spyTool('mail', undefined, { needsApproval: once() });
    const ask = { toolCalls: [{ name: 'mail' }] };
    const agent = world.agent({
      provider: mockModel([ask, ask, 'No.', ask, ask, 'Sent.', ask, 'Sent again.']),
      tools: [mail.tool],
    });
    const first = await agent.send('mail', { sessionId: 'a' });
    const second = await agent.approvals.resolve({ id: first.approvalId ?? '', approved: false });
    // A no is not remembered, and neither is what was not decided.
    expect(second.finishReason).toBe('awaiting-approval');
    expect((await agent.approvals.resolve({ id: second.approvalId ?? '', approved: false })).text).toBe(
      'No.',
    );
    const third = await agent.send('mail', { sessionId: 'a' });
    expect(third.finishReason).toBe('awaiting-approval');
    expect((await agent.approvals.resolve({ id: third.approvalId ?? '', approved: true })).text).toBe(
      'Sent.',
    );
    expect((await agent.send('mail', { sessionId: 'a' })).text).toBe('Sent again.');
    expect(mail.runs).toHaveLength(3);
  });

  it('that an older release made at its first gated call does not run the calls behind it', async () => {
    const tools = { a: spyTool('a'), pay: gatedTool('pay'), later: spyTool('later') };
    const script = [{ toolCalls: ['a', 'pay', 'later'].map((name) => ({ name, id: name })) }, 'Paid.'];
    const config = {
      provider: mockModel(script, { answerBy: 'step' }),
      tools: Object.values(tools).map(({ tool }) => tool),
    };
    const agent = world.agent(config);
    const { approvalId: id = '' } = await agent.send('go');
    const record = await world.store.approvals.load(id);
    const [old] = record?.snapshot?.checkpoints ?? [];
    if (!record || old === undefined) throw new Error('It is not there.');
    const checkpoint = { ...old.checkpoint, settledResults: [] };
    await world.store.approvals.save({ ...record, snapshot: { checkpoints: [{ ...old, checkpoint }] } });
    const result = await world.otherProcess().agent(config).approvals.resolve({ id, approved: true });
    expect(results(result.messages).map(({ toolCallId, kind }) => [toolCallId, kind])).toEqual([
      ['a', undefined],
      ['pay', undefined],
      ['later', 'not-run'],
    ]);
    expect(tools.later.runs).toHaveLength(1);
  });
});

it('approvals of an agent without a store are its own', async () => {
  const email = emailTool();
  const [one, other] = [1, 2].map(() =>
    createAgent({ provider: mockModel([askForEmail, 'Sent.']), tools: [email.tool] }),
  );
  const { approvalId: id = '' } = (await one?.send('email bob')) ?? {};
  expect(await other?.approvals.list()).toEqual([]);
  if (one === undefined || other === undefined) throw new Error('Two agents were made.');
  await refusal(other.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_NOT_FOUND');
  expect((await one.approvals.resolve({ id, approved: true })).text).toBe('Sent.');
});
