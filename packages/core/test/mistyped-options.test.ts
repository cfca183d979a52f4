/** An option under a name that nobody knows is refused: it would do nothing, and nobody would notice. */
import { mockModel } from '@lousho/testing';
import { memoryStore } from '@lousho/store-memory';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import {
  createAgent,
  defineTool,
  isSDKError,
  type Agent,
  type AgentConfig,
  type ApprovalDecision,
  type Approve,
  type ApproveOutcome,
  type SendOptions,
} from '../src/index.ts';

const provider = mockModel(['Hello.']);

it.each<[string, object]>([
  ['sytem', { provider, sytem: 'Be kind.' }],
  ['lease.ttl', { provider, lease: { ttl: 5 } }],
  ['retry.retries', { provider, retry: { retries: 5 } }],
])('createAgent names %s', (option, config) => {
  expect(refusalOf(() => createAgent(config as AgentConfig))).toMatchObject({ option });
});

it('does not repeat what a name that nobody knows was given: it may be a secret', () => {
  const error = refusalOf(() =>
    createAgent({ provider, providr: { apiKey: 'sk-1' } } as object as AgentConfig),
  );
  expect(error).not.toHaveProperty('got');
});

it('an inputId without a sessionId is refused: nothing is kept that a retry could find', async () => {
  const model = mockModel(['Hello.']);
  const agent = createAgent({ provider: model, store: memoryStore() });
  const refused = { code: 'LOUSHO_CONFIG_INVALID', details: { option: 'inputId' } };
  await expect(agent.send('hi', { inputId: 'event-1' })).rejects.toMatchObject(refused);
  expect(refusalOf(() => agent.stream('hi', { inputId: 'event-1' }))).toMatchObject(refused.details);
  expect(model.calls).toEqual([]);
});

it.each([undefined, null, 'provider'])('createAgent says what it takes when it is given %j', (config) => {
  const given = config as unknown as AgentConfig;
  expect(refusalOf(() => createAgent(given))).toMatchObject({ option: 'config' });
});

it.each<[string, unknown]>([
  ['sessionID', { sessionID: 'order-7' }],
  ['options', 'order-7'],
  ['options', null],
])('send, stream and runOnce name %s, and nothing runs', async (option, options) => {
  const model = mockModel(['Hello.']);
  const agent = createAgent({ provider: model, store: memoryStore() });
  const given = options as SendOptions;
  const refused = { code: 'LOUSHO_CONFIG_INVALID', details: expect.objectContaining({ option }) };
  await expect(agent.send('hi', given)).rejects.toMatchObject(refused);
  expect(refusalOf(() => agent.stream('hi', given))).toMatchObject({ option });
  if (typeof options === 'object')
    await expect(agent.runOnce('order-7', 'hi', { ...given, sessionID: 1 } as object)).rejects.toMatchObject({
      code: 'LOUSHO_CONFIG_INVALID',
    });
  expect(model.calls).toEqual([]);
});

describe('a paused run', () => {
  const REFUND = { approved: true, args: { cents: 5 } };

  async function paused(approve?: Approve) {
    const ran = vi.fn(async () => 'refunded');
    const refund = defineTool({
      name: 'refund',
      description: 'Pays back.',
      input: z.object({ cents: z.number() }),
      needsApproval: true,
      execute: ran,
    });
    const calls = mockModel([{ toolCalls: [{ name: 'refund', args: { cents: 900 } }] }, 'Done.']);
    const agent = createAgent({ provider: calls, tools: [refund], store: memoryStore(), approve });
    const result = await agent
      .send('Refund order 7.', { sessionId: 'order-7' })
      .catch((error: unknown) => error);
    return { agent, ran, result };
  }

  it.each<[string, object]>([
    ['decision.arg', { approved: true, arg: { cents: 5 } }],
    ['decision.reason', { approved: false, reason: 'Too much.' }],
  ])('is not decided with %s, which would be left out', async (option, decision) => {
    const { agent, ran } = await paused();
    const [request] = await agent.approvals.list();
    const given = { id: request?.id ?? '', ...decision } as ApprovalDecision;
    const refused = { code: 'LOUSHO_CONFIG_INVALID', details: { option } };
    await expect(agent.approvals.resolve(given)).rejects.toMatchObject(refused);
    await expect(agent.approvals.streamResolve(given).result).rejects.toMatchObject(refused);
    expect(await agent.approvals.list()).toEqual([request]);
    expect(ran).not.toHaveBeenCalled();
  });

  it('is not decided by an approve that gives a mistyped part', async () => {
    const { agent, ran, result } = await paused(
      () => ({ approved: true, arg: { cents: 5 } }) as ApproveOutcome,
    );
    expect(result).toMatchObject({ code: 'LOUSHO_CONFIG_INVALID', details: { option: 'decision.arg' } });
    expect(await agent.approvals.list()).toHaveLength(1);
    expect(ran).not.toHaveBeenCalled();
  });

  it('keeps who decided also when that was said in code', async () => {
    const { ran, result } = await paused(() => ({ ...REFUND, by: 'policy 3' }));
    expect(ran).toHaveBeenCalledExactlyOnceWith(
      { cents: 5 },
      expect.objectContaining({ approval: expect.objectContaining({ by: 'policy 3' }) }),
    );
    expect(result).toMatchObject({ finishReason: 'stop' });
  });

  it.each<[string, (agent: Agent) => unknown]>([
    ['sessionID', (agent) => agent.approvals.list({ sessionID: 'order-7' } as object)],
    ['timeout', (agent) => agent.approvals.resolve({ id: 'a', approved: true }, { timeout: 5 } as object)],
    ['timeout', (agent) => agent.resume('order-7', { timeout: 5 } as object)],
    ['at', (agent) => agent.fireSchedule({ id: 'a', input: 'hi', everyMs: 5_000 }, { at: 5 } as object)],
    ['timeout', (agent) => agent.shutdown({ timeout: 5 } as object)],
  ])('%s is no option of any call', async (option, act) => {
    const { agent } = await paused();
    await expect(act(agent)).rejects.toMatchObject({ code: 'LOUSHO_CONFIG_INVALID', details: { option } });
  });
});

it('an option that is there but undefined is none', async () => {
  const agent = createAgent({ provider: mockModel(['Hello.']), ...{ later: undefined } });
  const options = { later: undefined } as SendOptions;
  expect(await agent.send('hi', options)).toMatchObject({ text: 'Hello.' });
});

function refusalOf(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_CONFIG_INVALID')) return error.details;
    throw error;
  }
  throw new Error('It was not refused.');
}
