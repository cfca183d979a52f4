/** `agent.recover()`: what nobody executes any more is finished, once, by whichever replica gets to it. */
import { LLMProviderError } from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel, testPorts } from '@lousho/testing';
import { expect, it } from 'vitest';
import { createAgent } from '../src/index.ts';
import { lines, rejection } from './support/read.ts';
import { failingTool, givenInterrupted, watchedRecovery } from './support/recovery.ts';
import { checkpointsWith, storeOf, watched } from './support/stores.ts';
import { deferred, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { isOpen, later, letPass, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const done = (count: number) => mockModel(Array.from({ length: count }, () => 'Done.'));
const ids = (count: number) => Array.from({ length: count }, (_, index) => `job-${index + 1}`);
const INTERVAL_MS = 30_000;

/** `job-1` executes `tool` in a process that never says another word. */
async function givenDeathIn(world: World, tool: ReturnType<typeof spyTool>) {
  const dead = world.otherProcess(manualClock());
  const agent = dead.agent({ provider: mockModel([{ toolCalls: [{ name: 'work' }] }]), tools: [tool.tool] });
  void later(agent.send('go', { sessionId: 'job-1' }));
  await until(() => tool.runs.length === 1);
}

onEveryStore('recovery', (world) => {
  it('finishes an interrupted run at once, without running a recorded call again, and ends when it is stopped', async () => {
    const charge = spyTool('charge');
    const ship = failingOnceTool('ship');
    const model = mockModel([
      { toolCalls: [{ name: 'charge' }] },
      { toolCalls: [{ name: 'ship' }] },
      'Order charged and shipped.',
    ]);
    const agent = world.agent({ provider: model, tools: [charge.tool, ship.tool] });
    await rejection(agent.send('Charge and ship order 7', { sessionId: 'order-7' }));
    expect(await agent.pending()).toMatchObject([
      { status: 'in-progress', attempts: 1, lastError: { retryable: true } },
    ]);
    const recovery = watchedRecovery(agent, { onRecovered: () => void recovery.stop() });
    expect(recovery.recovered).toEqual([]);
    await recovery.done;
    expect(recovery.recovered).toEqual(['order-7: Order charged and shipped.']);
    expect(recovery.errors).toEqual([]);
    expect([charge.runs.length, ship.runs.length]).toEqual([1, 2]);
    expect(await agent.pending()).toEqual([]);
  });

  it('looks again after each interval, and can be stopped from inside a callback', async () => {
    const work = failingTool(1);
    const agent = world.agent({ provider: done(1), tools: [work.tool] });
    const recovery = watchedRecovery(agent, { intervalMs: 1_000, onRecovered: () => recovery.stop() });
    await world.clock.advance(999);
    await givenInterrupted(world, ['job-1'], work);
    expect(recovery.recovered).toEqual([]);
    await world.clock.advance(1);
    await until(() => recovery.recovered.length === 1);
    await recovery.done;
    await givenInterrupted(world, ['job-2'], failingTool(1));
    await world.clock.advance(60_000);
    expect(recovery.recovered).toEqual(['job-1: Done.']);
  });

  it('looks once when it is told to, finishes all that it found, and ends', async () => {
    const work = failingTool(6);
    await givenInterrupted(world, ids(6), work);
    const agent = world.agent({ provider: done(6), tools: [work.tool] });
    const recovery = watchedRecovery(agent, { once: true, concurrency: 2 });
    await recovery.done;
    expect([recovery.recovered.length, recovery.errors]).toEqual([6, []]);
    await givenInterrupted(world, ['job-7'], failingTool(1));
    await world.clock.advance(10 * INTERVAL_MS);
    expect((await agent.pending()).map(({ sessionId }) => sessionId)).toEqual(['job-7']);
  });

  it('ends a single look that finds nothing', async () => {
    await watchedRecovery(world.agent({ provider: done(0) }), { once: true }).done;
  });

  it("leaves alone what waits for a person, was stopped by one, would fail the same way, or is another agent's", async () => {
    const charge = gatedTool('charge');
    const stop = new AbortController();
    const refused = new LLMProviderError('too long', { kind: 'api', status: 400, retryable: false });
    const call = (name: string) => ({ toolCalls: [{ name }] });
    const model = mockModel([call('charge'), call('stop'), call('work'), refused, call('fail')]);
    const tools = [
      charge.tool,
      spyTool('work').tool,
      failingOnceTool('fail').tool,
      spyTool('stop', () => stop.abort()).tool,
    ];
    const agent = world.agent({ provider: model, tools });
    await agent.send('pay', { sessionId: 'paused' });
    await agent.send('go', { sessionId: 'stopped', signal: stop.signal });
    await rejection(agent.send('go', { sessionId: 'refused' }));
    await rejection(
      world.agent({ name: 'other', provider: model, tools }).send('go', { sessionId: 'others' }),
    );
    const before = await agent.pending();
    expect(before).toHaveLength(4);
    const recovery = watchedRecovery(agent);
    for (let sweep = 1; sweep <= 3; sweep += 1) await world.clock.advance(INTERVAL_MS);
    expect(await agent.pending()).toEqual(before);
    expect([recovery.recovered, recovery.errors]).toEqual([[], []]);
    await recovery.stop();
  });

  it('asks the store nothing about a run that this process executes', async () => {
    const gate = deferred();
    const slow = spyTool('work', () => gate.promise);
    const calls: string[] = [];
    const store = storeOf(
      watched(world.checkpoints, (method, [id]) => calls.push(`${String(method)} ${String(id)}`)),
    );
    const events: string[] = [];
    const onEvent = ({ type }: { type: string }) => void events.push(type);
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.']);
    const agent = world.agent({ provider: model, tools: [slow.tool], store, onEvent });
    const sent = agent.send('go', { sessionId: 'job-1' });
    await until(() => slow.runs.length === 1);
    calls.length = events.length = 0;
    const recovery = watchedRecovery(agent, { intervalMs: 1_000 });
    await world.clock.advance(5_000);
    expect(calls.filter((call) => call.endsWith('job-1'))).toEqual([]);
    expect(events).toEqual([]);
    await recovery.stop();
    gate.resolve();
    await sent;
    expect([slow.runs.length, recovery.errors]).toEqual([1, []]);
  });

  it('passes over in silence what another process executes, and finishes it within an interval of its lease', async () => {
    const work = spyTool('work', (_args, _ctx, run) => (run === 1 ? new Promise(() => undefined) : 'done'));
    await givenDeathIn(world, work);
    const events: string[] = [];
    const agent = world.agent({
      provider: done(1),
      tools: [work.tool],
      onEvent: ({ type }) => void events.push(type),
    });
    const recovery = watchedRecovery(agent);
    await world.clock.advance(20_000);
    expect([recovery.recovered, recovery.errors, events]).toEqual([[], [], []]);
    // The lease period, the period for clocks that disagree, the interval.
    await world.clock.advance(70_000);
    await until(() => recovery.recovered.length === 1);
    expect([recovery.recovered, recovery.errors]).toEqual([['job-1: Done.'], []]);
    expect(work.runs.map(({ ctx }) => ctx.rerun)).toEqual([false, true]);
    expect(work.runs[0]?.ctx.idempotencyKey).toBe(work.runs[1]?.ctx.idempotencyKey);
    await recovery.stop();
  });

  it('is for every replica: three finish twelve runs, each of them once', async () => {
    const work = failingTool(12);
    await givenInterrupted(world, ids(12), work);
    const replicas = [1, 2, 3].map(() =>
      watchedRecovery(world.otherProcess().agent({ provider: done(12), tools: [work.tool] })),
    );
    const recovered = () => replicas.flatMap((replica) => replica.recovered);
    await until(() => recovered().length === 12);
    for (const replica of replicas) await replica.stop();
    expect([...recovered()].sort()).toEqual(
      ids(12)
        .map((id) => `${id}: Done.`)
        .sort(),
    );
    expect(replicas.flatMap(({ errors }) => errors)).toEqual([]);
    expect(work.runs).toHaveLength(24);
  });

  it('resumes a run once, however many loops look for it in one process', async () => {
    const work = failingTool(1);
    await givenInterrupted(world, ['job-1'], work);
    const model = done(1);
    const agent = world.agent({ provider: model, tools: [work.tool] });
    const loops = [watchedRecovery(agent), watchedRecovery(agent), watchedRecovery(agent)];
    await until(() => loops.some(({ recovered }) => recovered.length > 0));
    await Promise.all(loops.map((loop) => loop.stop()));
    expect(loops.flatMap(({ recovered, errors }) => [...recovered, ...errors])).toEqual(['job-1: Done.']);
    expect([work.runs.length, model.calls.length]).toEqual([2, 1]);
  });

  it('works on four runs at a time, and begins with the next as soon as one has ended', async () => {
    const gates = ids(6).map(() => deferred());
    const failing = failingTool(6);
    await givenInterrupted(world, ids(6), failing);
    const slow = spyTool('work', (_args, _ctx, run) => gates[run - 1]?.promise);
    const recovery = watchedRecovery(world.agent({ provider: done(6), tools: [slow.tool] }));
    await until(() => slow.runs.length === 4);
    await world.clock.advance(3 * INTERVAL_MS);
    expect(slow.runs).toHaveLength(4);
    gates[2]?.resolve();
    await until(() => recovery.recovered.length === 1 && slow.runs.length === 5);
    for (const gate of gates) gate.resolve();
    await until(() => recovery.recovered.length === 6);
    expect(recovery.errors).toEqual([]);
    await recovery.stop();
  });

  it('does not wait with the next look for a run that takes long', async () => {
    const gate = deferred();
    await givenInterrupted(world, ['long'], failingTool(1));
    const work = spyTool('work', () => gate.promise);
    const quick = spyTool('quick');
    const recovery = watchedRecovery(
      world.agent({ provider: done(2), tools: [work.tool, quick.tool], onAgentDrift: 'ignore' }),
    );
    await until(() => work.runs.length === 1);
    await givenInterrupted(world, ['short'], failingTool(1, 'quick'));
    await world.clock.advance(INTERVAL_MS);
    await until(() => recovery.recovered.length === 1);
    expect(recovery.recovered).toEqual(['short: Done.']);
    gate.resolve();
    await until(() => recovery.recovered.length === 2);
    expect([work.runs.length, recovery.errors]).toEqual([1, []]);
    await recovery.stop();
  });

  it("lets the agent's own approve decide what it meets on the way", async () => {
    const work = failingTool(1);
    await givenInterrupted(world, ['job-1'], work);
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'Paid.']);
    const agent = world.agent({
      provider: model,
      tools: [work.tool, charge.tool],
      onAgentDrift: 'ignore',
      approve: () => ({ approved: true }),
    });
    const recovery = watchedRecovery(agent);
    await until(() => recovery.recovered.length === 1);
    expect([recovery.recovered, charge.runs.length]).toEqual([['job-1: Paid.'], 1]);
    await recovery.stop();
  });

  it('says nothing of a run that pauses on the way: it is in the inbox', async () => {
    const work = failingTool(1);
    await givenInterrupted(world, ['job-1'], work);
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }]);
    const agent = world.agent({ provider: model, tools: [work.tool, charge.tool], onAgentDrift: 'ignore' });
    const recovery = watchedRecovery(agent);
    await until(async () => (await agent.approvals.list()).length === 1);
    await world.clock.advance(2 * INTERVAL_MS);
    expect([recovery.recovered, recovery.errors, charge.runs.length]).toEqual([[], [], 0]);
    await recovery.stop();
  });
});

