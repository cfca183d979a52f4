/** `agent.recover()` when things go wrong: runs that never get anywhere, a store that is down, callbacks that throw. */
import { SDKError, type CheckpointStore } from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel, testPorts } from '@lousho/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createAgent, type Agent, type RecoverOptions } from '../src/index.ts';
import { thrown } from './support/read.ts';
import { failingTool, givenInterrupted, watchedRecovery } from './support/recovery.ts';
import { checkpointsWith, checkpointsWithout, storeOf, threeMethods } from './support/stores.ts';
import { deferred, spyTool } from './support/tools.ts';
import { letPass, passUntil, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const done = (count: number) => mockModel(Array.from({ length: count }, () => 'Done.'));
const INTERVAL_MS = 30_000;
const HOUR_MS = 3_600_000;

/** The manual clock in steps that a sweep can follow on a store on a disk. */
async function pass(world: World, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= INTERVAL_MS) await world.clock.advance(Math.min(left, INTERVAL_MS));
}

/** A store of which chosen calls fail. */
function failingStore(world: World, fails: (method: string) => boolean) {
  const down = new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation: 'test' });
  const working = checkpointsWith(world.checkpoints, {});
  const checkpoints = new Proxy(working, {
    get(_, key) {
      const member: unknown = Reflect.get(working, key);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]): Promise<unknown> => {
        if (fails(String(key))) throw down;
        return Reflect.apply(member, working, args) as unknown;
      };
    },
  });
  return storeOf(checkpoints, { approvals: world.store.approvals });
}

