/** Several turns, processes and runs at once: a session records each turn once, and charges for every model call once. */
import { emptyUsage, type AgentStore, type SessionRecord } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { lines, refusal, rejection } from './support/read.ts';
import { checkpointsWith } from './support/stores.ts';
import { deferred, gatedTool, spyTool } from './support/tools.ts';
import { onEveryStore, type World } from './support/world.ts';

const emptyRecord: SessionRecord = {
  id: 'chat',
  revision: 0,
  turn: 0,
  messages: [],
  inputIds: [],
  usage: emptyUsage,
  savedAt: new Date(0).toISOString(),
};

/** A process that stands still just before it commits its first turn. */
function standingStill(world: World) {
  const reached = deferred();
  const goesOn = deferred();
  let isFirst = true;
  const { checkpoints, approvals, sessions } = world.store;
  const store: AgentStore = {
    checkpoints,
    approvals,
    sessions: {
      load: (id) => sessions.load(id),
      delete: (id) => sessions.delete(id),
      async saveIfRevision(record, revision) {
        if (isFirst) {
          isFirst = false;
          reached.resolve();
          await goesOn.promise;
        }
        return sessions.saveIfRevision(record, revision);
      },
    },
  };
  return { store, reached: reached.promise, goOn: () => goesOn.resolve() };
}

/** Somebody writes the transcript without the turn's lease. */
async function writeTheirs(world: World): Promise<void> {
  const { sessions } = world.store;
  const known = (await sessions.load('chat')) ?? emptyRecord;
  const messages = [...known.messages, { role: 'user', content: 'theirs' } as const];
  await sessions.saveIfRevision({ ...known, messages, turn: known.turn + 1 }, known.revision);
}

/** The input `also` comes while the only step of `go` runs, so that it begins a run of its own in the same turn. */
async function twoRunsInOneTurn(world: World, inTool: () => Promise<void> = async () => undefined) {
  const begun = deferred();
  const joined = deferred();
  const slow = spyTool('slow', async () => {
    begun.resolve();
    await joined.promise;
    await inTool();
  });
  const model = mockModel([{ toolCalls: [{ name: 'slow', id: 'call_s' }] }, 'Also.', 'Third.']);
  const agent = world.agent({ provider: model, tools: [slow.tool], maxSteps: 1 });
  const session = agent.session({ id: 'chat', turnPolicy: 'queue', limits: { maxModelCalls: 2 } });
  const sent = session.send('go');
  await begun.promise;
  const both = Promise.allSettled([sent, session.send('also')]);
  joined.resolve();
  return { model, session, results: await both };
}

onEveryStore('turns of a session at one moment', (world) => {
  it('records a turn once when its process stood still and another one went on with the session', async () => {
    const slow = standingStill(world);
    const agent = world.agent({ store: slow.store, provider: mockModel(['One.']) });
    const first = rejection(agent.session({ id: 'chat' }).send('one'));
    await slow.reached;
    // Its lease is gone, as after two periods without a heartbeat; the stored turn is what it was.
    const stored = await world.stored('chat.turn-0');
    await world.checkpoints.delete('chat.turn-0');
    if (stored !== null) await world.checkpoints.save('chat.turn-0', stored);
    const other = world.otherProcess().agent({ provider: mockModel(['Two.']) });
    const session = other.session({ id: 'chat' });
    await session.send('two');
    slow.goOn();
    expect(await first).toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    expect(await first).not.toMatchObject({ details: { executed: true } });
    expect(lines(await session.messages())).toEqual([
      'user one',
      'assistant One.',
      'user two',
      'assistant Two.',
    ]);
    expect((await world.store.sessions.load('chat'))?.usage.modelCalls).toBe(2);
  });

  it('charges the session for every run of a turn, and holds all of them against its limits', async () => {
    const { model, session, results } = await twoRunsInOneTurn(world);
    expect(results).toMatchObject([{ value: { text: 'Also.' } }, { value: { text: 'Also.' } }]);
    expect((await world.store.sessions.load('chat'))?.usage.modelCalls).toBe(2);
    expect(await session.send('third')).toMatchObject({ finishReason: 'limit' });
    expect(model.calls).toHaveLength(2);
  });

  it('forgets no run of a turn that comes behind what somebody else wrote', async () => {
    const { session, results } = await twoRunsInOneTurn(world, () => writeTheirs(world));
    expect(results).toMatchObject([{ reason: { details: { executed: true } } }, { status: 'rejected' }]);
    expect(lines(await session.messages())).toEqual([
      'user theirs',
      'user go',
      'assistant slow#call_s',
      'tool call_s null',
      'user also',
      'assistant Also.',
    ]);
    expect((await world.store.sessions.load('chat'))?.usage.modelCalls).toBe(2);
  });

  it('gives a retry of a turn that stands behind what somebody else wrote what that turn came to', async () => {
    const write = spyTool('write', () => writeTheirs(world));
    const model = mockModel([{ toolCalls: [{ name: 'write' }] }, 'Done.']);
    const session = world.agent({ provider: model, tools: [write.tool] }).session({ id: 'chat' });
    await refusal(session.send('mine', { inputId: 'in-1' }), 'LOUSHO_SESSION_BUSY');
    expect(await session.send('mine', { inputId: 'in-1' })).toMatchObject({
      text: 'Done.',
      toolCalls: [{ toolName: 'write' }],
    });
    expect(write.runs).toHaveLength(1);
  });

  it('says that a decision is an orphan when the conversation went on without its turn', async () => {
    const gated = gatedTool('gated');
    const model = mockModel([{ toolCalls: [{ name: 'gated' }] }]);
    const agent = world.agent({ provider: model, tools: [gated.tool] });
    const { approvalId = '' } = await agent.session({ id: 'chat' }).send('go');
    await writeTheirs(world);
    await refusal(agent.approvals.resolve({ id: approvalId, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(gated.runs).toHaveLength(0);
  });

  it('removes what a crash in another process left of a committed turn, however long this process lives', async () => {
    const model = mockModel(['One.', 'Two.', 'Three.']);
    const session = world.agent({ provider: model }).session({ id: 'chat' });
    await session.send('one');
    const { checkpoints, approvals, sessions } = world.otherProcess().store;
    const dying: AgentStore = {
      approvals,
      sessions,
      checkpoints: checkpointsWith(checkpoints, {
        delete: (id) =>
          id === 'chat.turn-1' ? Promise.reject(new Error('process died')) : checkpoints.delete(id),
      }),
    };
    await rejection(world.agent({ provider: model, store: dying }).session({ id: 'chat' }).send('two'));
    expect(await world.stored('chat.turn-1')).not.toBeNull();
    await session.send('three');
    expect(await world.checkpoints.list()).toEqual([]);
    expect(lines(await session.messages())).toHaveLength(6);
  });
});
