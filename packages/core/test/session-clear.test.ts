/** `clear()` among other processes: what was said before it never comes back, what is said behind it is never lost. */
import { turnCheckpointId, type AgentStore } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { lines, refusal, rejection } from './support/read.ts';
import { checkpointsWith } from './support/stores.ts';
import { deferred, gatedTool } from './support/tools.ts';
import { onEveryStore, type World } from './support/world.ts';

/** An agent of a process that stands still at the first call for which `at` is true, before or behind what the store does. */
function stalling(world: World, method: 'load' | 'saveIfRevision', when: 'before' | 'behind') {
  const reached = deferred();
  const goesOn = deferred();
  let isFirst = true;
  const pause = async (): Promise<void> => {
    if (!isFirst) return;
    isFirst = false;
    reached.resolve();
    await goesOn.promise;
  };
  const { checkpoints, approvals, sessions } = world.otherProcess().store;
  const around = async <Value>(name: typeof method, work: () => Promise<Value>): Promise<Value> => {
    if (name === method && when === 'before') await pause();
    const value = await work();
    if (name === method && when === 'behind') await pause();
    return value;
  };
  const store: AgentStore = {
    checkpoints,
    approvals,
    sessions: {
      load: (id) => around('load', async () => sessions.load(id)),
      delete: (id) => sessions.delete(id),
      saveIfRevision: (record, revision) =>
        around('saveIfRevision', () => sessions.saveIfRevision(record, revision)),
    },
  };
  return { store, reached: reached.promise, goOn: () => goesOn.resolve() };
}

/** Its process died between the commit of this turn and the removal of the checkpoint. */
async function sayAndDie(world: World, text: string, turn: number): Promise<void> {
  const { checkpoints, approvals, sessions } = world.otherProcess().store;
  const dying = checkpointsWith(checkpoints, {
    delete: (id, options) =>
      id === turnCheckpointId('chat', turn)
        ? Promise.reject(new Error('process died'))
        : checkpoints.delete(id, options),
  });
  const agent = world.agent({
    provider: mockModel([`${text}!`]),
    store: { checkpoints: dying, approvals, sessions },
  });
  await rejection(agent.session({ id: 'chat' }).send(text));
  expect(await world.stored(turnCheckpointId('chat', turn))).not.toBeNull();
}

/** The lease of a stored turn ends, as after two periods without a heartbeat. */
async function loseLease(world: World, checkpointId: string): Promise<void> {
  const stored = await world.stored(checkpointId);
  await world.checkpoints.delete(checkpointId);
  if (stored !== null) await world.checkpoints.save(checkpointId, stored);
}

onEveryStore('a session that is cleared', (world) => {
  const session = (...answers: Parameters<typeof mockModel>[0]) =>
    world
      .otherProcess()
      .agent({ provider: mockModel(answers) })
      .session({ id: 'chat' });

  it('does not come back from what a crash left of its last turn', async () => {
    await sayAndDie(world, 'old', 0);
    const other = session('New.');
    await other.clear();
    expect(await world.checkpoints.list()).toEqual([]);
    await other.send('new');
    expect(lines(await other.messages())).toEqual(['user new', 'assistant New.']);
    expect(await world.checkpoints.list()).toEqual([]);
  });

  it('does not come back from a process that stood still before it committed its turn', async () => {
    const slow = stalling(world, 'saveIfRevision', 'before');
    const agent = world.agent({ store: slow.store, provider: mockModel(['Old.']) });
    const old = rejection(agent.session({ id: 'chat' }).send('old'));
    await slow.reached;
    await loseLease(world, 'chat.turn-0');
    const other = session('New.');
    await other.clear();
    slow.goOn();
    expect(await old).toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    expect(await other.messages()).toEqual([]);
    await other.send('new');
    expect(lines(await other.messages())).toEqual(['user new', 'assistant New.']);
  });

  it('keeps a turn that waits when a process stood still before it removed what an earlier one had left', async () => {
    await sayAndDie(world, 'old', 0);
    const slow = stalling(world, 'load', 'behind');
    const agent = world.agent({ store: slow.store, provider: mockModel(['Late.']) });
    const late = rejection(agent.session({ id: 'chat' }).send('late'));
    await slow.reached;
    const gated = gatedTool('gated');
    const process = world.otherProcess().agent({
      provider: mockModel([{ toolCalls: [{ name: 'gated' }] }, 'Done.']),
      tools: [gated.tool],
    });
    const chat = process.session({ id: 'chat' });
    await chat.clear();
    const { approvalId: id = '' } = await chat.send('pay');
    slow.goOn();
    expect(await late).toMatchObject({ code: 'LOUSHO_SESSION_AWAITING_APPROVAL' });
    expect(await process.approvals.resolve({ id, approved: true })).toMatchObject({ text: 'Done.' });
  });

  it('keeps nothing of a crash in a turn with the number of one before it was cleared', async () => {
    const living = session('One.', 'Two.');
    await living.send('one');
    await session().clear();
    await sayAndDie(world, 'old', (await world.store.sessions.load('chat'))?.turn ?? 0);
    await living.send('two');
    expect(await world.checkpoints.list()).toEqual([]);
    expect(lines(await living.messages())).toEqual([
      'user old',
      'assistant old!',
      'user two',
      'assistant Two.',
    ]);
  });

  it('keeps a turn that began while it was being cleared', async () => {
    await session('One.').send('one');
    const slow = stalling(world, 'load', 'behind');
    const cleared = rejection(
      world
        .agent({ provider: mockModel([]), store: slow.store })
        .session({ id: 'chat' })
        .clear(),
    );
    await slow.reached;
    const asked = deferred();
    const answers = deferred();
    const other = session('Two.', async () => {
      asked.resolve();
      await answers.promise;
      return 'Three.';
    });
    await other.send('two');
    const third = other.send('three');
    await asked.promise;
    slow.goOn();
    expect(await cleared).toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    answers.resolve();
    expect(await third).toMatchObject({ text: 'Three.' });
    expect(lines(await other.messages())).toEqual([
      ...['user one', 'assistant One.'],
      ...['user two', 'assistant Two.'],
      ...['user three', 'assistant Three.'],
    ]);
  });

  it('begins no turn while it is being cleared', async () => {
    await session('One.').send('one');
    const slow = stalling(world, 'saveIfRevision', 'before');
    const cleared = world
      .agent({ provider: mockModel([]), store: slow.store })
      .session({ id: 'chat' })
      .clear();
    await slow.reached;
    const other = session('Two.');
    await refusal(other.send('two'), 'LOUSHO_SESSION_BUSY');
    slow.goOn();
    await cleared;
    expect(await other.messages()).toEqual([]);
  });

  it('leaves its spend, its inputs and its id to whoever comes next', async () => {
    const chat = session('One.', 'Two.');
    await chat.send('hi', { inputId: 'in-1' });
    await chat.clear();
    expect(await chat.send('hi', { inputId: 'in-1' })).toMatchObject({ text: 'Two.' });
    expect((await world.store.sessions.load('chat'))?.usage.modelCalls).toBe(1);
    const fork = await chat.fork({ fromStep: 1, newSessionId: 'branch' });
    await refusal(chat.fork({ fromStep: 1, newSessionId: 'branch' }), 'LOUSHO_SESSION_EXISTS');
    await fork.clear();
    const again = await chat.fork({ fromStep: 1, newSessionId: 'branch' });
    expect(lines(await again.messages())).toEqual(['user hi', 'assistant Two.']);
  });

  it('is no session when there never was one', async () => {
    await session().clear();
    expect(await world.store.sessions.list?.()).toEqual([]);
  });
});