onEveryStore('a run without progress', (world) => {
  it('is started ever more seldom, and parked after ten starts, which all replicas hear of once', async () => {
    const poison = failingTool(1_000);
    await givenInterrupted(world, ['poison'], poison);
    const replicas = [1, 2].map(() =>
      watchedRecovery(world.otherProcess().agent({ provider: done(0), tools: [poison.tool] })),
    );
    const starts: number[] = [];
    for (let hour = 0; hour < 6; hour += 0.5) {
      await pass(world, HOUR_MS / 2);
      starts.push(poison.runs.length - 1);
    }
    for (const replica of replicas) await replica.stop();
    // 0, 0.5, 1.5, 3.5, 7.5, 15.5 | 31.5 | 63.5 | 123.5 | 183.5 minutes, each at the next look.
    expect(starts.slice(0, 7)).toEqual([6, 7, 8, 8, 9, 9, 10]);
    expect(starts.at(-1)).toBe(10);
    const errors = replicas.flatMap((replica) => replica.errors);
    expect(errors.filter((error) => error.endsWith('LOUSHO_TOOL_PROPAGATED'))).toHaveLength(10);
    expect(errors.filter((error) => !error.endsWith('LOUSHO_TOOL_PROPAGATED'))).toEqual([
      'poison: LOUSHO_RECOVERY_EXHAUSTED',
    ]);
    const exhausted = replicas
      .flatMap((replica) => replica.thrown as SDKError[])
      .find(({ code }) => code === 'LOUSHO_RECOVERY_EXHAUSTED');
    expect(exhausted?.details).toMatchObject({
      sessionId: 'poison',
      starts: 10,
      lastError: { code: 'LOUSHO_TOOL_PROPAGATED' },
    });
    const agent = world.agent({ provider: done(1), tools: [poison.tool] });
    expect(await agent.pending()).toMatchObject([{ sessionId: 'poison', parked: true, attempts: 11 }]);
  });

  it('does not slow down the others', async () => {
    const poison = failingTool(1_000, 'poison');
    const work = spyTool('work');
    await givenInterrupted(world, ['poison'], poison);
    const agent = world.agent({
      provider: done(20),
      tools: [poison.tool, work.tool],
      onAgentDrift: 'ignore',
    });
    const recovery = watchedRecovery(agent, { concurrency: 1 });
    for (let round = 1; round <= 10; round += 1) {
      await givenInterrupted(world, [`job-${round}`], failingTool(1));
      await passUntil(world.clock, INTERVAL_MS, () => recovery.recovered.length === round);
    }
    await recovery.stop();
  });

  it('is started alone among its like, until it gets somewhere: what dies with it is not parked with it', async () => {
    const ids = ['job-1', 'job-2', 'job-3'];
    await givenInterrupted(world, ids, failingTool(3));
    const dead = spyTool('work', () => new Promise(() => undefined));
    // All three run in a process that dies: from now on each of them may be what killed it.
    world
      .otherProcess(manualClock(world.clock.wallMs()))
      .agent({ provider: done(0), tools: [dead.tool] })
      .recover();
    await until(() => dead.runs.length === 3);
    await world.clock.advance(120_000);
    const gates = ids.map(() => deferred());
    const work = spyTool('work', (_args, _ctx, run) => gates[run - 1]?.promise);
    const recovery = watchedRecovery(world.agent({ provider: done(3), tools: [work.tool] }), {
      intervalMs: 10_000,
    });
    await until(() => work.runs.length === 1);
    await world.clock.advance(50_000);
    expect(work.runs).toHaveLength(1);
    // It hangs: after a minute the next one has its turn, and with a result of that the last one.
    await world.clock.advance(20_000);
    await until(() => work.runs.length === 2);
    await world.clock.advance(20_000);
    expect(work.runs).toHaveLength(2);
    gates[1]?.resolve();
    await until(() => work.runs.length === 3);
    for (const gate of gates) gate.resolve();
    await until(() => recovery.recovered.length === 3);
    expect(recovery.errors).toEqual([]);
    await recovery.stop();
  });

  it('is counted also when its process dies with it', async () => {
    const lethal = spyTool('work', (_args, _ctx, run) => (run > 3 ? 'done' : new Promise(() => undefined)));
    const call = mockModel([{ toolCalls: [{ name: 'work' }] }]);
    void world
      .otherProcess(manualClock())
      .agent({ provider: call, tools: [lethal.tool] })
      .send('go', { sessionId: 'job-1' });
    await until(() => lethal.runs.length === 1);
    for (const starts of [1, 2]) {
      // One lease period, the one for clocks that disagree, and the back-off.
      await world.clock.advance(120_000);
      const ownTime = manualClock(world.clock.wallMs());
      const dying = world.otherProcess(ownTime).agent({ provider: done(1), tools: [lethal.tool] });
      dying.recover({ maxAttempts: 2 });
      await until(() => lethal.runs.length === 1 + starts);
      expect(await world.stored('job-1')).toMatchObject({ startsWithoutProgress: starts });
    }
    await world.clock.advance(120_000);
    const agent = world.agent({ provider: done(1), tools: [lethal.tool] });
    const recovery = watchedRecovery(agent, { maxAttempts: 2 });
    await until(() => recovery.errors.length === 1);
    await recovery.stop();
    expect(recovery.errors).toEqual(['job-1: LOUSHO_RECOVERY_EXHAUSTED']);
    expect((recovery.thrown[0] as SDKError).details).toEqual({ sessionId: 'job-1', starts: 2 });
    expect(lethal.runs).toHaveLength(3);
    // Somebody mended it: it counts anew.
    expect((await agent.resume('job-1'))?.text).toBe('Done.');
  });

  it('counts anew after a person started it, and is no longer parked then', async () => {
    const poison = failingTool(3);
    await givenInterrupted(world, ['job-1'], poison);
    const agent = world.agent({ provider: done(1), tools: [poison.tool] });
    const recovery = watchedRecovery(agent, { maxAttempts: 1 });
    await passUntil(world.clock, INTERVAL_MS, () => recovery.errors.length === 2);
    await agent.resume('job-1').catch(() => undefined);
    expect(await agent.pending()).toMatchObject([{ sessionId: 'job-1' }]);
    const stored = await world.stored('job-1');
    expect(stored).toMatchObject({ startsWithoutProgress: 1 });
    expect(stored).not.toHaveProperty('parkedAt');
    await recovery.stop();
  });
});

onEveryStore('a store that is down', (world) => {
  it('is told once a look, with no run, and costs no run an attempt', async () => {
    let isDown = true;
    await givenInterrupted(world, ['job-1'], failingTool(1));
    const before = await world.stored('job-1');
    const work = spyTool('work');
    const store = failingStore(world, (method) => isDown && method === 'listHeaders');
    const recovery = watchedRecovery(world.agent({ provider: done(1), tools: [work.tool], store }));
    await pass(world, 2 * INTERVAL_MS);
    expect(recovery.errors).toEqual(Array.from({ length: 3 }, () => '-: LOUSHO_STORE_WRITE_FAILED'));
    expect(await world.stored('job-1')).toEqual(before);
    isDown = false;
    await pass(world, INTERVAL_MS);
    await until(() => recovery.recovered.length === 1);
    await recovery.stop();
  });

  it('uses up no start, however often it fails behind one', async () => {
    let isUp = false;
    let hasBegun = false;
    await givenInterrupted(world, ['job-1'], failingTool(1));
    const work = spyTool('work', () => {
      hasBegun = true;
    });
    // Each start is stored, and nothing after it until the next look.
    const store = failingStore(world, (method) => !isUp && hasBegun && method === 'saveIfLeased');
    const agent = world.agent({ provider: done(1), tools: [work.tool], store });
    const recovery = watchedRecovery(agent, { maxAttempts: 2 });
    for (let outage = 1; outage <= 5; outage += 1) {
      await until(() => hasBegun);
      await pass(world, 5_000);
      await until(() => recovery.errors.length === outage);
      hasBegun = false;
      if (outage === 5) isUp = true;
      await pass(world, INTERVAL_MS);
    }
    await until(() => recovery.recovered.length === 1);
    expect(recovery.errors).toEqual(Array.from({ length: 5 }, () => 'job-1: LOUSHO_STORE_WRITE_FAILED'));
    await recovery.stop();
  });
});

