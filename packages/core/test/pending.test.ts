/** `agent.pending()`: what an operator sees of the runs that are not over, and what can be done with each. */
import { LLMProviderError, SDKError } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { refusal, rejection } from './support/read.ts';
import { checkpointsWith, checkpointsWithout, storeOf, threeMethods } from './support/stores.ts';
import { deferred, emailTool, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

/** alice crashed, bob waits for a yes, job-1 finished. */
async function givenOneOfEach(world: World) {
  const work = failingOnceTool('work');
  const email = emailTool();
  const tools = [work.tool, email.tool];
  const script = [
    { toolCalls: [{ name: 'work' }] },
    { toolCalls: [{ name: 'email', args: { to: 'bob@example.com' } }] },
    'Done.',
  ];
  const agent = world.agent({ name: 'clerk', provider: mockModel(script), tools });
  await rejection(agent.send('work', { sessionId: 'alice' }));
  await world.clock.advance(1_000);
  const { approvalId: id = '' } = await agent.send('email', { sessionId: 'bob' });
  await agent.send('hi', { sessionId: 'job-1' });
  return { work, email, tools, id };
}

onEveryStore('pending', (world) => {
  it('lists exactly the runs that are not over, oldest save first, and finishing them empties it', async () => {
    const { work, email, tools, id } = await givenOneOfEach(world);
    const agent = world
      .otherProcess()
      .agent({ name: 'clerk', provider: mockModel(['Done.', 'Done.']), tools });
    const runs = await agent.pending();
    expect(runs.map(({ sessionId, status }) => [sessionId, status])).toEqual([
      ['alice', 'in-progress'],
      ['bob', 'awaiting-approval'],
    ]);
    for (const run of runs) {
      if (run.status === 'awaiting-approval') await agent.approvals.resolve({ id, approved: true });
      else await agent.resume(run.sessionId);
    }
    expect(await agent.pending()).toEqual([]);
    expect([work.runs.length, email.runs.length]).toEqual([2, 1]);
  });

  it('shows of a failed run what failed and how often, and of a paused one what it waits for', async () => {
    const { tools, id } = await givenOneOfEach(world);
    const agent = world.agent({ name: 'clerk', provider: mockModel([]), tools });
    const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
    expect(await agent.pending()).toEqual([
      {
        sessionId: 'alice',
        kind: 'run',
        checkpointId: 'alice',
        runId: (await world.stored('alice'))?.runId,
        agentName: 'clerk',
        step: 1,
        savedAt: at(0),
        status: 'in-progress',
        attempts: 1,
        lastError: {
          name: 'PropagatingToolError',
          code: 'LOUSHO_TOOL_PROPAGATED',
          message: 'process died',
          retryable: true,
          failedAt: at(0),
        },
      },
      {
        sessionId: 'bob',
        kind: 'run',
        checkpointId: 'bob',
        runId: (await world.stored('bob'))?.runId,
        agentName: 'clerk',
        step: 1,
        savedAt: at(1_000),
        status: 'awaiting-approval',
        approvalId: id,
        approvalIds: [id],
        approvalKind: 'tool',
      },
    ]);
    expect(await agent.approvals.list()).toMatchObject([{ id }]);
  });

  it('shows a run that executes right now as in progress, without an error', async () => {
    const gate = deferred();
    const slow = spyTool('slow', () => gate.promise);
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'slow' }] }, 'Done.']),
      tools: [slow.tool],
    });
    const sent = agent.send('go', { sessionId: 'job-1' });
    await until(() => slow.runs.length === 1);
    const [run] = await world
      .otherProcess()
      .agent({ provider: mockModel([]) })
      .pending();
    expect(run).toMatchObject({ sessionId: 'job-1', status: 'in-progress', step: 1 });
    expect(run).not.toHaveProperty('lastError');
    expect(run).not.toHaveProperty('attempts');
    gate.resolve();
    await sent;
  });

  it('shows a run that a person stopped as aborted', async () => {
    const stop = new AbortController();
    const agent = world.agent({ provider: mockModel([() => (stop.abort(), 'dropped')]) });
    await agent.send('go', { sessionId: 'job-1', signal: stop.signal });
    expect(await agent.pending()).toMatchObject([{ sessionId: 'job-1', aborted: true }]);
  });

  it('shows the turn of a session under the session, and no child, claim or other bookkeeping', async () => {
    const email = emailTool();
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'email', args: { to: 'a' } }] }]),
      tools: [email.tool],
    });
    await agent.send('go', { sessionId: 'job-1' });
    const stored = await world.stored('job-1');
    if (stored === null) throw new Error('It is not stored.');
    for (const id of ['chat.turn-3', 'job-1.sub-00000000-1-0', 'chat.paused', 'tick.fire'])
      await world.checkpoints.save(id, stored);
    const runs = await agent.pending();
    expect(runs.map(({ sessionId, kind, checkpointId }) => [sessionId, kind, checkpointId])).toEqual([
      ['chat', 'session', 'chat.turn-3'],
      ['job-1', 'run', 'job-1'],
    ]);
  });

  it('never lists a finished run, even of a store whose list ignores what is asked for', async () => {
    await givenOneOfEach(world);
    const list = async () => world.checkpoints.list();
    const store = storeOf(checkpointsWith(world.checkpoints, { list, listHeaders: undefined }));
    const runs = await world.agent({ store, provider: mockModel([]) }).pending();
    expect(runs.map(({ sessionId }) => sessionId)).toEqual(['alice', 'bob']);
  });

  it('is the same from a store that lists whole checkpoints only', async () => {
    await givenOneOfEach(world);
    const agent = world.agent({ provider: mockModel([]) });
    const store = storeOf(checkpointsWithout(world.checkpoints, 'listHeaders'));
    const other = world.agent({ store, provider: mockModel([]) });
    expect(await other.pending()).toEqual(await agent.pending());
  });

  it('needs a checkpoint store, and one that can list', async () => {
    const provider = mockModel([]);
    const { approvals } = world.store;
    const without = await refusal(
      world.agent({ store: { approvals }, provider }).pending(),
      'LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE',
    );
    expect(without.details).toEqual({ operation: 'agent.pending()' });
    const store = storeOf(threeMethods(world.checkpoints));
    const unlisted = await refusal(world.agent({ store, provider }).pending(), 'LOUSHO_CONFIG_INVALID');
    expect(unlisted.details).toMatchObject({ option: 'store.checkpoints.list' });
  });

  it('takes an error that does not say otherwise for one that may be tried again', async () => {
    const agent = world.agent({
      provider: mockModel([
        { toolCalls: [{ name: 'work' }] },
        new Error('strange'),
        new LLMProviderError('bad', { kind: 'api', retryable: false }),
      ]),
      tools: [spyTool('work').tool],
      retry: { maxRetries: 0 },
    });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    expect((await agent.pending())[0]?.lastError).toMatchObject({ retryable: true, message: 'strange' });
    await rejection(agent.resume('job-1'));
    expect((await agent.pending())[0]?.lastError).toMatchObject({ retryable: false, message: 'bad' });
  });
});

