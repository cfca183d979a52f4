/**
 * The guarantees to users (docs/contract.md), each by its number and its sentence, on every store. G24 is a matter of
 * each store, G31 of `@lousho/http`, and both are tested there.
 */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  LLMProviderError,
  parseCheckpoint,
  type Checkpoint,
  type CheckpointStore,
  type Message,
} from '@lousho/contract';
import { SqliteStore } from '@lousho/store-sqlite';
import { manualClock, mockModel, type MockModel, type MockResponse } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { createAgent } from '../src/index.ts';
import { awaiting, inBackground } from './support/delegating.ts';
import { expectValid, lines, refusal, rejection, resultOfCall, results } from './support/read.ts';
import { failingTool, givenInterrupted, watchedRecovery } from './support/recovery.ts';
import { watched, storeOf } from './support/stores.ts';
import { deferred, emailTool, failingOnceTool, gatedTool, spyTool, type SpyTool } from './support/tools.ts';
import { isOpen, later, letPass, passUntil, until } from './support/wait.ts';
import { onEveryStore, temporaryFolder, type World } from './support/world.ts';

const calls = (...names: readonly string[]): MockResponse => ({
  toolCalls: names.map((name) => ({ name, id: `call_${name}` })),
});

/** A process that dies while its tool runs: it never says another word, and its lease runs out. */
async function givenDeathInTool(
  world: World,
  script: readonly MockResponse[],
  dying: SpyTool,
  others: readonly SpyTool[] = [],
) {
  const process = world.otherProcess(manualClock());
  const agent = process.agent({
    provider: mockModel(script),
    tools: [...others, dying].map(({ tool }) => tool),
  });
  const before = dying.runs.length;
  void later(agent.send('go', { sessionId: 'job-1', inputId: 'input-1' }));
  await until(() => dying.runs.length > before);
  await world.clock.advance(60_001);
}

/** Hangs the first time: its process is dead. */
function lethalTool(name: string, options: Parameters<typeof spyTool>[2] = {}): SpyTool {
  return spyTool(
    name,
    (_args, _ctx, run) => (run === 1 ? new Promise(() => undefined) : `${name} done`),
    options,
  );
}

function asked(model: MockModel, index = 0): readonly Message[] {
  return model.calls[index]?.messages ?? [];
}