onEveryStore('a run that cannot be resumed', (world) => {
  it('because the agent is another one is told once, until somebody saves it or another process looks', async () => {
    const work = failingTool(1);
    await givenInterrupted(world, ['job-1'], work);
    const before = await world.stored('job-1');
    const changed = world.agent({
      provider: done(1),
      tools: [work.tool],
      instructions: 'Other.',
      onAgentDrift: 'error',
    });
    const recovery = watchedRecovery(changed);
    await until(() => recovery.errors.length === 1);
    await pass(world, 4 * INTERVAL_MS);
    expect(recovery.errors).toEqual(['job-1: LOUSHO_AGENT_DRIFT']);
    expect(await world.stored('job-1')).toEqual(before);
    await recovery.stop();
    const right = watchedRecovery(world.otherProcess().agent({ provider: done(1), tools: [work.tool] }));
    await until(() => right.recovered.length === 1);
    await right.stop();
  });

  it('because its record is damaged stays listed, and the others are recovered', async () => {
    const work = failingTool(2);
    await givenInterrupted(world, ['job-1', 'job-2'], work);
    const error = {
      name: 'SDKError',
      code: 'LOUSHO_CHECKPOINT_CORRUPT',
      message: 'damaged',
      retryable: false,
    };
    const checkpoints = checkpointsWith(world.checkpoints, {
      async listHeaders(options) {
        const entries = await world.checkpoints.listHeaders(options);
        return entries.map((entry) =>
          entry.sessionId === 'job-1'
            ? { sessionId: 'job-1', status: 'in-progress', header: null, error }
            : entry,
        );
      },
    });
    const agent = world.agent({ provider: done(1), tools: [work.tool], store: storeOf(checkpoints) });
    const recovery = watchedRecovery(agent);
    await pass(world, 2 * INTERVAL_MS);
    await until(() => recovery.recovered.length === 1);
    expect([recovery.recovered, recovery.errors]).toEqual([['job-2: Done.'], []]);
    expect(await agent.pending()).toMatchObject([
      { sessionId: 'job-1', lastError: { code: 'LOUSHO_CHECKPOINT_CORRUPT' } },
    ]);
    await recovery.stop();
  });
});

describe('callbacks', () => {
  afterEach(() => vi.restoreAllMocks());

  async function givenAgent() {
    const clock = manualClock();
    const ports = testPorts(clock);
    const store = memoryStore({ ports });
    const world = {
      agent: (config: object) => createAgent({ provider: done(0), store, ports, ...config }),
    } as World;
    await givenInterrupted(world, ['job-1', 'job-2'], failingTool(2));
    return { clock, agent: world.agent({ provider: done(2), tools: [spyTool('work').tool] }) };
  }

  it('that throw or reject are told to onError, then to the console, and hold nothing up', async () => {
    const complained = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const { agent } = await givenAgent();
    const recovery = watchedRecovery(agent, {
      onRecovered(run) {
        if (run.sessionId === 'job-1') throw new Error('callback 1');
        return Promise.reject(new Error('callback 2'));
      },
      onError: async (error) => {
        throw error;
      },
    });
    await until(() => complained.mock.calls.length === 2);
    await recovery.stop();
    await recovery.done;
    expect(recovery.recovered).toEqual(['job-1: Done.', 'job-2: Done.']);
    expect(recovery.errors).toEqual(['job-1: Error: callback 1', 'job-2: Error: callback 2']);
    expect(complained.mock.calls.map(([, error]) => String(error))).toEqual([
      'Error: callback 1',
      'Error: callback 2',
    ]);
  });

  it('that take for ever keep no run waiting; done waits for them', async () => {
    const { clock, agent } = await givenAgent();
    const gate = deferred();
    const recovery = watchedRecovery(agent, { concurrency: 1, onRecovered: () => gate.promise });
    await until(() => recovery.recovered.length === 2);
    await recovery.stop();
    let isDone = false;
    void recovery.done.then(() => (isDone = true));
    await clock.advance(1_000);
    expect(isDone).toBe(false);
    gate.resolve();
    await letPass(clock, recovery.done);
  });
});

