/** A run that is given up goes with all that hangs on it, and only while nobody executes it. */
import { SDKError } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { calling, delegate, scripted } from './support/delegating.ts';
import { refusal } from './support/read.ts';
import { checkpointsWith, storeOf } from './support/stores.ts';
import { gatedTool, spyTool } from './support/tools.ts';
import { later, until } from './support/wait.ts';
import { onEveryStore, type World } from './support/world.ts';

const sessionId = 'order-7';

/** A lead whose sub-agent waits for a person: two checkpoints, one approval, and one run beside them. */
async function givenPausedDelegation(world: World) {
  const sign = gatedTool('sign');
  const clerk = scripted('clerk', [calling('sign')], { tools: [sign.tool] });
  const agent = world.agent({
    provider: mockModel([delegate('clerk'), 'Other.', 'Fresh.']),
    subagents: [clerk.subagent],
  });
  const { approvalId: id = '' } = await agent.send('go', { sessionId });
  await agent.send('go', { sessionId: 'order-70' });
  return { agent, sign, id };
}

async function storedIds({ checkpoints }: Pick<World, 'checkpoints'>): Promise<string[]> {
  return (await checkpoints.list()).map((entry) => entry.sessionId).sort();
}

onEveryStore('agent.discard()', (world) => {
  it('drops a run with its sub-agents and approvals, and no other; its id is free again', async () => {
    const { agent, sign, id } = await givenPausedDelegation(world);
    expect(await storedIds(world)).toHaveLength(3);
    const other = world.otherProcess().agent({ provider: mockModel([]) });
    expect(await other.discard(sessionId)).toBe(true);
    expect(await storedIds(world)).toEqual(['order-70']);
    expect(await agent.approvals.list()).toEqual([]);
    await refusal(agent.approvals.resolve({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(await agent.send('go', { sessionId })).toMatchObject({ text: 'Fresh.' });
    expect(sign.runs).toEqual([]);
  });

  it('drops a run that nobody can read, and finds its sub-agents by their ids', async () => {
    const { agent } = await givenPausedDelegation(world);
    const damage = new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id: sessionId, record: 'checkpoint' });
    const checkpoints = checkpointsWith(world.checkpoints, {
      async load(id) {
        if (id === sessionId) throw damage;
        return world.checkpoints.load(id);
      },
    });
    const store = storeOf(checkpoints, { approvals: world.store.approvals });
    expect(await world.agent({ store, provider: mockModel([]) }).discard(sessionId)).toBe(true);
    expect(await storedIds(world)).toEqual(['order-70']);
    expect(await agent.approvals.list()).toEqual([]);
  });

  it('is refused while another process executes the run, and nothing is gone', async () => {
    const slow = spyTool('slow', () => new Promise(() => undefined));
    const executing = world.otherProcess().agent({
      provider: mockModel([calling('slow')]),
      tools: [slow.tool],
    });
    void later(executing.send('go', { sessionId }));
    await until(() => slow.runs.length === 1);
    const before = await world.stored(sessionId);
    await refusal(world.agent({ provider: mockModel([]) }).discard(sessionId), 'LOUSHO_SESSION_BUSY');
    expect(await world.stored(sessionId)).toEqual(before);
  });

  it('takes the unfinished turn of a session before a run of the same id, or what it is told', async () => {
    const sign = gatedTool('sign');
    const agent = world.agent({
      provider: mockModel([calling('sign'), calling('sign')]),
      tools: [sign.tool],
    });
    await agent.send('go', { sessionId: 'chat' });
    await agent.session({ id: 'chat' }).send('go');
    expect(await agent.discard('chat')).toBe(true);
    expect(await storedIds(world)).toEqual(['chat']);
    expect(await agent.discard('chat', { kind: 'session' })).toBe(false);
    expect(await agent.discard('chat', { kind: 'run' })).toBe(true);
    expect(await storedIds(world)).toEqual([]);
    expect(await agent.discard('chat')).toBe(false);
  });
});