onEveryStore('expired approvals', (world) => {
  it('are denied by the next look, and the run goes on without anybody', async () => {
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'Not paid.']);
    const agent = world.agent({ provider: model, tools: [charge.tool], approvalTtlMs: 45_000 });
    const { approvalId } = await agent.send('pay', { sessionId: 'job-1' });
    const recovery = watchedRecovery(agent);
    await world.clock.advance(44_999);
    expect(await agent.approvals.list()).toHaveLength(1);
    await world.clock.advance(INTERVAL_MS);
    await until(() => recovery.recovered.length === 1);
    expect(recovery.recovered).toEqual(['job-1: Not paid.']);
    expect(charge.runs).toHaveLength(0);
    expect(lines((await world.stored('job-1'))?.messages ?? [])).toEqual([
      'user pay',
      'assistant charge#call_1',
      'tool call_1 denied',
      'assistant Not paid.',
    ]);
    expect(await world.store.approvals.load(approvalId ?? '')).toBeNull();
    await recovery.stop();
  });

  it('do not decide for those beside them that still wait', async () => {
    const short = gatedTool('short');
    const long = gatedTool('long');
    const model = mockModel([{ toolCalls: [{ name: 'short' }, { name: 'long' }] }, 'One of two.']);
    const agent = world.agent({ provider: model, tools: [short.tool, long.tool], approvalTtlMs: 45_000 });
    await agent.send('go', { sessionId: 'job-1' });
    const stored = await world.stored('job-1');
    if (stored?.status !== 'awaiting-approval') throw new Error('It waits.');
    const [first, second] = stored.approvals;
    if (first === undefined || second === undefined) throw new Error('Two wait.');
    const { expiresAt: _expiresAt, ...forEver } = second;
    await world.checkpoints.save('job-1', { ...stored, approvals: [first, forEver] });
    const recovery = watchedRecovery(agent);
    await world.clock.advance(2 * INTERVAL_MS);
    await until(async () => (await agent.approvals.list()).length === 1);
    expect([recovery.recovered, recovery.errors]).toEqual([[], []]);
    const result = await agent.approvals.resolve({ id: second.id, approved: true });
    expect([result.text, short.runs.length, long.runs.length]).toEqual(['One of two.', 0, 1]);
    await recovery.stop();
  });

  it('are decided once when every replica looks', async () => {
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }]);
    const options = { tools: [charge.tool], approvalTtlMs: 1_000 };
    await world.agent({ provider: model, ...options }).send('pay', { sessionId: 'job-1' });
    await world.clock.advance(1_000);
    const models = [done(1), done(1), done(1)];
    const replicas = models.map((provider) =>
      watchedRecovery(world.otherProcess().agent({ provider, ...options })),
    );
    await until(() => replicas.some(({ recovered }) => recovered.length > 0));
    for (const replica of replicas) await replica.stop();
    expect(replicas.flatMap(({ recovered, errors }) => [...recovered, ...errors])).toEqual(['job-1: Done.']);
    expect(models.flatMap(({ calls }) => calls)).toHaveLength(1);
  });
});

