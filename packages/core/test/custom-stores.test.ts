/** A store of somebody else: three methods are enough, and what a store cannot do is said by name. */
import type { CheckpointStore } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { expectValid, refusal, rejection, thrown } from './support/read.ts';
import { checkpointsWithout, storeOf, threeMethods, watched } from './support/stores.ts';
import { failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { letPass } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

onEveryStore('a store of three methods', (world) => {
  it('is enough for runs, resumes and approvals', async () => {
    const work = failingOnceTool('work');
    const charge = gatedTool('charge');
    const store = storeOf(threeMethods(world.checkpoints), { approvals: world.store.approvals });
    const model = mockModel([
      { toolCalls: [{ name: 'work' }] },
      { toolCalls: [{ name: 'charge' }] },
      'Done.',
    ]);
    const agent = world.agent({ store, provider: model, tools: [work.tool, charge.tool] });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    const paused = await agent.resume('job-1');
    expect(paused?.finishReason).toBe('awaiting-approval');
    expect(await agent.approvals.list()).toMatchObject([{ id: paused?.approvalId }]);
    const result = await agent.approvals.resolve({ id: paused?.approvalId ?? '', approved: true });
    expect(result.text).toBe('Done.');
    expectValid(result.messages);
    expect([work.runs.length, charge.runs.length]).toEqual([2, 1]);
  });

  it('runs without leases', async () => {
    const methods: unknown[] = [];
    const checkpoints = watched(threeMethods(world.checkpoints), (method) => methods.push(method));
    const agent = world.agent({ store: storeOf(checkpoints), provider: mockModel(['Hello.']) });
    await agent.send('hi', { sessionId: 'chat-42' });
    expect(methods).toEqual(['load', 'save']);
  });

  it('may give undefined for a run that is not there', async () => {
    const load = async (id: string) => (await world.checkpoints.load(id)) ?? undefined;
    const store = storeOf({ ...threeMethods(world.checkpoints), load });
    const agent = world.agent({ store, provider: mockModel(['Hello.']) });
    expect(await agent.resume('chat-42')).toBeNull();
    expect((await agent.send('hi', { sessionId: 'chat-42' })).text).toBe('Hello.');
  });
});

onEveryStore('a store with acquireLease and releaseLease only', (world) => {
  /** Method names of one run, and the owner that each lease call gave. */
  function watchedLeases() {
    const calls: unknown[] = [];
    const owners = new Set<unknown>();
    const checkpoints = watched(
      checkpointsWithout(world.checkpoints, 'renewLease', 'saveIfLeased'),
      (method, args) => {
        calls.push(method);
        if (method === 'acquireLease' || method === 'releaseLease') owners.add(args[1]);
      },
    );
    return { calls, owners, store: storeOf(checkpoints, { approvals: world.store.approvals }) };
  }

  it('takes the lease before the record is read, again before each save, and gives it back', async () => {
    const { calls, owners, store } = watchedLeases();
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.']);
    await world
      .agent({ store, provider: model, tools: [spyTool('work').tool] })
      .send('go', { sessionId: 'job-1' });
    expect(calls).toEqual([
      'acquireLease',
      'load',
      ...['acquireLease', 'save'],
      ...['acquireLease', 'save'],
      ...['acquireLease', 'save'],
      'releaseLease',
    ]);
    expect(owners.size).toBe(1);
  });

  it('stops a run whose lease another process took, at its next save', async () => {
    const { store } = watchedLeases();
    const work = spyTool('work', async () => {
      await world.checkpoints.delete('job-1');
      await world.checkpoints.acquireLease('job-1', 'somebody else', 30_000);
    });
    const agent = world.agent({
      store,
      provider: mockModel([{ toolCalls: [{ name: 'work' }] }, 'never']),
      tools: [work.tool],
    });
    await refusal(letPass(world.clock, agent.send('go', { sessionId: 'job-1' })), 'LOUSHO_SESSION_BUSY');
    expect(await world.stored('job-1')).toBeNull();
  });

  it('may say true for a lease', async () => {
    const acquireLease: CheckpointStore['acquireLease'] = async (...args) =>
      (await world.checkpoints.acquireLease(...args)) !== false;
    const { checkpoints } = world;
    const releaseLease = (id: string, owner: string) => checkpoints.releaseLease(id, owner);
    const store = storeOf({ ...threeMethods(checkpoints), acquireLease, releaseLease });
    const agent = world.agent({ store, provider: mockModel(['Hello.']) });
    expect((await agent.send('hi', { sessionId: 'chat-42' })).text).toBe('Hello.');
    expect(await world.checkpoints.acquireLease('chat-42', 'next', 30_000)).not.toBe(false);
  });
});

onEveryStore('a store without an approvals part', (world) => {
  it('fails a gated call by name before it runs, and everything about approvals', async () => {
    const charge = gatedTool('charge');
    const store = storeOf(world.checkpoints);
    const agent = world.agent({
      store,
      provider: mockModel([{ toolCalls: [{ name: 'charge' }] }]),
      tools: [charge.tool],
    });
    const error = await refusal(
      agent.send('go', { sessionId: 'job-1' }),
      'LOUSHO_CONFIG_MISSING_APPROVAL_STORE',
    );
    expect(error.details).toEqual({ toolName: 'charge' });
    expect(charge.runs).toHaveLength(0);
    await refusal(agent.approvals.list(), 'LOUSHO_CONFIG_MISSING_APPROVAL_STORE');
    await refusal(agent.approvals.get('a.apr-00000000-1-0'), 'LOUSHO_CONFIG_MISSING_APPROVAL_STORE');
    const decision = { id: 'a.apr-00000000-1-0', approved: true };
    await refusal(agent.approvals.resolve(decision), 'LOUSHO_CONFIG_MISSING_APPROVAL_STORE');
    expect(thrown(() => agent.approvals.streamResolve(decision)).code).toBe(
      'LOUSHO_CONFIG_MISSING_APPROVAL_STORE',
    );
  });

  it('goes on when the agent gets one: the call is asked for, and nothing ran twice', async () => {
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'Done.']);
    const broken = world.agent({ store: storeOf(world.checkpoints), provider: model, tools: [charge.tool] });
    await rejection(broken.send('go', { sessionId: 'job-1' }));
    const agent = world.agent({ provider: model, tools: [charge.tool] });
    const paused = await agent.resume('job-1');
    await agent.approvals.resolve({ id: paused?.approvalId ?? '', approved: true });
    expect(charge.runs).toHaveLength(1);
  });
});

