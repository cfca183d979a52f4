/** An agent that opens the store below an encrypted one: what is sealed it neither reads, nor sends to a model, nor changes. */
import { defineTool, type AgentStore, type FullAgentStore } from '@lousho/contract';
import { createAgent, type Agent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { encryptedStore } from '../src/index.ts';
import { contentOf } from './support/filled-store.ts';
import { testKey } from './support/keys.ts';

/** By the number of the model's words so far: an answer, then a call that waits. */
const script = ['Hello.', { toolCalls: [{ name: 'charge' }] }, 'Charged.'];

function agentOver(store: AgentStore, charged: string[] = []) {
  const charge = defineTool({
    name: 'charge',
    description: 'Charges the card.',
    input: { type: 'object' },
    needsApproval: true,
    execute: () => charged.push('charge'),
  });
  const provider = mockModel(script, { answerBy: 'step' });
  return { agent: createAgent({ store, provider, tools: [charge] }), provider };
}

/** A conversation at rest, one whose turn waits, and a finished run, all sealed; and an agent that has no key. */
async function givenSealed(below: FullAgentStore = memoryStore()) {
  const { agent } = agentOver(encryptedStore(below, [testKey('2026-01')]));
  await agent.session({ id: 'at-rest' }).send('Hi.');
  await agent.session({ id: 'waits' }).send('Hi.');
  const { approvalId = '' } = await agent.session({ id: 'waits' }).send('Charge.');
  await agent.send('Hi.', { sessionId: 'order-7' });
  const charged: string[] = [];
  return { below, approvalId, charged, ...agentOver(below, charged) };
}
type Given = Awaited<ReturnType<typeof givenSealed>>;

const calls: readonly (readonly [string, (agent: Agent, given: Given) => Promise<unknown>])[] = [
  ['a turn of a conversation', (agent) => agent.session({ id: 'at-rest' }).send('And now?')],
  ['a turn behind one that waits', (agent) => agent.session({ id: 'waits' }).send('And now?')],
  ['the transcript', (agent) => agent.session({ id: 'at-rest' }).messages()],
  ['the steps of a conversation', (agent) => agent.session({ id: 'at-rest' }).history()],
  ['a fork of a conversation', (agent) => agent.session({ id: 'at-rest' }).fork({ fromStep: 0 })],
  ['the end of a conversation', (agent) => agent.session({ id: 'at-rest' }).clear()],
  ['what is unfinished', (agent) => agent.session({ id: 'waits' }).pending()],
  ['discarding a turn', (agent) => agent.session({ id: 'waits' }).discardPending()],
  ['discarding a run', (agent) => agent.discard('order-7')],
  ['a run', (agent) => agent.send('And now?', { sessionId: 'order-7' })],
  ['going on with a run', (agent) => agent.resume('order-7')],
  ['a fork of a run', (agent) => agent.fork('order-7', { fromStep: 1 })],
  ['an approval', (agent, { approvalId }) => agent.approvals.get(approvalId)],
  ['a decision', (agent, { approvalId }) => agent.approvals.resolve({ id: approvalId, approved: true })],
];

describe('an agent without the key', () => {
  it.each(calls)('is refused %s, asks no model, and leaves everything as it was', async (_what, call) => {
    const given = await givenSealed();
    const before = await contentOf(given.below);
    await expect(call(given.agent, given)).rejects.toMatchObject({
      code: 'LOUSHO_STORE_KEY_UNKNOWN',
      details: { keyId: '2026-01' },
    });
    expect(await contentOf(given.below)).toEqual(before);
    expect(given.provider.calls).toEqual([]);
    expect(given.charged).toEqual([]);
  });

  it('is refused a conversation also in a store that keeps it among its checkpoints', async () => {
    const { checkpoints } = memoryStore();
    await agentOver(encryptedStore({ checkpoints }, [testKey('2026-01')]))
      .agent.session({ id: 'chat' })
      .send('Hi.');
    const before = await checkpoints.list();
    const { agent, provider } = agentOver({ checkpoints });
    await expect(agent.session({ id: 'chat' }).send('And now?')).rejects.toMatchObject({
      code: 'LOUSHO_STORE_KEY_UNKNOWN',
    });
    expect(await checkpoints.list()).toEqual(before);
    expect(provider.calls).toEqual([]);
  });

  it('shows nobody an approval whose call cannot be read, and lists that its run waits', async () => {
    const { agent } = await givenSealed();
    expect(await agent.approvals.list()).toEqual([]);
    expect(await agent.pending()).toMatchObject([{ sessionId: 'waits', status: 'awaiting-approval' }]);
  });

  it('cannot decide away an approval that carries its whole run', async () => {
    const approvals = memoryStore().approvals;
    const { approvalId = '' } = await agentOver(
      encryptedStore({ approvals }, [testKey('2026-01')]),
    ).agent.send([
      { role: 'user', content: 'Hi.' },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] },
      { role: 'user', content: 'Charge.' },
    ]);
    const { agent } = agentOver({ approvals });
    await expect(agent.approvals.resolve({ id: approvalId, approved: true })).rejects.toMatchObject({
      code: 'LOUSHO_STORE_KEY_UNKNOWN',
      details: { record: 'approval' },
    });
    expect(await approvals.load(approvalId)).not.toBeNull();
  });
});