onEveryStore('guarantee', (world) => {
  it('G1 Every tool call gets exactly one result, whatever mix of crashes, aborts, pauses and resumes the run goes through.', async () => {
    const a = spyTool('a');
    const b = lethalTool('b');
    const c = gatedTool('c');
    const tools = [a.tool, b.tool, c.tool];
    await givenDeathInTool(world, [calls('a', 'b', 'c')], b, [a, c]);
    const stop = new AbortController();
    const model = mockModel([() => (stop.abort(), 'dropped'), calls('a'), 'Done.']);
    const agent = world.agent({ provider: model, tools });
    const paused = await agent.resume('job-1');
    const aborted = await agent.approvals.resolve(
      { id: paused?.approvalId ?? '', approved: true },
      { signal: stop.signal },
    );
    expect(aborted.finishReason).toBe('aborted');
    const result = await agent.resume('job-1');
    expect(result?.finishReason).toBe('stop');
    expectValid(result?.messages ?? []);
    expect(results(result?.messages ?? []).map(({ toolCallId }) => toolCallId)).toEqual([
      'call_a',
      'call_b',
      'call_c',
      'call_a',
    ]);
  });

  it('G2 Results stand directly behind the model response that asked for them, in the order of its calls, whatever order they settled in.', async () => {
    const gates = { a: deferred(), b: deferred(), c: deferred() };
    const tools = (['a', 'b', 'c'] as const).map((name) => spyTool(name, () => gates[name].promise));
    const model = mockModel([calls('a', 'b', 'c'), 'Done.']);
    const sent = world
      .agent({ provider: model, tools: tools.map(({ tool }) => tool) })
      .send('go', { sessionId: 'job-1' });
    for (const name of ['c', 'a', 'b'] as const) {
      await until(() => tools.every(({ runs }) => runs.length === 1));
      gates[name].resolve();
      const settled = name === 'b' ? 3 : name === 'a' ? 2 : 1;
      await until(async () => {
        const stored = await world.stored('job-1');
        return results(stored?.messages ?? []).length + (stored?.settledResults.length ?? 0) === settled;
      });
    }
    await sent;
    expect(lines(asked(model, 1))).toEqual([
      'user go',
      'assistant a#call_a b#call_b c#call_c',
      'tool call_a null',
      'tool call_b null',
      'tool call_c null',
    ]);
  });

  it('G3 A recorded result is never made again: its tool does not run for that call any more.', async () => {
    const a = spyTool('a');
    const b = lethalTool('b');
    await givenDeathInTool(world, [calls('b', 'a')], b, [a]);
    // `a` settled behind `b`, which never did.
    const result = await world
      .agent({ provider: mockModel(['Done.']), tools: [a.tool, b.tool] })
      .resume('job-1');
    expect(result?.text).toBe('Done.');
    expect([a.runs.length, b.runs.length]).toEqual([1, 2]);
  });

  it('G4 A stored model response is never asked for again: a resume executes the calls that it has.', async () => {
    const b = lethalTool('b');
    await givenDeathInTool(world, [calls('b')], b);
    const model = mockModel(['Done.']);
    await world.agent({ provider: model, tools: [b.tool] }).resume('job-1');
    expect(model.calls).toHaveLength(1);
    expect(lines(asked(model))).toEqual(['user go', 'assistant b#call_b', 'tool call_b "b done"']);
  });

  it('G5 A model response is stored before the first tool that it asks for starts, and a result is stored before the model sees it.', async () => {
    const order: string[] = [];
    const checkpoints = watched(world.checkpoints, (method, args) => {
      if (method === 'saveIfLeased') order.push(`save ${lines((args[1] as Checkpoint).messages).at(-1)}`);
    });
    const a = spyTool('a', async () => {
      order.push(`run, stored ${lines((await world.stored('job-1'))?.messages ?? []).at(-1)}`);
    });
    const model = mockModel([
      calls('a'),
      async () => (
        order.push(`asked, stored ${lines((await world.stored('job-1'))?.messages ?? []).at(-1)}`),
        'Done.'
      ),
    ]);
    await world
      .agent({ store: storeOf(checkpoints), provider: model, tools: [a.tool] })
      .send('go', { sessionId: 'job-1' });
    expect(order).toEqual([
      'save assistant a#call_a',
      'run, stored assistant a#call_a',
      'save tool call_a null',
      'asked, stored tool call_a null',
      'save assistant Done.',
    ]);
  });

  it('G6 The provider always receives a valid transcript: every call has its result behind it, and new input comes after the results.', async () => {
    const b = lethalTool('b');
    const c = gatedTool('c');
    await givenDeathInTool(world, [calls('b', 'c')], b, [c]);
    const model = mockModel(['Done.']);
    const agent = world.agent({ provider: model, tools: [b.tool, c.tool] });
    const paused = await agent.send('and hurry', { sessionId: 'job-1' });
    await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: false });
    expectValid(asked(model));
    expect(lines(asked(model))).toEqual([
      'user go',
      'assistant b#call_b c#call_c',
      'tool call_b "b done"',
      'tool call_c rejected',
      'user and hurry',
    ]);
  });

  it('G7 A call that a person approved runs at most once. When the process dies while it runs, it is not run again: its result says that it may or may not have happened.', async () => {
    const charge = lethalTool('charge', { needsApproval: true });
    const agent = world.agent({ provider: mockModel([calls('charge')]), tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    const dying = world.otherProcess(manualClock()).agent({ provider: mockModel([]), tools: [charge.tool] });
    void later(dying.approvals.resolve({ id, approved: true }));
    await until(() => charge.runs.length === 1);
    await world.clock.advance(60_001);
    const model = mockModel(['I will check.']);
    const next = world.agent({ provider: model, tools: [charge.tool] });
    expect(await next.pending()).toMatchObject([{ sessionId: 'job-1', status: 'in-progress' }]);
    await next.resume('job-1');
    expect(charge.runs).toHaveLength(1);
    expect(resultOfCall(asked(model), 'call_charge')).toMatchObject({
      kind: 'interrupted',
      isError: true,
      result: { error: expect.stringContaining('may or may not') },
      approval: { id, approved: true },
    });
  });

  it('G8 What runs after an approval is what the person saw: the same tool with the same arguments, or the changed ones that the person gave.', async () => {
    const email = emailTool();
    const ask = (to: string) => ({ toolCalls: [{ name: 'email', args: { to } }] });
    const agent = world.agent({ provider: mockModel([ask('a'), ask('b'), 'Done.']), tools: [email.tool] });
    const first = await agent.send('go', { sessionId: 'job-1' });
    expect((await agent.approvals.get(first.approvalId ?? ''))?.args).toEqual({ to: 'a' });
    const second = await agent.approvals.resolve({ id: first.approvalId ?? '', approved: true });
    await agent.approvals.resolve({ id: second.approvalId ?? '', approved: true, args: { to: 'c' } });
    expect(email.runs).toEqual([{ to: 'a' }, { to: 'c' }]);
  });

  it('G9 A call that waits for a decision, was rejected or whose approval expired does not run.', async () => {
    const tools = ['a', 'b', 'c'].map((name) => gatedTool(name));
    const config = { tools: tools.map(({ tool }) => tool), approvalTtlMs: 60_000 };
    const agent = world.agent({ ...config, provider: mockModel([calls('a', 'b', 'c'), 'Done.']) });
    const { approvalIds: [a = '', b = '', c = ''] = [] } = await agent.send('go', { sessionId: 'job-1' });
    await agent.approvals.resolve({ id: a, approved: false });
    await agent.approvals.resolve({ id: c, approved: false });
    await world.clock.advance(60_000);
    const result = await agent.approvals.resolve({ id: b, approved: true });
    expect(tools.map(({ runs }) => runs.length)).toEqual([0, 0, 0]);
    expect(results(result.messages).map(({ kind }) => kind)).toEqual(['rejected', 'denied', 'rejected']);
  });

  it('G10 An approval is decided once. A second decision changes nothing and says who decided what, and when.', async () => {
    const charge = gatedTool('charge');
    const agent = world.agent({ provider: mockModel([calls('charge'), 'Done.']), tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    const decidedAt = new Date(world.clock.wallMs()).toISOString();
    await agent.approvals.resolve({ id, approved: false, by: 'ann' });
    const before = await world.stored('job-1');
    await world.clock.advance(1_000);
    const other = world.otherProcess().agent({ provider: mockModel([]), tools: [charge.tool] });
    const error = await refusal(
      other.approvals.resolve({ id, approved: true, by: 'bob' }),
      'LOUSHO_APPROVAL_DECIDED',
    );
    expect(error.details).toEqual({ approvalId: id, approved: false, by: 'ann', decidedAt });
    expect(charge.runs).toHaveLength(0);
    expect(await world.stored('job-1')).toEqual(before);
  });

  it('G11 A stale approval never comes back: when its run is gone, was discarded or moved on, deciding it runs nothing and touches no newer run.', async () => {
    const charge = gatedTool('charge');
    const tools = [charge.tool];
    const agent = world.agent({ provider: mockModel([calls('charge')]), tools });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    const left = await world.store.approvals.load(id);
    await world.checkpoints.delete('job-1');
    const newer = world.agent({ provider: mockModel([calls('charge')]), tools });
    await newer.send('another one', { sessionId: 'job-1' });
    const before = await world.stored('job-1');
    if (left) await world.store.approvals.save(left);
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(charge.runs).toHaveLength(0);
    expect(await world.stored('job-1')).toEqual(before);
    expect(await world.store.approvals.load(id)).toBeNull();
  });

  it('G12 A pause can be decided in another process and after any time; a crash between any two writes leaves it either still to decide or decided, never lost.', async () => {
    // The record was written, the mark was not: the run asks again under the same id.
    const charge = gatedTool('charge');
    const tools = [charge.tool];
    let isDead = false;
    const dead = new Promise<never>(() => undefined);
    const checkpoints = watched(world.checkpoints, (method, args) => {
      if (method === 'saveIfLeased' && (args[1] as Checkpoint).status === 'awaiting-approval') isDead = true;
    });
    const store = storeOf(
      new Proxy(checkpoints, {
        get: (base, key, receiver): unknown => {
          const member: unknown = Reflect.get(base, key, receiver);
          if (key !== 'saveIfLeased' || typeof member !== 'function') return member;
          return (...args: [string, Checkpoint, string]) =>
            args[1].status === 'awaiting-approval'
              ? ((isDead = true), dead)
              : (Reflect.apply(member, base, args) as unknown);
        },
      }),
      { approvals: world.store.approvals },
    );
    const dying = world.otherProcess(manualClock());
    void later(
      dying
        .agent({ store, provider: mockModel([calls('charge')]), tools })
        .send('go', { sessionId: 'job-1' }),
    );
    await until(() => isDead);
    const [left] = await world.store.approvals.list();
    const years = 3 * 365 * 24 * 60 * 60 * 1_000;
    await world.clock.advance(years);
    const agent = world.agent({ provider: mockModel(['Done.']), tools });
    expect(await agent.approvals.list()).toEqual([]);
    const paused = await agent.resume('job-1');
    expect(paused?.approvalId).toBe(left?.id);
    await world.clock.advance(years);
    const other = world.otherProcess().agent({ provider: mockModel(['Done.']), tools });
    expect((await other.approvals.resolve({ id: left?.id ?? '', approved: true })).text).toBe('Done.');
    expect(charge.runs).toHaveLength(1);
  });

  it('G13 Two processes never execute one run at once, and two sends to one id never work on the same state.', async () => {
    const gate = deferred();
    const slow = spyTool('slow', () => gate.promise);
    const agent = world.agent({ provider: mockModel([calls('slow'), 'One.', 'Two.']), tools: [slow.tool] });
    const first = agent.send('go', { sessionId: 'job-1' });
    const second = agent.send('and?', { sessionId: 'job-1' });
    await until(() => slow.runs.length === 1);
    const other = world.otherProcess().agent({ provider: mockModel(['never']), tools: [slow.tool] });
    await refusal(other.send('me too', { sessionId: 'job-1' }), 'LOUSHO_SESSION_BUSY');
    expect(await isOpen(second)).toBe(true);
    gate.resolve();
    await first;
    expect(lines((await second).messages)).toEqual([
      'user go',
      'assistant slow#call_slow',
      'tool call_slow null',
      'assistant One.',
      'user and?',
      'assistant Two.',
    ]);
    expect(slow.runs).toHaveLength(1);
  });

  it('G14 A process that stalls and loses its run writes nothing more into it and starts nothing more for it.', async () => {
    const clock = manualClock();
    const gate = deferred<string>();
    const slow = spyTool('slow', (_args, _ctx, run) => (run === 1 ? gate.promise : 'fresh'));
    const next = spyTool('next');
    const tools = [slow.tool, next.tool];
    const model = mockModel([calls('slow', 'next'), 'stale']);
    const stalled = world.otherProcess(clock).agent({ provider: model, tools, toolConcurrency: 1 });
    const sent = rejection(stalled.send('go', { sessionId: 'job-1' }));
    await until(() => slow.runs.length === 1);
    await world.clock.advance(60_001);
    await world.agent({ provider: mockModel(['Done.']), tools, toolConcurrency: 1 }).resume('job-1');
    const after = await world.stored('job-1');
    // It wakes up: its clock is a minute later, and its tool ends.
    clock.jumpWall(60_001);
    gate.resolve('stale');
    expect(await letPass(clock, sent)).toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    // Once, by the other process.
    expect([next.runs.length, model.calls.length]).toEqual([1, 1]);
    expect(await world.stored('job-1')).toEqual(after);
  });

  it('G15 Nothing acknowledged is lost: a result that was returned, an event checkpoint.saved, an input that was reported as joined survive what the store claims in durable.', async () => {
    const b = lethalTool('b');
    const saved: Promise<Checkpoint | null>[] = [];
    const dying = world.otherProcess(manualClock()).agent({
      provider: mockModel([calls('b')]),
      tools: [b.tool],
      onEvent: ({ type }) => type === 'checkpoint.saved' && saved.push(world.stored('job-1')),
    });
    const run = dying.stream('go', { sessionId: 'job-1' });
    await until(() => b.runs.length === 1);
    expect(await run.enqueue('metric units').joined).toBe(true);
    expect(lines((await saved[0])?.messages ?? []).at(-1)).toBe('assistant b#call_b');
    await world.clock.advance(60_001);
    const model = mockModel(['Done.']);
    const result = await world
      .otherProcess()
      .agent({ provider: model, tools: [b.tool] })
      .resume('job-1');
    expect(lines(asked(model)).at(-1)).toBe('user metric units');
    expect((await world.otherProcess().checkpoints.load('job-1'))?.messages).toEqual(result?.messages);
  });

  it('G16 An interrupted run is found by every replica with the same store (agent.pending()), and recover() finishes it within its interval once its lease is free.', async () => {
    const b = lethalTool('b');
    await givenDeathInTool(world, [calls('b')], b);
    for (const replica of [world.otherProcess(), world.otherProcess()]) {
      const [run] = await replica.agent({ provider: mockModel([]) }).pending();
      expect(run).toMatchObject({ sessionId: 'job-1', status: 'in-progress' });
      expect(run).not.toHaveProperty('lastError');
    }
    // The last one held it a while ago, and died: its lease is still there.
    await world.checkpoints.acquireLease('job-1', 'dead', 30_000);
    const replicas = [world.otherProcess(), world.otherProcess()].map((replica) =>
      watchedRecovery(replica.agent({ provider: mockModel(['Done.']), tools: [b.tool] }), {
        intervalMs: 5_000,
      }),
    );
    const recovered = () => replicas.flatMap((replica) => replica.recovered);
    await world.clock.advance(25_000);
    expect(recovered()).toEqual([]);
    await world.clock.advance(40_000);
    await until(() => recovered().length > 0);
    for (const replica of replicas) await replica.stop();
    expect([recovered(), b.runs.length]).toEqual([['job-1: Done.'], 2]);
  });

  it('G17 A run that makes no progress is not started for ever: after maxAttempts starts it is left alone, listed, and reported once.', async () => {
    const poison = failingTool(1_000);
    await givenInterrupted(world, ['job-1'], poison);
    const replicas = [world.otherProcess(), world.otherProcess()].map((replica) =>
      watchedRecovery(replica.agent({ provider: mockModel([]), tools: [poison.tool] }), { maxAttempts: 2 }),
    );
    const reports = () =>
      replicas.flatMap(({ errors }) => errors).filter((error) => error.includes('EXHAUSTED'));
    await passUntil(world.clock, 30_000, () => reports().length > 0);
    for (let look = 1; look <= 5; look += 1) await world.clock.advance(30_000);
    expect(reports()).toEqual(['job-1: LOUSHO_RECOVERY_EXHAUSTED']);
    for (const replica of replicas) await replica.stop();
    expect(poison.runs).toHaveLength(1 + 2);
    const agent = world.agent({ provider: mockModel([]) });
    expect(await agent.pending()).toMatchObject([{ sessionId: 'job-1', parked: true }]);
  });

  it('G18 An input with an inputId is added to its session once, however often it is sent.', async () => {
    const b = lethalTool('b');
    await givenDeathInTool(world, [calls('b')], b);
    const model = mockModel(['Done.']);
    const agent = world.agent({ provider: model, tools: [b.tool] });
    const options = { sessionId: 'job-1', inputId: 'input-1' };
    const sends = await Promise.all([1, 2, 3].map(() => agent.send('go', options)));
    expect(sends.map(({ text }) => text)).toEqual(['Done.', 'Done.', 'Done.']);
    expect(model.calls).toHaveLength(1);
    expect(
      lines((await world.stored('job-1'))?.messages ?? []).filter((line) => line === 'user go'),
    ).toHaveLength(1);
  });

  it('G19 An abort starts nothing more: calls that had not begun never run later, and the transcript stays valid.', async () => {
    const stop = new AbortController();
    const a = spyTool('a', () => stop.abort());
    const b = spyTool('b');
    const model = mockModel([calls('a', 'b'), 'Done.']);
    const agent = world.agent({ provider: model, tools: [a.tool, b.tool], toolConcurrency: 1 });
    await agent.send('go', { sessionId: 'job-1', signal: stop.signal });
    expect(model.calls).toHaveLength(1);
    await agent.resume('job-1');
    expect(b.runs).toHaveLength(0);
    expectValid(asked(model, 1));
  });

  it('G20 A shutdown loses nothing: what was running is recorded when it settles in time, and else open, as after a crash; another process goes on at once.', async () => {
    const gate = deferred<string>();
    const a = spyTool('a', () => gate.promise);
    const b = lethalTool('b');
    const tools = [a.tool, b.tool];
    const agent = world.agent({ provider: mockModel([calls('a', 'b')]), tools });
    const sent = later(agent.send('go', { sessionId: 'job-1' }));
    await until(() => b.runs.length === 1);
    const down = agent.shutdown({ timeoutMs: 1_000 });
    gate.resolve('a done');
    await world.clock.advance(1_000);
    await down;
    await refusal(sent, 'LOUSHO_SHUTDOWN');
    const result = await world
      .otherProcess()
      .agent({ provider: mockModel(['Done.']), tools })
      .resume('job-1');
    expect([a.runs.length, b.runs.length]).toEqual([1, 2]);
    expect(results(result?.messages ?? []).map(({ result: value }) => value)).toEqual(['a done', 'b done']);
  });

  it('G21 A result is turned into JSON once, when it is recorded: the model sees the same value before a crash and after it.', async () => {
    const a = spyTool('a', () => ({ at: new Date(0), none: undefined, list: new Set([Number.NaN]) }));
    const b = lethalTool('b');
    const model = mockModel([calls('a'), calls('b'), 'Done.']);
    const dying = world.otherProcess(manualClock()).agent({ provider: model, tools: [a.tool, b.tool] });
    void later(dying.send('go', { sessionId: 'job-1' }));
    await until(() => b.runs.length === 1);
    await world.clock.advance(60_001);
    await world.agent({ provider: model, tools: [a.tool, b.tool] }).resume('job-1');
    const [before, after] = [1, 2].map((index) => resultOfCall(asked(model, index), 'call_a')?.result);
    expect(before).toEqual({ at: '1970-01-01T00:00:00.000Z', list: [null] });
    expect(JSON.stringify(after)).toBe(JSON.stringify(before));
  });

  it("G22 A resume acts as the run began: for the same principal, with the same metadata, the model that was chosen and the caller's state.", async () => {
    const b = lethalTool('b');
    const options = {
      sessionId: 'job-1',
      principal: { id: 'ann' },
      metadata: { tenant: 'acme' },
      businessState: { step: 1 },
    };
    const dying = world.otherProcess(manualClock());
    const first = mockModel([calls('b')]);
    void later(dying.agent({ provider: first, tools: [b.tool], model: () => 'chosen' }).send('go', options));
    await until(() => b.runs.length === 1);
    await world.clock.advance(60_001);
    const model = mockModel(['Done.']);
    const result = await world
      .agent({ provider: model, tools: [b.tool], model: () => 'other' })
      .resume('job-1');
    const { principal, metadata, businessState } = options;
    expect(b.runs[1]?.ctx).toMatchObject({ principal, metadata, businessState });
    expect(model.calls[0]?.model).toBe('chosen');
    expect(result?.businessState).toEqual(businessState);
  });

  it('G23 Totals of usage are the model calls that were made, each once, over any number of resumes. A cost that is not known for one call is not known for the total.', async () => {
    const b = lethalTool('b');
    const usage = { inputTokens: 10, outputTokens: 1 };
    await givenDeathInTool(world, [{ ...(calls('b') as object), usage: { ...usage, costUsd: 0.5 } }], b);
    const down = new LLMProviderError('down', { kind: 'network', retryable: true });
    const again = { ...(calls('b') as object), usage: { ...usage, costUsd: 0.25 } };
    const model = mockModel([
      again,
      down,
      { text: 'Done.', usage: { ...usage, costUsd: 0.25 } },
      { text: 'More.', usage },
    ]);
    const agent = world.agent({ provider: model, tools: [b.tool], retry: { maxRetries: 0 } });
    await rejection(agent.resume('job-1'));
    const result = await agent.resume('job-1');
    expect(result?.usage).toMatchObject({
      inputTokens: 30,
      outputTokens: 3,
      totalTokens: 33,
      modelCalls: 3,
      costUsd: 1,
    });
    const next = await agent.send('more', { sessionId: 'job-1' });
    expect(next.usage).toMatchObject({ inputTokens: 10, modelCalls: 1 });
    expect(next.usage).not.toHaveProperty('costUsd');
  });

  it("G28 A sub-agent goes on where it stopped, as its lead does. Whatever interrupts the two, it never starts over, its calls wait for people as the lead's do, and nothing of it is left behind.", async () => {
    const look = spyTool('look');
    const slow = lethalTool('slow');
    const charge = gatedTool('charge');
    const cashier = mockModel([calls('look'), calls('slow'), calls('charge'), 'Paid.'], { answerBy: 'step' });
    const lead = mockModel(
      [{ toolCalls: [{ name: 'task', args: { agent: 'cashier', prompt: 'Charge.' } }] }, 'Done.'],
      { answerBy: 'step' },
    );
    const agentIn = (process: Pick<World, 'agent'>) =>
      process.agent({
        provider: lead,
        subagents: [
          {
            name: 'cashier',
            description: 'Handles money.',
            provider: cashier,
            tools: [look.tool, slow.tool, charge.tool],
          },
        ],
      });
    void later(agentIn(world.otherProcess(manualClock())).send('go', { sessionId: 'job-1' }));
    await until(() => slow.runs.length === 1);
    await world.clock.advance(60_001);
    const agent = agentIn(world);
    const paused = await letPass(world.clock, agent.send('go', { sessionId: 'job-1' }));
    expect(paused).toMatchObject({ finishReason: 'awaiting-approval', usage: { modelCalls: 4 } });
    const [request] = await agent.approvals.list();
    expect(request).toMatchObject({ toolName: 'charge', subagentPath: ['cashier'] });
    const result = await agentIn(world.otherProcess()).approvals.resolve({
      id: request?.id ?? '',
      approved: true,
    });
    expect(result).toMatchObject({ text: 'Done.', usage: { modelCalls: 6, delegated: { modelCalls: 4 } } });
    expect([cashier.calls.length, look.runs.length, slow.runs.length, charge.runs.length]).toEqual([
      4, 1, 2, 1,
    ]);
    expect((await world.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['job-1']);
  });

  it('G29 A handoff takes place with the save of its result or not at all. From then on the target answers, in later turns of the session, in every process and after any crash, until it hands over again.', async () => {
    const slow = lethalTool('slow');
    const clerk = mockModel([{ toolCalls: [{ name: 'handoff_to_billing' }] }, 'Clerk again.'], {
      answerBy: 'call',
    });
    const billing = mockModel([
      calls('slow'),
      'Billed.',
      'Still billing.',
      { toolCalls: [{ name: 'handoff_to_clerk' }] },
    ]);
    const sessionIn = (process: Pick<World, 'agent'>) =>
      process
        .agent({
          name: 'clerk',
          provider: clerk,
          instructions: 'Serve.',
          handoffs: [
            {
              name: 'billing',
              description: 'Counts.',
              provider: billing,
              instructions: 'Count.',
              tools: [slow.tool],
            },
          ],
        })
        .session({ id: 'chat' });
    void later(sessionIn(world.otherProcess(manualClock())).send('money'));
    await until(() => slow.runs.length === 1);
    await world.clock.advance(60_001);
    const ends = [await letPass(world.clock, sessionIn(world.otherProcess()).resume())];
    for (const text of ['and now?', 'thanks']) ends.push(await sessionIn(world).send(text));
    expect(ends.map((end) => [end?.agentName, end?.text])).toEqual([
      ['billing', 'Billed.'],
      ['billing', 'Still billing.'],
      ['clerk', 'Clerk again.'],
    ]);
    expect(
      [clerk, billing].map(({ calls: asked }) => asked.map(({ messages }) => messages[0]?.content)),
    ).toEqual([
      ['Serve.', 'Serve.'],
      ['Count.', 'Count.', 'Count.', 'Count.'],
    ]);
  });

  it('G30 A sub-agent in the background works only while its lead executes: it rests with it, goes on with it and ends with it, whatever interrupts the two. One that was cancelled begins nothing more.', async () => {
    const look = spyTool('look');
    const hang = lethalTool('hang');
    const idle = spyTool('idle', async (_args, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    });
    const hold = spyTool('hold', () => until(() => hang.runs.length > 0));
    const sign = gatedTool('sign');
    const clerk = mockModel([calls('look'), calls('hang'), 'Filed.'], { answerBy: 'step' });
    const idler = mockModel([calls('idle'), 'Never.'], { answerBy: 'step' });
    const script = [
      inBackground('clerk'),
      calls('hold'),
      calls('sign'),
      awaiting('task_1'),
      inBackground('idler'),
      { text: 'Done.' },
    ];
    const agentIn = (process: Pick<World, 'agent'>) =>
      process.agent({
        provider: mockModel(script, { answerBy: 'step' }),
        tools: [hold.tool, sign.tool],
        subagents: [
          { name: 'clerk', description: 'Files.', provider: clerk, tools: [look.tool, hang.tool] },
          { name: 'idler', description: 'Idles.', provider: idler, tools: [idle.tool] },
        ],
      });
    void later(agentIn(world.otherProcess(manualClock())).send('go', { sessionId: 'job-1' }));
    await until(() => hang.runs.length === 1);
    await world.clock.advance(60_001);
    const paused = await letPass(world.clock, agentIn(world).send([], { sessionId: 'job-1' }));
    const made = clerk.calls.length;
    await world.clock.advance(60_001);
    expect(clerk.calls).toHaveLength(made);
    const agent = agentIn(world.otherProcess());
    const result = await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true });
    expect(result).toMatchObject({
      text: 'Done.',
      backgroundTasks: [{ status: 'finished' }, { status: 'cancelled' }],
    });
    await world.clock.advance(60_001);
    // Each asked once for each step, however often the processes changed.
    expect([clerk.calls.length, look.runs.length, hang.runs.length]).toEqual([3, 1, 2]);
    expect(idler.calls.length).toBeLessThanOrEqual(1);
    expect(result.usage.modelCalls).toBe(6 + 3 + idler.calls.length);
    expect((await world.checkpoints.list()).map(({ sessionId }) => sessionId)).toEqual(['job-1']);
  });

  it('G27 An error says what happened, to which id, and whether the same call may succeed later. What is stored of it holds no stack.', async () => {
    const work = failingOnceTool('work');
    const agent = world.agent({ provider: mockModel([calls('work')]), tools: [work.tool] });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    await world.checkpoints.acquireLease('job-1', 'somebody else', 30_000);
    const error = await refusal(agent.resume('job-1'), 'LOUSHO_SESSION_BUSY');
    expect(error.message).toContain('job-1');
    expect(error).toMatchObject({ retryable: true, details: { sessionId: 'job-1' } });
    const stored = JSON.stringify(await world.stored('job-1'));
    expect(stored).toContain('process died');
    expect(stored).not.toContain('.ts:');
  });
});

describe('guarantee (a store of JSON texts)', () => {
  /** As the smallest store of somebody else: what is read goes through the contract's parser. */
  function textStore() {
    const texts = new Map<string, string>();
    const checkpoints: CheckpointStore = {
      save: async (id, checkpoint) => void texts.set(id, JSON.stringify(checkpoint)),
      async load(id) {
        const text = texts.get(id);
        return text === undefined ? null : parseCheckpoint(JSON.parse(text), id);
      },
      delete: async (id) => void texts.delete(id),
    };
    return { texts, store: storeOf(checkpoints) };
  }

  it.each([
    ['a part of it is gone', (text: string) => text.replace('"messages"', '"massages"')],
    ['it is of another kind', () => '{"hello":"world"}'],
    ['it is no object', () => '[]'],
    ['a message is none', (text: string) => text.replace('"role":"user"', '"role":"robot"')],
  ])(
    'G25 Damage is an error with a code and an id. It never looks like an empty store, and never starts a job again: %s',
    async (_what, damage) => {
      const { texts, store } = textStore();
      const work = failingOnceTool('work');
      const broken = createAgent({ store, provider: mockModel([calls('work')]), tools: [work.tool] });
      await rejection(broken.send('go', { sessionId: 'job-1' }));
      texts.set('job-1', damage(texts.get('job-1') ?? ''));
      const before = texts.get('job-1');
      const model = mockModel(['never']);
      const agent = createAgent({ store, provider: model, tools: [work.tool] });
      const error = await refusal(agent.send('go', { sessionId: 'job-1' }), 'LOUSHO_CHECKPOINT_CORRUPT');
      expect(error).toMatchObject({ retryable: false, details: { id: 'job-1', record: 'checkpoint' } });
      await refusal(agent.resume('job-1'), 'LOUSHO_CHECKPOINT_CORRUPT');
      expect([model.calls.length, work.runs.length]).toEqual([0, 1]);
      expect(texts.get('job-1')).toBe(before);
    },
  );

  it('G26 Data that an older release stored is read; data of a newer one is refused and left as it was.', async () => {
    const { texts, store } = textStore();
    const call = { type: 'tool-call', toolCallId: 'call_1', toolName: 'work', args: {} };
    const messages = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [call] },
    ];
    // Before there were versions, statuses, fingerprints and everything beside the transcript.
    texts.set('old', JSON.stringify({ messages }));
    const work = spyTool('work');
    const agent = createAgent({
      store,
      provider: mockModel(['Done.']),
      tools: [work.tool],
      onAgentDrift: 'error',
    });
    const result = await agent.resume('old');
    expect(lines(result?.messages ?? [])).toEqual([
      'user go',
      'assistant work#call_1',
      'tool call_1 "work done"',
      'assistant Done.',
    ]);
    const newer = JSON.stringify({ ...JSON.parse(texts.get('old') ?? ''), version: 99 });
    texts.set('newer', newer);
    const error = await refusal(agent.send('go', { sessionId: 'newer' }), 'LOUSHO_STORE_VERSION_UNSUPPORTED');
    expect(error.details).toEqual({ found: 99, supported: 1 });
    expect(texts.get('newer')).toBe(newer);
  });
});

