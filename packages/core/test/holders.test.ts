/** Who may execute a run: one at a time, in the order of the calls in a process, and refused at once from another one. */
import { manualClock, mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { eventsOf, lines, refusal, rejection, results } from './support/read.ts';
import { checkpointsWith, storeOf, watched } from './support/stores.ts';
import { deferred, emailTool, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { isOpen, letPass, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

/** `job-1` executes: its tool has begun and waits. */
async function givenRunInTool(world: World) {
  const gate = deferred<string>();
  const slow = spyTool('slow', () => gate.promise);
  const model = mockModel([{ toolCalls: [{ name: 'slow' }] }, 'Done.', 'Next.']);
  const agent = world.agent({ provider: model, tools: [slow.tool] });
  const sent = agent.send('go', { sessionId: 'job-1' });
  await until(() => slow.runs.length === 1);
  return { gate, slow, model, agent, sent };
}

onEveryStore('calls with one id in one process', (world) => {
  it('run one after the other, in the order they were made', async () => {
    const model = mockModel(['1.', '2.', '3.', '4.', '5.']);
    const agent = world.agent({ provider: model });
    const sends = ['a', 'b', 'c', 'd', 'e'].map((input) => agent.send(input, { sessionId: 'chat-42' }));
    const texts = (await Promise.all(sends)).map(({ text }) => text);
    expect(texts).toEqual(['1.', '2.', '3.', '4.', '5.']);
    expect(lines(model.calls[4]?.messages ?? []).filter((line) => line.startsWith('user'))).toEqual([
      'user a',
      'user b',
      'user c',
      'user d',
      'user e',
    ]);
  });

  it('keep their order over send and stream, and over two agents on one store', async () => {
    const model = mockModel(['1.', '2.', '3.']);
    const one = world.agent({ provider: model });
    const two = world.agent({ provider: model });
    const streamed = one.stream('a', { sessionId: 'chat-42' });
    const sent = two.send('b', { sessionId: 'chat-42' });
    const last = one.stream('c', { sessionId: 'chat-42' });
    await Promise.all([streamed.result, sent, last.result]);
    expect(lines((await world.stored('chat-42'))?.messages ?? [])).toEqual([
      'user a',
      'assistant 1.',
      'user b',
      'assistant 2.',
      'user c',
      'assistant 3.',
    ]);
  });

  it('are not held up by one that failed', async () => {
    const model = mockModel([new Error('down'), 'Second.']);
    const agent = world.agent({ provider: model, retry: { maxRetries: 0 } });
    const first = rejection(agent.send('a', { sessionId: 'chat-42' }));
    const second = agent.send('b', { sessionId: 'chat-42' });
    await first;
    expect((await second).text).toBe('Second.');
  });

  it('are refused when the one before them paused', async () => {
    const email = emailTool();
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'email', args: { to: 'a' } }] }]),
      tools: [email.tool],
    });
    const first = agent.send('a', { sessionId: 'chat-42' });
    const second = agent.send('b', { sessionId: 'chat-42' });
    await first;
    await refusal(second, 'LOUSHO_SESSION_AWAITING_APPROVAL');
  });

  it('leave the line without effect when they are aborted while they wait', async () => {
    const { gate, model, agent, sent } = await givenRunInTool(world);
    const stop = new AbortController();
    const waiting = agent.send('never mind', { sessionId: 'job-1', signal: stop.signal });
    expect(await isOpen(waiting)).toBe(true);
    stop.abort();
    expect((await waiting).finishReason).toBe('aborted');
    gate.resolve('ok');
    const result = await sent;
    expect(result.text).toBe('Done.');
    expect(lines(result.messages)).not.toContain('user never mind');
    expect(model.calls).toHaveLength(2);
  });

  it('still wait for all before them when the one in between has left', async () => {
    const { gate, agent, sent } = await givenRunInTool(world);
    const stop = new AbortController();
    const leaving = agent.send('never mind', { sessionId: 'job-1', signal: stop.signal });
    const last = agent.send('next', { sessionId: 'job-1' });
    stop.abort();
    await leaving;
    expect(await isOpen(last)).toBe(true);
    gate.resolve('ok');
    await sent;
    expect((await last).text).toBe('Next.');
  });

  it('run beside those with other ids', async () => {
    const { gate, agent, sent } = await givenRunInTool(world);
    const model = mockModel(['Hello.']);
    expect((await world.agent({ provider: model }).send('hi', { sessionId: 'job-2' })).text).toBe('Hello.');
    void agent;
    gate.resolve('ok');
    await sent;
  });

  it('let resume wait for nobody: it is busy at once', async () => {
    const { gate, agent, sent, slow } = await givenRunInTool(world);
    const error = await refusal(agent.resume('job-1'), 'LOUSHO_SESSION_BUSY');
    expect(error).toMatchObject({ retryable: true, details: { sessionId: 'job-1' } });
    gate.resolve('ok');
    await sent;
    expect(slow.runs).toHaveLength(1);
    expect(await agent.resume('job-1')).toBeNull();
  });

  it('need no waiting when the run before them has ended by an error', async () => {
    const work = failingOnceTool('work');
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.']),
      tools: [work.tool],
    });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    expect((await agent.resume('job-1'))?.text).toBe('Done.');
  });
});