describe('what recover() needs', () => {
  afterEach(() => vi.restoreAllMocks());
  const clock = manualClock();
  const whole = memoryStore({ ports: testPorts(clock) });
  const agentOn = (checkpoints: CheckpointStore | undefined): Agent =>
    createAgent({
      provider: done(0),
      ports: testPorts(clock),
      ...(checkpoints === undefined ? undefined : { store: storeOf(checkpoints) }),
    });
  const codeOf = (agent: Agent, options?: RecoverOptions) => {
    const { code, details } = thrown(() => void agent.recover(options));
    return [code, (details as { option?: string }).option];
  };

  it('is a store that it can list: without one it throws at once, as pending() rejects', () => {
    expect(codeOf(agentOn(undefined))).toEqual(['LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE', undefined]);
    expect(codeOf(agentOn(threeMethods(whole.checkpoints)))).toEqual([
      'LOUSHO_CONFIG_INVALID',
      'store.checkpoints.list',
    ]);
  });

  it.each<[string, unknown]>([
    ['intervalMs', 0],
    ['intervalMs', Infinity],
    ['intervalMs', '1000'],
    ['concurrency', 0],
    ['concurrency', 1.5],
    ['maxAttempts', 0],
    ['onRecovered', 'log'],
    ['onError', {}],
    ['interval', 1_000],
  ])('is an option %s that is not %j', (option, value) => {
    expect(codeOf(agentOn(whole.checkpoints), { [option]: value })).toEqual([
      'LOUSHO_CONFIG_INVALID',
      option,
    ]);
  });

  it('is a word of its own on a store that shows what was saved after a while; then young runs are left alone', async () => {
    const ownClock = manualClock();
    const ports = testPorts(ownClock);
    const store = memoryStore({ ports });
    const eventual = checkpointsWith(store.checkpoints, {
      claims: { leases: 'atomic', history: true, list: true, durable: 'memory', consistency: 'eventual' },
    });
    const world = {
      agent: (config: object) =>
        createAgent({ provider: done(0), store: storeOf(eventual), ports, ...config }),
    } as World;
    await givenInterrupted(world, ['job-1'], failingTool(1));
    const agent = world.agent({ provider: done(1), tools: [spyTool('work').tool] });
    expect(codeOf(agent)).toEqual(['LOUSHO_CONFIG_INVALID', 'eventualConsistency']);
    expect(codeOf(agent, { eventualConsistency: false })).toEqual([
      'LOUSHO_CONFIG_INVALID',
      'eventualConsistency',
    ]);
    const recovery = watchedRecovery(agent, { eventualConsistency: true, intervalMs: 1_000 });
    await ownClock.advance(89_000);
    expect(recovery.recovered).toEqual([]);
    await ownClock.advance(1_000);
    await until(() => recovery.recovered.length === 1);
    await recovery.stop();
  });

  it.each<['none' | 'best-effort', RegExp]>([
    ['none', /no leases/],
    ['best-effort', /best effort/],
  ])('is told once for a store whose leases are %s', async (leases, words) => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const methods = ['acquireLease', 'renewLease', 'releaseLease', 'saveIfLeased'] as const;
    const base = leases === 'none' ? checkpointsWithout(whole.checkpoints, ...methods) : whole.checkpoints;
    const checkpoints = checkpointsWith(base, {
      claims: { leases, history: true, list: true, durable: 'memory', consistency: 'strong' },
    });
    for (let times = 0; times < 2; times += 1) await agentOn(checkpoints).recover().stop();
    expect(warned.mock.calls).toEqual([[expect.stringMatching(words)]]);
  });

  it('is one process on a store without leases: two run the same call', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const ports = testPorts(manualClock());
    const store = memoryStore({ ports });
    const leaseless = () =>
      checkpointsWithout(
        { ...store.checkpoints },
        'acquireLease',
        'renewLease',
        'releaseLease',
        'saveIfLeased',
      );
    const gate = deferred();
    const work = spyTool('work', () => gate.promise);
    const agentIn = (config: object) =>
      createAgent({ provider: done(1), store: storeOf(leaseless()), ports, ...config });
    await givenInterrupted({ agent: agentIn } as World, ['job-1'], failingTool(1));
    const loops = [1, 2].map(() => watchedRecovery(agentIn({ tools: [work.tool] })));
    await until(() => work.runs.length === 2);
    gate.resolve();
    for (const loop of loops) await loop.stop();
  });
});
