/** The process goes away: nothing new starts, what runs is recorded, the rest stays open for whoever resumes it. */
import { SDKError, type ApprovalStore, type Clock } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { createAgent, type Agent } from '../src/index.ts';
import { eventsOf, lines, refusal, results, thrown } from './support/read.ts';
import { watched, storeOf } from './support/stores.ts';
import { deferred, gatedTool, spyTool } from './support/tools.ts';
import { isOpen, later, letPass, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const bothCalls = {
  toolCalls: [
    { name: 'a', id: 'call_a' },
    { name: 'b', id: 'call_b' },
  ],
};

/** `job-1` executes its first call; the second waits for it. */
async function givenRunInFirstCall(world: World) {
  const gate = deferred<string>();
  const a = spyTool('a', () => gate.promise);
  const b = spyTool('b');
  const model = mockModel([bothCalls, 'Done.']);
  const agent = world.agent({ provider: model, tools: [a.tool, b.tool], toolConcurrency: 1 });
  const sent = later(agent.send('go', { sessionId: 'job-1' }));
  await until(() => a.runs.length === 1);
  return { gate, a, b, model, agent, sent };
}

async function isFree(world: World, id: string): Promise<boolean> {
  const lease = await world.checkpoints.acquireLease(id, 'next', 1_000);
  await world.checkpoints.releaseLease(id, 'next');
  return lease !== false;
}

onEveryStore('shutdown', (world) => {
  it('lets the running call finish and records it, leaves the next one open, and frees the lease', async () => {
    const { gate, a, b, model, agent, sent } = await givenRunInFirstCall(world);
    const down = agent.shutdown();
    expect(await isOpen(down)).toBe(true);
    gate.resolve('a done');
    await down;
    const error = await refusal(sent, 'LOUSHO_SHUTDOWN');
    expect(error).toMatchObject({ retryable: true, details: { sessionId: 'job-1' } });
    expect([a.runs.length, b.runs.length, model.calls.length]).toEqual([1, 0, 1]);
    const stored = await world.stored('job-1');
    expect(lines(stored?.messages ?? [])).toEqual([
      'user go',
      'assistant a#call_a b#call_b',
      'tool call_a "a done"',
    ]);
    expect(stored).not.toHaveProperty('lastError');
    expect(stored).not.toHaveProperty('attempts');
    expect(stored).not.toHaveProperty('startsWithoutProgress');
    expect(await isFree(world, 'job-1')).toBe(true);
  });

  it('lets another replica go on at once', async () => {
    const { gate, a, b, agent } = await givenRunInFirstCall(world);
    const down = agent.shutdown();
    gate.resolve('a done');
    await down;
    const model = mockModel(['Done.']);
    const replica = world.otherProcess().agent({ provider: model, tools: [a.tool, b.tool] });
    const [run] = await replica.pending();
    expect(run).toMatchObject({ sessionId: 'job-1', status: 'in-progress' });
    expect(run).not.toHaveProperty('aborted');
    const result = await replica.resume('job-1');
    expect(result?.text).toBe('Done.');
    expect([a.runs.length, b.runs.length]).toEqual([1, 1]);
    expect(results(result?.messages ?? []).map(({ kind }) => kind)).toEqual([undefined, undefined]);
  });

  it('waits for running calls no longer than its time-out, and leaves them open then', async () => {
    const { gate, a, agent, sent } = await givenRunInFirstCall(world);
    const down = agent.shutdown({ timeoutMs: 5_000 });
    await world.clock.advance(4_999);
    expect(await isOpen(down)).toBe(true);
    expect(a.runs[0]?.ctx.signal.aborted).toBe(false);
    await world.clock.advance(1);
    await down;
    await refusal(sent, 'LOUSHO_SHUTDOWN');
    expect(a.runs[0]?.ctx.signal.aborted).toBe(true);
    const before = await world.stored('job-1');
    expect(results(before?.messages ?? [])).toEqual([]);
    gate.resolve('too late');
    await world.clock.advance(60_000);
    expect(await world.stored('job-1')).toEqual(before);
    expect(await isFree(world, 'job-1')).toBe(true);
  });

  it('waits ten seconds when nothing is said', async () => {
    const { agent } = await givenRunInFirstCall(world);
    const down = agent.shutdown();
    await world.clock.advance(9_999);
    expect(await isOpen(down)).toBe(true);
    await world.clock.advance(1);
    await down;
  });

  it('records the answer of a model call that ends in time, and runs none of its calls', async () => {
    const answer = deferred();
    const a = spyTool('a');
    const model = mockModel([
      async () => (await answer.promise, { toolCalls: [{ name: 'a', id: 'call_a' }] }),
    ]);
    const agent = world.agent({ provider: model, tools: [a.tool] });
    const sent = later(agent.send('go', { sessionId: 'job-1' }));
    await until(() => model.calls.length === 1);
    const down = agent.shutdown();
    answer.resolve();
    await down;
    await refusal(sent, 'LOUSHO_SHUTDOWN');
    expect(lines((await world.stored('job-1'))?.messages ?? [])).toEqual(['user go', 'assistant a#call_a']);
    expect(a.runs).toHaveLength(0);
  });

  it('gives up a model call that takes longer, and stores nothing of it', async () => {
    const model = mockModel([{ text: 'late', delayMs: 60_000 }], { clock: world.clock });
    const agent = world.agent({ provider: model });
    const sent = later(agent.send('go', { sessionId: 'job-1' }));
    await until(() => model.calls.length === 1);
    const down = agent.shutdown({ timeoutMs: 1_000 });
    await world.clock.advance(1_000);
    await down;
    await refusal(sent, 'LOUSHO_SHUTDOWN');
    expect(await world.stored('job-1')).toBeNull();
  });

  it('starts nothing more: every way in is refused', async () => {
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'never asked']);
    const agent = world.agent({ provider: model, tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    await agent.shutdown();
    const code = 'LOUSHO_SHUTDOWN';
    await refusal(agent.send('hi'), code);
    await refusal(agent.send('hi', { sessionId: 'job-2' }), code);
    expect(thrown(() => agent.stream('hi')).code).toBe(code);
    await refusal(agent.resume('job-1'), code);
    await refusal(agent.approvals.resolve({ id, approved: true }), code);
    expect(thrown(() => agent.approvals.streamResolve({ id, approved: true })).code).toBe(code);
    expect(charge.runs).toHaveLength(0);
    // Looking is fine, and the store is the caller's to close.
    expect(await agent.pending()).toHaveLength(1);
    expect(await agent.approvals.list()).toMatchObject([{ id }]);
    expect((await world.agent({ provider: mockModel(['Hello.']) }).send('hi')).text).toBe('Hello.');
  });

  it('leaves calls that wait in line without effect', async () => {
    const { gate, model, agent, sent } = await givenRunInFirstCall(world);
    const waiting = later(agent.send('and then this', { sessionId: 'job-1' }));
    const down = agent.shutdown();
    gate.resolve('a done');
    await down;
    await refusal(sent, 'LOUSHO_SHUTDOWN');
    await refusal(waiting, 'LOUSHO_SHUTDOWN');
    const stored = await world.stored('job-1');
    expect(lines(stored?.messages ?? [])).not.toContain('user and then this');
    expect(stored?.heldInput).toEqual([]);
    expect(stored).not.toHaveProperty('startsWithoutProgress');
    expect(model.calls).toHaveLength(1);
  });

  it.each(['load', 'acquireLease'] as const)(
    'leaves a decision as it was when it comes while that is still at %s',
    async (method) => {
      const charge = gatedTool('charge');
      const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'never asked']);
      const { approvalId: id = '' } = await world
        .agent({ provider: model, tools: [charge.tool] })
        .send('go', { sessionId: 'job-1' });
      const before = await world.stored('job-1');
      let down: Promise<void> | undefined;
      const checkpoints = watched(world.checkpoints, (called) => {
        if (called === method) down ??= agent.shutdown();
      });
      const store = storeOf(checkpoints, { approvals: world.store.approvals });
      const agent = world.agent({ store, provider: model, tools: [charge.tool] });
      await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_SHUTDOWN');
      await down;
      expect(await world.stored('job-1')).toEqual(before);
      expect(await world.agent({ provider: model }).approvals.list()).toMatchObject([{ id }]);
      expect(charge.runs).toHaveLength(0);
    },
  );

  it('leaves a run as it was when it comes while that is being opened', async () => {
    const { agent: broken, gate } = await givenRunInFirstCall(world);
    gate.resolve('a done');
    await broken.shutdown();
    const before = await world.stored('job-1');
    let down: Promise<void> | undefined;
    const checkpoints = watched(world.checkpoints, (method) => {
      if (method === 'load') down = agent.shutdown();
    });
    const agent = world.agent({
      store: storeOf(checkpoints),
      provider: mockModel([]),
      tools: [spyTool('a').tool, spyTool('b').tool],
    });
    await refusal(agent.send('and hurry', { sessionId: 'job-1' }), 'LOUSHO_SHUTDOWN');
    await down;
    expect(await world.stored('job-1')).toEqual(before);
  });

  it('resolves only when the store is at rest, whatever was under way', async () => {
    const calls: string[] = [];
    const store = storeOf(
      watched(world.checkpoints, (method) => calls.push(String(method))),
      { approvals: world.store.approvals },
    );
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'Hello.', 'Hello.']);
    const agent = world.agent({ store, provider: model, tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    const ends = Promise.allSettled([
      agent.send('hi', { sessionId: 'job-2' }),
      agent.stream('hi', { sessionId: 'job-3' }).result,
      agent.resume('job-4'),
      agent.approvals.resolve({ id, approved: true }),
    ]);
    await agent.shutdown();
    const count = calls.length;
    await ends;
    expect(await isOpen(new Promise(() => undefined))).toBe(true);
    expect(calls).toHaveLength(count);
  });

  it('waits until input that was taken is stored, also when the store takes it at the second try only', async () => {
    const gate = deferred<string>();
    const a = spyTool('a', () => gate.promise);
    const calls: string[] = [];
    let isBroken = false;
    const checkpoints = watched(world.checkpoints, (method) => {
      calls.push(String(method));
      if (method !== 'saveIfLeased' || !isBroken) return;
      isBroken = false;
      throw new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation: method });
    });
    const agent = world.agent({
      store: storeOf(checkpoints),
      provider: mockModel([{ toolCalls: [{ name: 'a' }] }]),
      tools: [a.tool],
    });
    const run = agent.stream('go', { sessionId: 'job-1' });
    const ended = later(run.result);
    await until(() => a.runs.length === 1);
    isBroken = true;
    const { joined } = run.enqueue('And hurry.');
    const down = agent.shutdown({ timeoutMs: 0 });
    expect(await isOpen(down)).toBe(true);
    await letPass(world.clock, down);
    await refusal(ended, 'LOUSHO_SHUTDOWN');
    expect(await joined).toBe(true);
    expect(calls.slice(-3)).toEqual(['saveIfLeased', 'saveIfLeased', 'releaseLease']);
    expect(lines((await world.stored('job-1'))?.heldInput ?? [])).toEqual(['user And hurry.']);
  });

  it('waits for a decision that is being looked up, and leaves it undone', async () => {
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'never asked']);
    const { approvalId: id = '' } = await world
      .agent({ provider: model, tools: [charge.tool] })
      .send('go', { sessionId: 'job-1' });
    for (const decide of [
      (agent: Agent) => agent.approvals.resolve({ id, approved: true }),
      (agent: Agent) => agent.approvals.streamResolve({ id, approved: true }).result,
    ]) {
      const found = deferred();
      const approvals = Object.assign(Object.create(world.store.approvals) as ApprovalStore, {
        load: async (asked: string) => (await found.promise, world.store.approvals.load(asked)),
      });
      const store = storeOf(world.checkpoints, { approvals });
      const agent = world.agent({ store, provider: model, tools: [charge.tool] });
      const deciding = later(decide(agent));
      const down = agent.shutdown();
      expect(await isOpen(down)).toBe(true);
      found.resolve();
      await down;
      await refusal(deciding, 'LOUSHO_SHUTDOWN');
      expect(await world.stored('job-1')).toMatchObject({ status: 'awaiting-approval' });
    }
    expect(charge.runs).toHaveLength(0);
  });

  it('ends a moment after its time-out even when code of the application hangs', async () => {
    const hooked = deferred();
    const beforeModel = () => (hooked.resolve(), new Promise<void>(() => undefined));
    const agent = world.agent({ provider: mockModel([]), hooks: { beforeModel } });
    void later(agent.send('go', { sessionId: 'job-1' }));
    await hooked.promise;
    const down = agent.shutdown({ timeoutMs: 5_000 });
    await world.clock.advance(5_000);
    expect(await isOpen(down)).toBe(true);
    await world.clock.advance(1_000);
    await down;
  });

  it('gives the calls of streams the same end', async () => {
    const gate = deferred<string>();
    const a = spyTool('a', () => gate.promise);
    const agent = world.agent({ provider: mockModel([{ toolCalls: [{ name: 'a' }] }]), tools: [a.tool] });
    const run = agent.stream('go', { sessionId: 'job-1' });
    const reading = eventsOf(run);
    await until(() => a.runs.length === 1);
    const down = agent.shutdown();
    gate.resolve('a done');
    await down;
    await refusal(run.result, 'LOUSHO_SHUTDOWN');
    expect((await reading).at(-1)).toMatchObject({ type: 'run.done', finishReason: 'error' });
  });

  it('leaves no timer behind that would hold the process', async () => {
    let open = 0;
    const clock: Clock = {
      wallMs: () => world.clock.wallMs(),
      monotonicMs: () => world.clock.monotonicMs(),
      setTimer(callback, delayMs) {
        let isDone = false;
        const end = () => {
          if (!isDone) open -= 1;
          isDone = true;
        };
        open += 1;
        const cancel = world.clock.setTimer(() => (end(), callback()), delayMs);
        return () => (end(), cancel());
      },
    };
    const gates = [deferred<string>(), deferred<string>()];
    const a = spyTool('a', (_args, _ctx, run) => gates[run - 1]?.promise);
    const provider = mockModel([{ toolCalls: [{ name: 'a' }] }, 'Done.', { toolCalls: [{ name: 'a' }] }]);
    const store = world.store;
    const agent = createAgent({ store, provider, tools: [a.tool], ports: { ...world.ports, clock } });
    const first = agent.send('go', { sessionId: 'job-1' });
    await until(() => a.runs.length === 1);
    expect(open).toBeGreaterThan(0);
    gates[0]?.resolve('a done');
    await first;
    expect(open).toBe(0);
    const sent = later(agent.send('again', { sessionId: 'job-1' }));
    await until(() => a.runs.length === 2);
    const down = agent.shutdown();
    gates[1]?.resolve('a done');
    await down;
    await refusal(sent, 'LOUSHO_SHUTDOWN');
    expect(open).toBe(0);
  });

  it('may be asked for twice, and of an agent that does nothing', async () => {
    const { gate, agent, sent } = await givenRunInFirstCall(world);
    const first = agent.shutdown({ timeoutMs: 60_000 });
    const second = agent.shutdown({ timeoutMs: 1_000 });
    await letPass(world.clock, Promise.all([first, second]));
    await refusal(sent, 'LOUSHO_SHUTDOWN');
    gate.resolve('late');
    await agent.shutdown();
    const idle: Agent = world.agent({ provider: mockModel([]) });
    await idle.shutdown();
  });

  it('tells a run that a person had stopped apart: its calls are cancelled', async () => {
    const { gate, agent, sent } = await givenRunInFirstCall(world);
    const stop = new AbortController();
    const other = spyTool('other', () => gate.promise);
    const second = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'other' }] }]),
      tools: [other.tool],
    });
    const aborted = second.send('go', { sessionId: 'job-2', signal: stop.signal });
    await until(() => other.runs.length === 1);
    stop.abort();
    const down = Promise.all([second.shutdown(), agent.shutdown()]);
    gate.resolve('done');
    await letPass(world.clock, down);
    expect((await aborted).finishReason).toBe('aborted');
    await refusal(sent, 'LOUSHO_SHUTDOWN');
  });
});