onEveryStore('a run that another process executes', (world) => {
  it('refuses every way in before a tool or a model, and takes them when it has ended', async () => {
    const { gate, sent, slow } = await givenRunInTool(world);
    const before = await world.stored('job-1');
    const model = mockModel(['Other.']);
    const other = world.otherProcess().agent({ provider: model, tools: [slow.tool] });
    const ways = [
      () => other.send('go', { sessionId: 'job-1' }),
      () => other.send([], { sessionId: 'job-1' }),
      () => other.stream('go', { sessionId: 'job-1' }).result,
      () => other.resume('job-1'),
    ];
    for (const way of ways) {
      const error = await refusal(way(), 'LOUSHO_SESSION_BUSY');
      expect(error).toMatchObject({ retryable: true, details: { sessionId: 'job-1' } });
    }
    const refused = other.stream('go', { sessionId: 'job-1' });
    const read = async () => {
      for await (const event of refused) void event;
    };
    await refusal(read(), 'LOUSHO_SESSION_BUSY');
    expect([model.calls.length, slow.runs.length]).toEqual([0, 1]);
    expect(await world.stored('job-1')).toEqual(before);
    gate.resolve('ok');
    await sent;
    expect((await other.send('and you?', { sessionId: 'job-1' })).text).toBe('Other.');
  });

  it('gives its lease back when it finishes, pauses, fails or is aborted', async () => {
    const free = async (id: string) => (await world.checkpoints.acquireLease(id, 'next', 1_000)) !== false;
    const email = emailTool();
    const tools = [email.tool];
    await world.agent({ provider: mockModel(['Done.']) }).send('go', { sessionId: 'finished' });
    await world
      .agent({ provider: mockModel([{ toolCalls: [{ name: 'email', args: { to: 'a' } }] }]), tools })
      .send('go', { sessionId: 'paused' });
    await rejection(
      world
        .agent({ provider: mockModel([new Error('no')]), retry: { maxRetries: 0 } })
        .send('go', { sessionId: 'failed' }),
    );
    const stop = new AbortController();
    await world
      .agent({ provider: mockModel([() => (stop.abort(), 'dropped')]) })
      .send('go', { sessionId: 'aborted', signal: stop.signal });
    for (const id of ['finished', 'paused', 'failed', 'aborted'])
      expect([id, await free(id)]).toEqual([id, true]);
  });

  it('holds its lease for as long as it executes, however long that is', async () => {
    const { gate, sent } = await givenRunInTool(world);
    for (let minute = 0; minute < 10; minute += 1) {
      await world.clock.advance(60_000);
      expect(await world.checkpoints.acquireLease('job-1', 'thief', 30_000)).toBe(false);
    }
    gate.resolve('ok');
    expect((await letPass(world.clock, sent)).text).toBe('Done.');
  });

  it('is free when its process died and its lease has run out, and not before', async () => {
    const dying = world.otherProcess(manualClock());
    const gate = deferred<string>();
    const slow = spyTool('slow', (_args, _ctx, run) => (run === 1 ? gate.promise : 'ok'));
    const lost = dying.agent({
      provider: mockModel([{ toolCalls: [{ name: 'slow' }] }]),
      tools: [slow.tool],
    });
    void lost.send('go', { sessionId: 'job-1' }).catch(() => undefined);
    await until(() => slow.runs.length === 1);
    const agent = world.agent({ provider: mockModel(['Done.']), tools: [slow.tool] });
    await refusal(agent.resume('job-1'), 'LOUSHO_SESSION_BUSY');
    await world.clock.advance(29_000);
    await refusal(agent.resume('job-1'), 'LOUSHO_SESSION_BUSY');
    // A store whose holders have clocks of their own waits one more period.
    await world.clock.advance(31_001);
    expect((await agent.resume('job-1'))?.text).toBe('Done.');
    expect(slow.runs).toHaveLength(2);
  });

  it('that lost its lease stops at its next save and leaves the new holder alone', async () => {
    const dying = world.otherProcess(manualClock());
    const gate = deferred<string>();
    const slow = spyTool('slow', (_args, _ctx, run) => (run === 1 ? gate.promise : 'fresh'));
    const model = mockModel([{ toolCalls: [{ name: 'slow' }] }, 'never asked']);
    const stalled = dying.agent({ provider: model, tools: [slow.tool] });
    const sent = rejection(stalled.send('go', { sessionId: 'job-1' }));
    await until(() => slow.runs.length === 1);
    await world.clock.advance(60_001);
    await world.agent({ provider: mockModel(['Done.']), tools: [slow.tool] }).resume('job-1');
    const after = await world.stored('job-1');
    gate.resolve('stale');
    expect(await sent).toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    expect(await world.stored('job-1')).toEqual(after);
    expect(results(after?.messages ?? []).map(({ result }) => result)).toEqual(['fresh']);
    expect(model.calls).toHaveLength(1);
  });

  it('stops when its checkpoint is deleted', async () => {
    const { gate, sent, model } = await givenRunInTool(world);
    await world.checkpoints.delete('job-1');
    gate.resolve('ok');
    await refusal(sent, 'LOUSHO_SESSION_BUSY');
    expect(await world.stored('job-1')).toBeNull();
    expect(model.calls).toHaveLength(1);
  });

  it('keeps its approval pending when a decision is refused as busy', async () => {
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'Done.']);
    const agent = world.agent({ provider: model, tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    await world.checkpoints.acquireLease('job-1', 'somebody else', 30_000);
    const deciding = agent.approvals.resolve({ id, approved: true });
    const error = await refusal(letPass(world.clock, deciding), 'LOUSHO_SESSION_BUSY');
    expect(error.details).toMatchObject({ sessionId: 'job-1' });
    expect(charge.runs).toHaveLength(0);
    expect(await agent.approvals.list()).toMatchObject([{ id }]);
    await world.checkpoints.releaseLease('job-1', 'somebody else');
    expect((await agent.approvals.resolve({ id, approved: true })).text).toBe('Done.');
  });

  it('runs an approved call once when two processes decide at one moment', async () => {
    const charge = gatedTool('charge');
    const script = [{ toolCalls: [{ name: 'charge' }] }, 'Done.'];
    const agent = world.agent({ provider: mockModel(script), tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    const other = world.otherProcess().agent({ provider: mockModel(['Done.']), tools: [charge.tool] });
    const decisions = [agent, other].map(({ approvals }) => approvals.resolve({ id, approved: true }));
    const outcomes = await letPass(world.clock, Promise.allSettled(decisions));
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const refused = outcomes.find((outcome) => outcome.status === 'rejected');
    expect(['LOUSHO_APPROVAL_DECIDED', 'LOUSHO_SESSION_BUSY']).toContain(
      (refused?.reason as { code: string }).code,
    );
    expect(charge.runs).toHaveLength(1);
  });
});

onEveryStore('the lease of a run', (world) => {
  it('is taken before the record is read', async () => {
    const calls: unknown[] = [];
    const checkpoints = watched(world.checkpoints, (method) => calls.push(method));
    await world
      .agent({ store: storeOf(checkpoints), provider: mockModel(['Hello.']) })
      .send('hi', { sessionId: 'a' });
    expect(calls).toEqual(['acquireLease', 'load', 'saveIfLeased', 'releaseLease']);
  });

  it('is of 30 seconds and renewed every 10, when nothing else is said', async () => {
    const asked: unknown[] = [];
    const checkpoints = checkpointsWith(world.checkpoints, {
      acquireLease: (id, owner, ttlMs) => (
        asked.push(ttlMs),
        world.checkpoints.acquireLease(id, owner, ttlMs)
      ),
      renewLease: (...args) => (asked.push(world.clock.monotonicMs()), world.checkpoints.renewLease(...args)),
    });
    const gate = deferred();
    const slow = spyTool('slow', () => gate.promise);
    const model = mockModel([{ toolCalls: [{ name: 'slow' }] }, 'Done.']);
    const startMs = world.clock.monotonicMs();
    const sent = world
      .agent({ store: storeOf(checkpoints), provider: model, tools: [slow.tool] })
      .send('go', { sessionId: 'a' });
    await until(() => slow.runs.length === 1);
    await world.clock.advance(35_000);
    expect(asked).toEqual([30_000, startMs + 10_000, startMs + 20_000, startMs + 30_000]);
    gate.resolve();
    await sent;
    await world.clock.advance(35_000);
    expect(asked).toHaveLength(4);
  });

  it('is not taken with lease: false', async () => {
    const calls: unknown[] = [];
    const checkpoints = watched(world.checkpoints, (method) => calls.push(method));
    const agent = world.agent({ store: storeOf(checkpoints), provider: mockModel(['Hello.']), lease: false });
    await agent.send('hi', { sessionId: 'a' });
    expect(calls).toEqual(['load', 'save']);
  });

  it('is held by a streamed run and by a decision, too', async () => {
    const seen: unknown[] = [];
    const takeable = async () => {
      seen.push(await world.checkpoints.acquireLease('job-1', 'thief', 1_000));
    };
    const free = spyTool('free', takeable);
    const gated = gatedTool('gated', takeable);
    const model = mockModel([{ toolCalls: [{ name: 'free' }] }, { toolCalls: [{ name: 'gated' }] }, 'Done.']);
    const agent = world.agent({ provider: model, tools: [free.tool, gated.tool] });
    const run = agent.stream('go', { sessionId: 'job-1' });
    await eventsOf(run);
    await agent.approvals.resolve({ id: (await run.result).approvalId ?? '', approved: true });
    expect(seen).toEqual([false, false]);
  });
});