onEveryStore('a store without a checkpoints part', (world) => {
  it('runs what has no sessionId, and refuses what would be durable', async () => {
    const charge = gatedTool('charge');
    const { approvals } = world.store;
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'Done.']);
    const agent = world.agent({ store: { approvals }, provider: model, tools: [charge.tool] });
    const paused = await agent.send('go');
    expect((await agent.approvals.resolve({ id: paused.approvalId ?? '', approved: true })).text).toBe(
      'Done.',
    );
    const code = 'LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE';
    await refusal(agent.send('go', { sessionId: 'job-1' }), code);
    expect(thrown(() => agent.stream('go', { sessionId: 'job-1' })).code).toBe(code);
    await refusal(agent.resume('job-1'), code);
    await refusal(agent.pending(), code);
  });

  it('cannot decide for a run that is stored elsewhere, and leaves its approval as it was', async () => {
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge' }] }, 'Done.']);
    const whole = world.agent({ provider: model, tools: [charge.tool] });
    const { approvalId: id = '' } = await whole.send('go', { sessionId: 'job-1' });
    const before = await world.stored('job-1');
    const { approvals } = world.store;
    const agent = world.agent({ store: { approvals }, provider: model, tools: [charge.tool] });
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE');
    expect(charge.runs).toHaveLength(0);
    expect(await world.stored('job-1')).toEqual(before);
    expect((await whole.approvals.resolve({ id, approved: true })).text).toBe('Done.');
  });
});