describe('guarantee (a damaged SQLite file)', () => {
  it('G25 Damage is an error with a code and an id. It never looks like an empty store, and never starts a job again.', async () => {
    const folder = await temporaryFolder();
    const file = path.join(folder.path, 'agent.db');
    const work = failingOnceTool('work');
    const first = new SqliteStore(file);
    const agent = createAgent({
      store: first,
      provider: mockModel([calls('work'), 'Fine.']),
      tools: [work.tool],
    });
    await rejection(agent.send('the first of two', { sessionId: 'job-1' }));
    await agent.send('another one', { sessionId: 'job-2' });
    await first.close();
    const bytes = await readFile(file);
    for (let at = bytes.indexOf('the first of'); at >= 0; at = bytes.indexOf('the first of', at + 1))
      bytes[at] = 0x54;
    await writeFile(file, bytes);
    await using store = new SqliteStore(file);
    const model = mockModel(['never']);
    const next = createAgent({ store, provider: model, tools: [work.tool] });
    const error = await refusal(
      next.send('the first of two', { sessionId: 'job-1' }),
      'LOUSHO_CHECKPOINT_CORRUPT',
    );
    expect(error.details).toMatchObject({ id: 'job-1' });
    expect(model.calls).toHaveLength(0);
    expect((await next.send([], { sessionId: 'job-2' })).text).toBe('Fine.');
    await store.close();
    await folder.remove();
  });
});