onEveryStore('a recovery that is stopped', (world) => {
  async function givenRunInTool() {
    await givenInterrupted(world, ['job-1'], failingTool(1));
    const gate = deferred<string>();
    const slow = spyTool('work', () => gate.promise);
    const model = done(1);
    const agent = world.agent({ provider: model, tools: [slow.tool] });
    const recovery = watchedRecovery(agent);
    await until(() => slow.runs.length === 1);
    return { gate, slow, model, agent, recovery };
  }

  async function finishedByAnother(): Promise<string | undefined> {
    const work = spyTool('work');
    const result = await world
      .otherProcess()
      .agent({ provider: done(1), tools: [work.tool] })
      .resume('job-1');
    return `${result?.text} ${work.runs.length}`;
  }

  it('waits for the running call and records it, starts nothing more, and another process goes on at once', async () => {
    const { gate, model, recovery } = await givenRunInTool();
    const stopped = recovery.stop();
    expect(await isOpen(stopped)).toBe(true);
    gate.resolve('shipped');
    await stopped;
    await recovery.done;
    expect([recovery.recovered, recovery.errors, model.calls.length]).toEqual([[], [], 0]);
    expect(lines((await world.stored('job-1'))?.messages ?? [])).toEqual([
      'user go',
      'assistant work#call_1',
      'tool call_1 "shipped"',
    ]);
    expect(await finishedByAnother()).toBe('Done. 0');
  });

  it('waits ten seconds, or what it is given; then the call stays open, and nothing counts as a start', async () => {
    const { slow, recovery } = await givenRunInTool();
    expect(await world.stored('job-1')).toMatchObject({ startsWithoutProgress: 1, attempts: 1 });
    const stopped = recovery.stop();
    await world.clock.advance(9_999);
    expect(await isOpen(stopped)).toBe(true);
    expect(slow.runs[0]?.ctx.signal.aborted).toBe(false);
    await world.clock.advance(1);
    await stopped;
    await recovery.done;
    const stored = await world.stored('job-1');
    expect(stored).toMatchObject({ status: 'in-progress', attempts: 1 });
    expect(stored).not.toHaveProperty('startsWithoutProgress');
    expect(stored).not.toHaveProperty('finishReason');
    expect(lines(stored?.messages ?? [])).toEqual(['user go', 'assistant work#call_1']);
    expect(await finishedByAnother()).toBe('Done. 1');
  });

  it('leaves what it was given no time for, and says so once to whoever stops it twice', async () => {
    const { recovery } = await givenRunInTool();
    const first = recovery.stop({ timeoutMs: 0 });
    const second = recovery.stop();
    await world.clock.advance(0);
    await Promise.all([first, second, recovery.done]);
    expect(await finishedByAnother()).toBe('Done. 1');
  });

  it('by its signal does the same, and with a signal that was aborted before never looks', async () => {
    const stop = new AbortController();
    await givenInterrupted(world, ['job-1'], failingTool(1));
    const gate = deferred();
    const slow = spyTool('work', () => gate.promise);
    const calls: string[] = [];
    const store = storeOf(watched(world.checkpoints, (method) => calls.push(String(method))));
    const agent = world.agent({ provider: done(1), tools: [slow.tool], store });
    const recovery = watchedRecovery(agent, { signal: stop.signal });
    await until(() => slow.runs.length === 1);
    stop.abort();
    gate.resolve();
    await recovery.done;
    expect([recovery.recovered, recovery.errors]).toEqual([[], []]);
    calls.length = 0;
    await watchedRecovery(agent, { signal: stop.signal }).done;
    expect(calls).toEqual([]);
  });

  it('goes with the shutdown of its agent, after which there is no other', async () => {
    const { gate, agent, recovery } = await givenRunInTool();
    const down = agent.shutdown();
    gate.resolve('shipped');
    await down;
    await recovery.done;
    expect([recovery.recovered, recovery.errors]).toEqual([[], []]);
    expect(() => agent.recover()).toThrow(expect.objectContaining({ code: 'LOUSHO_SHUTDOWN' }));
    expect(await finishedByAnother()).toBe('Done. 0');
  });

  it('while it lists starts nothing of what it finds', async () => {
    await givenInterrupted(world, ['job-1'], failingTool(1));
    const gate = deferred();
    const listed = deferred();
    const checkpoints = checkpointsWith(world.checkpoints, {
      async listHeaders(options) {
        listed.resolve();
        await gate.promise;
        return world.checkpoints.listHeaders(options);
      },
    });
    const work = spyTool('work');
    const agent = world.agent({ provider: done(1), tools: [work.tool], store: storeOf(checkpoints) });
    const recovery = watchedRecovery(agent);
    await listed.promise;
    const stopped = recovery.stop();
    gate.resolve();
    await Promise.all([stopped, recovery.done]);
    expect([work.runs.length, recovery.errors]).toEqual([0, []]);
  });
});

it('keeps the process alive while it waits, until it is stopped', async () => {
  const clock = manualClock();
  const kept: (boolean | undefined)[] = [];
  const ports = testPorts({
    ...clock,
    setTimer: (callback, delayMs, options) => (
      kept.push(options?.keepAlive),
      clock.setTimer(callback, delayMs, options)
    ),
  });
  const recovery = createAgent({ provider: done(0), store: memoryStore({ ports }), ports }).recover();
  await clock.advance(1);
  expect(kept).toEqual([undefined]);
  await recovery.stop();
  await letPass(clock, recovery.done);
});
