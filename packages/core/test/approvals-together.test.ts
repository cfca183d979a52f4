/** Several calls of one response that wait: they pause together and go on together. */
import { mockModel, type MockResponse } from '@lousho/testing';
import { expect, it } from 'vitest';
import { expectValid, refusal, resultOfCall, results } from './support/read.ts';
import { gatedTool, spyTool } from './support/tools.ts';
import { until } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

onEveryStore('several gated calls of one response', (world) => {
  const askForAll: MockResponse = {
    toolCalls: ['a', 'b', 'c', 'd'].map((name) => ({ name, id: `call_${name}` })),
  };

  /** `a` and `c` are free, `b` and `d` wait. */
  async function givenPausedOnBAndD(...answers: readonly MockResponse[]) {
    const tools = { a: spyTool('a'), b: gatedTool('b'), c: spyTool('c'), d: gatedTool('d') };
    const model = mockModel([askForAll, ...answers]);
    const agent = world.agent({ provider: model, tools: Object.values(tools).map(({ tool }) => tool) });
    const paused = await agent.send('go', { sessionId: 'job-1' });
    const [idB = '', idD = ''] = paused.approvalIds ?? [];
    const runs = () => Object.values(tools).map((tool) => tool.runs.length);
    return { tools, model, agent, paused, idB, idD, runs };
  }

  it('pause together, in call order, when the free ones have run', async () => {
    const { agent, paused, idB, idD, runs } = await givenPausedOnBAndD();
    expect(runs()).toEqual([1, 0, 1, 0]);
    expect(paused.approvalId).toBe(idB);
    expect(paused.approvalIds).toHaveLength(2);
    expect(await agent.approvals.list()).toMatchObject([
      { id: idB, toolName: 'b' },
      { id: idD, toolName: 'd' },
    ]);
  });

  it('run nothing until the last one is decided, then everything, in call order', async () => {
    const { model, agent, idB, idD, runs } = await givenPausedOnBAndD('Done.');
    const first = await agent.approvals.resolve({ id: idB, approved: true });
    expect(first).toMatchObject({ finishReason: 'awaiting-approval', approvalId: idD, approvalIds: [idD] });
    expect(runs()).toEqual([1, 0, 1, 0]);
    expect(model.calls).toHaveLength(1);
    expect(await agent.approvals.list()).toMatchObject([{ id: idD }]);
    const last = await agent.approvals.resolve({ id: idD, approved: true });
    expect(last.text).toBe('Done.');
    expect(runs()).toEqual([1, 1, 1, 1]);
    expect(results(model.calls[1]?.messages ?? []).map(({ result }) => result)).toEqual([
      'a done',
      'b done',
      'c done',
      'd done',
    ]);
    expectValid(last.messages);
  });

  it('can be decided in any order, one yes and one no', async () => {
    const { agent, idB, idD, runs } = await givenPausedOnBAndD('Done.');
    await agent.approvals.resolve({ id: idD, approved: true });
    const last = await agent.approvals.resolve({ id: idB, approved: false, note: 'too dear' });
    expect(runs()).toEqual([1, 0, 1, 1]);
    expect(results(last.messages).map(({ kind }) => kind)).toEqual([
      undefined,
      'rejected',
      undefined,
      undefined,
    ]);
    expect(resultOfCall(last.messages, 'call_b')?.result).toMatchObject({ note: 'too dear' });
  });

  it('decided at one moment in two processes both count', async () => {
    const { tools, idB, idD, runs, agent } = await givenPausedOnBAndD('Done.');
    const other = world.otherProcess().agent({
      provider: mockModel(['Done.']),
      tools: Object.values(tools).map(({ tool }) => tool),
    });
    const both = Promise.all([
      agent.approvals.resolve({ id: idB, approved: true }),
      other.approvals.resolve({ id: idD, approved: true }),
    ]);
    let isSettled = false;
    void both.finally(() => (isSettled = true)).catch(() => undefined);
    await until(async () => {
      await world.clock.advance(25);
      return isSettled;
    });
    const ends = (await both).map(({ finishReason }) => finishReason).sort();
    expect(ends).toEqual(['awaiting-approval', 'stop']);
    expect(runs()).toEqual([1, 1, 1, 1]);
  });

  it('say of one that is decided already that it is, while the other one waits', async () => {
    const { agent, idB } = await givenPausedOnBAndD();
    await agent.approvals.resolve({ id: idB, approved: true, by: 'ann' });
    const error = await refusal(
      agent.approvals.resolve({ id: idB, approved: true }),
      'LOUSHO_APPROVAL_DECIDED',
    );
    expect(error.details).toMatchObject({ approved: true, by: 'ann' });
    expect(await agent.approvals.get(idB)).toBeUndefined();
  });

  it('that are rejected leave the free calls of the response alone', async () => {
    const a = spyTool('a');
    const b = gatedTool('b');
    const c = spyTool('c');
    const model = mockModel([
      { toolCalls: [{ name: 'a' }, { name: 'b', id: 'call_b' }, { name: 'c' }] },
      'Done.',
    ]);
    const agent = world.agent({ provider: model, tools: [a.tool, b.tool, c.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    await agent.approvals.resolve({ id, approved: false, note: 'no' });
    expect([a, b, c].map(({ runs }) => runs.length)).toEqual([1, 0, 1]);
    expect(model.calls).toHaveLength(2);
    expect(results(model.calls[1]?.messages ?? []).map(({ kind }) => kind)).toEqual([
      undefined,
      'rejected',
      undefined,
    ]);
  });

  it('without a sessionId are decided one by one from their records', async () => {
    const tools = { a: gatedTool('a'), b: gatedTool('b') };
    const model = mockModel([{ toolCalls: [{ name: 'a' }, { name: 'b' }] }, 'Done.']);
    const agent = world.agent({ provider: model, tools: [tools.a.tool, tools.b.tool] });
    const paused = await agent.send('go');
    const [idA = '', idB = ''] = paused.approvalIds ?? [];
    expect(await agent.approvals.resolve({ id: idB, approved: true })).toMatchObject({ approvalIds: [idA] });
    const result = await agent.approvals.resolve({ id: idA, approved: false });
    expect(result.text).toBe('Done.');
    expect([tools.a.runs.length, tools.b.runs.length]).toEqual([0, 1]);
    expect(await agent.approvals.list()).toEqual([]);
  });
});