onEveryStore('a damaged record', (world) => {
  const damage = new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id: 'job-2', record: 'checkpoint' });

  /** The store as it is when the record of `job-2` cannot be read any more. */
  function storeWithDamage() {
    let isDamaged = true;
    const damaged = (sessionId: string) => isDamaged && sessionId === 'job-2';
    const error = damage.toJSON();
    const checkpoints = checkpointsWith(world.checkpoints, {
      async load(id) {
        if (damaged(id)) throw damage;
        return world.checkpoints.load(id);
      },
      async listHeaders(options) {
        const { status = [] } = options ?? {};
        const headers = (await world.checkpoints.listHeaders(options)).filter(
          ({ sessionId }) => !damaged(sessionId),
        );
        const entry = { sessionId: 'job-2', status: 'in-progress', header: null, error } as const;
        return isDamaged && status.includes('in-progress') ? [...headers, entry] : headers;
      },
      async delete(id, options) {
        isDamaged = false;
        return world.checkpoints.delete(id, options);
      },
    });
    return storeOf(checkpoints, { approvals: world.store.approvals });
  }

  async function givenDamage() {
    const store = storeWithDamage();
    const work = gatedTool('work');
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }, { toolCalls: [{ name: 'work' }] }, 'Fresh.']);
    const agent = world.agent({ store, provider: model, tools: [work.tool] });
    const plain = world.agent({ provider: model, tools: [work.tool] });
    await plain.send('go', { sessionId: 'job-1' });
    const { approvalId: id = '' } = await plain.send('go', { sessionId: 'job-2' });
    return { agent, store, model, work, id };
  }

  it('is listed with what is wrong, and hides no other run', async () => {
    const { agent } = await givenDamage();
    const runs = await agent.pending();
    expect(runs.find(({ sessionId }) => sessionId === 'job-1')?.status).toBe('awaiting-approval');
    expect(runs.find(({ sessionId }) => sessionId === 'job-2')).toEqual({
      sessionId: 'job-2',
      kind: 'run',
      checkpointId: 'job-2',
      step: 0,
      status: 'in-progress',
      lastError: expect.objectContaining({ code: 'LOUSHO_CHECKPOINT_CORRUPT', retryable: false }),
    });
  });

  it('refuses send, stream, resume and decisions, and starts nothing again', async () => {
    const { agent, model, work, id } = await givenDamage();
    const asked = model.calls.length;
    await refusal(agent.send('go', { sessionId: 'job-2' }), 'LOUSHO_CHECKPOINT_CORRUPT');
    await refusal(agent.stream('go', { sessionId: 'job-2' }).result, 'LOUSHO_CHECKPOINT_CORRUPT');
    await refusal(agent.resume('job-2'), 'LOUSHO_CHECKPOINT_CORRUPT');
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_CHECKPOINT_CORRUPT');
    expect([model.calls.length, work.runs.length]).toEqual([asked, 0]);
    expect(await agent.approvals.get(id)).toMatchObject({ id });
  });

  it('keeps its approval in the list: deciding it says what is wrong', async () => {
    const { agent, id } = await givenDamage();
    expect((await agent.approvals.list()).map((request) => request.id)).toContain(id);
  });

  it('can be dropped, and the id starts afresh', async () => {
    const { agent, store } = await givenDamage();
    await store.checkpoints?.delete('job-2');
    expect((await agent.send('go', { sessionId: 'job-2' })).text).toBe('Fresh.');
    expect((await agent.pending()).map(({ sessionId }) => sessionId)).toEqual(['job-1']);
  });
});
