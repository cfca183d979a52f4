/** An agent that was changed by a deploy meets runs that an older one began: told, refused or ignored, before anything happens. */
import { defineTool } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { afterEach, beforeEach, expect, it, vi, type MockInstance } from 'vitest';
import { z } from 'zod';
import type { Agent } from '../src/index.ts';
import { eventsOf, lines, refusal, rejection, resultOfCall } from './support/read.ts';
import { emailTool, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { onEveryStore, type ProcessAgentConfig } from './support/world.ts';

onEveryStore('a changed agent', (world) => {
  let warn: MockInstance;
  beforeEach(() => {
    warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  });
  afterEach(() => warn.mockRestore());

  /** `job-1` was interrupted behind its only call, so no tool is needed to go on. */
  async function givenInterruptedRun() {
    const a = spyTool('a');
    const model = mockModel([{ toolCalls: [{ name: 'a' }] }, new Error('down')], { modelId: 'old-model' });
    const agent = world.agent({
      provider: model,
      tools: [a.tool],
      instructions: 'Old.',
      retry: { maxRetries: 0 },
    });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    return { a };
  }

  /** Another model, `b` instead of `a`. */
  function changedAgent(onAgentDrift?: ProcessAgentConfig['onAgentDrift'], events: unknown[] = []) {
    const b = spyTool('b');
    const model = mockModel(['Done.'], { modelId: 'new-model' });
    const agent = world.agent({
      provider: model,
      tools: [b.tool],
      instructions: 'New.',
      onAgentDrift,
      onEvent: (event) => event.type === 'agent.drift' && events.push(event),
    });
    return { agent, model, b };
  }

  const whatChanged = {
    model: { saved: 'old-model', current: 'new-model' },
    toolsAdded: ['b'],
    toolsRemoved: ['a'],
    toolsChanged: [],
    instructions: true,
  };

  const ways: readonly (readonly [string, (agent: Agent) => Promise<unknown>])[] = [
    ['resume', (agent) => agent.resume('job-1')],
    ['send', (agent) => agent.send('go', { sessionId: 'job-1' })],
    ['stream', (agent) => agent.stream([], { sessionId: 'job-1' }).result],
  ];

  it.each(ways)('is told of by one warning and one event, and %s goes on', async (_name, way) => {
    await givenInterruptedRun();
    const events: unknown[] = [];
    const { agent, model } = changedAgent(undefined, events);
    expect(await way(agent)).toMatchObject({ finishReason: 'stop', text: 'Done.' });
    expect(events).toEqual([expect.objectContaining({ type: 'agent.drift', seq: 1, ...whatChanged })]);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[0]).toMatch(/old-model.*new-model/);
    expect(lines(model.calls[0]?.messages ?? [])[0]).toBe('system New.');
  });

  it.each(ways)("is refused with 'error' by %s, and nothing changes", async (_name, way) => {
    await givenInterruptedRun();
    const before = await world.stored('job-1');
    const { agent, model } = changedAgent('error');
    const error = await refusal(way(agent), 'LOUSHO_AGENT_DRIFT');
    expect(error).toMatchObject({ retryable: false, details: { sessionId: 'job-1', drift: whatChanged } });
    expect(model.calls).toHaveLength(0);
    expect(await world.stored('job-1')).toEqual(before);
    expect(await world.saves('job-1')).toHaveLength(3);
  });

  it.each(ways)("is no matter with 'ignore' for %s", async (_name, way) => {
    await givenInterruptedRun();
    const events: unknown[] = [];
    const { agent } = changedAgent('ignore', events);
    expect(await way(agent)).toMatchObject({ text: 'Done.' });
    expect(events).toEqual([]);
    expect(warn).not.toHaveBeenCalled();
  });

  it('is no change when only its code, its tool order or its schema spelling is another', async () => {
    const first = [
      defineTool({
        name: 'a',
        description: 'A.',
        input: z.object({ x: z.string(), y: z.number() }),
        execute: () => 1,
      }),
      spyTool('b').tool,
    ];
    const second = [
      spyTool('b', () => 'other code').tool,
      defineTool({
        name: 'a',
        description: 'Other words.',
        input: z.object({ x: z.string(), y: z.number() }),
        execute: () => 2,
      }),
    ];
    const failing = failingOnceTool('failing');
    const script = [{ toolCalls: [{ name: 'failing' }] }, 'Done.'];
    await rejection(
      world
        .agent({ provider: mockModel(script), tools: [...first, failing.tool] })
        .send('go', { sessionId: 'job-1' }),
    );
    const agent = world.agent({
      provider: mockModel(['Done.']),
      tools: [failing.tool, ...second],
      onAgentDrift: 'error',
    });
    expect((await agent.resume('job-1'))?.text).toBe('Done.');
  });

  it('is no drift for a new turn of a finished run', async () => {
    await world
      .agent({ provider: mockModel(['Hello.'], { modelId: 'old' }), instructions: 'Old.' })
      .send('hi', { sessionId: 'a' });
    const agent = world.agent({
      provider: mockModel(['Again.'], { modelId: 'new' }),
      instructions: 'New.',
      onAgentDrift: 'error',
    });
    expect((await agent.send('and?', { sessionId: 'a' })).text).toBe('Again.');
    expect(warn).not.toHaveBeenCalled();
  });

  it('resumes a run without a fingerprint in silence', async () => {
    await givenInterruptedRun();
    const stored = await world.stored('job-1');
    if (stored === null) throw new Error('It is not stored.');
    const { fingerprint: _fingerprint, ...old } = stored;
    await world.checkpoints.save('job-1', old);
    const { agent } = changedAgent('error');
    expect((await agent.resume('job-1'))?.text).toBe('Done.');
  });

  it.each(['warn', 'error', 'ignore'] as const)(
    "that lacks the tool of an open call is refused, also with '%s'",
    async (onAgentDrift) => {
      const work = failingOnceTool('work');
      const model = mockModel([{ toolCalls: [{ name: 'work', id: 'call_1' }] }]);
      await rejection(
        world.agent({ provider: model, tools: [work.tool] }).send('go', { sessionId: 'job-1' }),
      );
      const before = await world.stored('job-1');
      const { agent } = changedAgent(onAgentDrift);
      for (const [, way] of ways) {
        const error = await refusal(way(agent), 'LOUSHO_RESUME_TOOL_MISSING');
        expect(error.details).toEqual({ sessionId: 'job-1', toolName: 'work', toolCallId: 'call_1' });
      }
      expect(await world.stored('job-1')).toEqual(before);
      const right = world.agent({ provider: mockModel(['Done.']), tools: [work.tool] });
      expect((await right.resume('job-1'))?.text).toBe('Done.');
    },
  );

  it("at a decision: 'error' refuses before the tool, and the right agent can still decide", async () => {
    const email = emailTool();
    const model = mockModel([{ toolCalls: [{ name: 'email', args: { to: 'a' } }] }, 'Sent.']);
    const right = world.agent({ provider: model, tools: [email.tool] });
    const { approvalId: id = '' } = await right.send('go', { sessionId: 'job-1' });
    const before = await world.stored('job-1');
    const wrong = world.agent({
      provider: mockModel([], { modelId: 'other' }),
      tools: [email.tool],
      onAgentDrift: 'error',
    });
    await refusal(wrong.approvals.resolve({ id, approved: true }), 'LOUSHO_AGENT_DRIFT');
    await refusal(wrong.approvals.streamResolve({ id, approved: true }).result, 'LOUSHO_AGENT_DRIFT');
    expect(await world.stored('job-1')).toEqual(before);
    expect(email.runs).toEqual([]);
    expect((await right.approvals.resolve({ id, approved: true })).text).toBe('Sent.');
  });

  it('at a decision: goes on with a warning, and with the instructions that the run began with', async () => {
    const email = emailTool();
    const first = mockModel([{ toolCalls: [{ name: 'email', args: { to: 'a' } }] }]);
    const agent = world.agent({ provider: first, tools: [email.tool], instructions: 'Old.' });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    const begun = (await world.stored('job-1'))?.fingerprint?.instructions;
    const model = mockModel(['Sent.']);
    const changed = world.agent({ provider: model, tools: [email.tool], instructions: 'New.' });
    const run = changed.approvals.streamResolve({ id, approved: true });
    const events = await eventsOf(run);
    expect(events[1]).toMatchObject({ type: 'agent.drift', instructions: true });
    expect(warn).toHaveBeenCalledTimes(1);
    expect(lines(model.calls[0]?.messages ?? [])[0]).toBe('system Old.');
    expect((await world.stored('job-1'))?.fingerprint?.instructions).toBe(begun);
  });

  it('at a decision: a missing tool refuses a yes, and not a no', async () => {
    const charge = gatedTool('charge');
    const model = mockModel([{ toolCalls: [{ name: 'charge', id: 'call_1' }] }]);
    const agent = world.agent({ provider: model, tools: [charge.tool] });
    const { approvalId: id = '' } = await agent.send('go', { sessionId: 'job-1' });
    const { agent: changed } = changedAgent('ignore');
    await refusal(changed.approvals.resolve({ id, approved: true }), 'LOUSHO_RESUME_TOOL_MISSING');
    expect(await changed.approvals.list()).toMatchObject([{ id }]);
    const result = await changed.approvals.resolve({ id, approved: false });
    expect(result.text).toBe('Done.');
    expect(resultOfCall(result.messages, 'call_1')?.kind).toBe('rejected');
  });
});
