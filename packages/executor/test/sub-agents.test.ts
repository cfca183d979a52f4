/** Sub-agents with explicit wiring: the definition names them, and whoever decides gives it again. */
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import {
  AgentExecutor,
  ToolRegistry,
  resumeAfterApproval,
  streamAfterApproval,
  type AgentDefinition,
} from '../src/index.ts';
import { calling, givenStorage, need, noting, refusal } from './support.ts';

const delegate = calling(['task', { agent: 'cashier', prompt: 'Charge.' }]);

/** A lead whose cashier waits for a yes. */
async function givenPausedCashier() {
  const storage = givenStorage();
  const store = memoryStore();
  const charge = noting(storage, 'charge', undefined, { needsApproval: true });
  const cashier = mockModel([calling('charge'), 'Paid.']);
  const provider = mockModel([delegate, 'Done.']);
  const agent: AgentDefinition = {
    name: 'lead',
    subagents: [{ name: 'cashier', description: 'Handles money.', provider: cashier, tools: [charge] }],
  };
  const paused = await AgentExecutor.execute({
    ...{ agent, provider, input: 'go', sessionId: 'order-7' },
    checkpointStore: store.checkpoints,
    approvalStore: store.approvals,
  });
  return { storage, store, provider, agent, id: need(paused.approvalId) };
}

describe('a sub-agent with explicit wiring', () => {
  it('runs, waits, and goes on when the decision brings the definition', async () => {
    const { storage, store, provider, agent, id } = await givenPausedCashier();
    const [record] = await store.approvals.list();
    expect(record).toMatchObject({
      id,
      checkpointId: 'order-7',
      agentName: 'lead',
      subagentPath: ['cashier'],
    });
    const result = await resumeAfterApproval(
      { id, approved: true },
      store.approvals,
      new ToolRegistry(),
      provider,
      { agent },
      store.checkpoints,
    );
    expect(result).toMatchObject({ text: 'Done.', usage: { modelCalls: 4, delegated: { runs: 1 } } });
    expect(storage.effects).toEqual(['charge']);
  });

  it('is refused when the decision comes without it, and still waits', async () => {
    const { storage, store, provider, agent, id } = await givenPausedCashier();
    const before = await store.checkpoints.list();
    const without = resumeAfterApproval(
      { id, approved: true },
      store.approvals,
      new ToolRegistry(),
      provider,
      {},
      store.checkpoints,
    );
    await refusal(without, 'LOUSHO_RESUME_TOOL_MISSING');
    expect(await store.checkpoints.list()).toEqual(before);
    const run = streamAfterApproval(
      { id, approved: false },
      store.approvals,
      new ToolRegistry(),
      provider,
      { agent },
      store.checkpoints,
    );
    expect((await run.result).text).toBe('Done.');
    expect(storage.effects).toEqual([]);
  });

  it('that cannot be used is refused when the run is asked for', () => {
    const agent = { subagents: [{ name: 'cashier', description: '' }] };
    expect(() => AgentExecutor.stream({ agent, input: 'go', provider: mockModel([]) })).toThrow(
      expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' }),
    );
  });
});
