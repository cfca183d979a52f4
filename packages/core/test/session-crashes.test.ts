/** A crash before and after each store call of a session's turns loses no turn, repeats none, and leaves nothing behind. */
import { defineTool, isSDKError, type ExecutionResult } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { crashSweep, type CrashWorld } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { createAgent, type Agent } from '../src/index.ts';
import { lines } from './support/read.ts';
import { sweepWholeStores } from './support/sweep.ts';

/** By the number of the model's words so far: a call, its answer, a call that waits, its answer. */
const script = [
  { toolCalls: [{ name: 'look', id: 'call_l' }] },
  'Seen.',
  { toolCalls: [{ name: 'charge', id: 'call_c' }] },
  'Charged.',
];

function agentOf({ store, ports, effect }: CrashWorld): Agent {
  const tool = (name: string, needsApproval: boolean) =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: { type: 'object' },
      needsApproval,
      execute() {
        effect(name);
        return `${name} done`;
      },
    });
  return createAgent({
    store,
    ports,
    provider: mockModel(script, { answerBy: 'step' }),
    instructions: 'Sell.',
    tools: [tool('look', false), tool('charge', true)],
  });
}

async function take(agent: Agent, text: string): Promise<ExecutionResult> {
  try {
    return await settled(agent, await agent.session({ id: 'chat' }).send(text, { inputId: text }));
  } catch (error) {
    if (!isSDKError(error, 'LOUSHO_SESSION_AWAITING_APPROVAL')) throw error;
    return approve(agent, error.details.approvalId);
  }
}

async function settled(agent: Agent, result: ExecutionResult): Promise<ExecutionResult> {
  return result.approvalId === undefined ? result : approve(agent, result.approvalId);
}

function approve(agent: Agent, id: string): Promise<ExecutionResult> {
  return agent.approvals.resolve({ id, approved: true, by: 'ann' });
}

sweepWholeStores('a crash at every store call of a session', (createStore) => {
  it('leaves each turn in the transcript once, and nothing but the transcript', async () => {
    let transcript: readonly string[] = [];
    let calls = 0;
    const report = await crashSweep({
      createStore: createStore(),
      async run(world) {
        const agent = agentOf(world);
        await take(agent, 'look');
        await take(agent, 'charge');
        // Once more, after a restart of nothing: both are there already.
        await take(agent, 'charge');
        const session = agent.session({ id: 'chat' });
        transcript = lines(await session.messages());
        const record = await world.store.sessions?.load('chat');
        calls = record?.usage.modelCalls ?? 0;
      },
      check({ checkpoints, effects }) {
        expect(checkpoints.map(({ sessionId }) => sessionId)).toEqual([]);
        expect(effects.get('charge') ?? 0).toBeLessThanOrEqual(1);
        expect(transcript.filter((line) => line.startsWith('user'))).toEqual(['user look', 'user charge']);
        expect(transcript.slice(0, 4)).toEqual([
          'user look',
          'assistant look#call_l',
          'tool call_l "look done"',
          'assistant Seen.',
        ]);
        expect(transcript.at(-1)).toBe('assistant Charged.');
        expect(calls).toBe(4);
      },
    });
    expect(report.failures).toEqual([]);
    expect(report.points).toBeGreaterThan(40);
  }, 60_000);
});
