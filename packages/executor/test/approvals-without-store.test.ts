/** A run that nobody stores: when it waits for a person, the approval's record carries it. */
import { describe, expect, it } from 'vitest';
import { ephemeralApprovals } from '../src/wiring.ts';
import {
  calling,
  givenStorage,
  givenWorld,
  need,
  noting,
  refusal,
  resultIds,
  roles,
  type Setup,
} from './support.ts';

function givenShop(script: Setup['script'], more: Partial<Setup> = {}) {
  const storage = more.storage ?? givenStorage();
  const tools = [
    noting(storage, 'free'),
    noting(storage, 'later'),
    noting(storage, 'pay', undefined, { needsApproval: true }),
    noting(storage, 'mail', undefined, { needsApproval: true }),
  ];
  return givenWorld({ storage, tools, script: script ?? [], isDurable: false, ...more });
}

describe('a run without a store', () => {
  it('waits with everything that another process needs', async () => {
    const world = givenShop([calling('free', 'pay')], { agent: { name: 'clerk', instructions: 'Be kind.' } });
    const paused = await world.send('go', { businessState: { cart: 1 }, principal: { id: 'ann' } });
    expect(paused.finishReason).toBe('awaiting-approval');
    expect(paused).not.toHaveProperty('sessionId');
    expect(world.storage.store.saves).toEqual([]);
    const record = need(await world.approvals.load(need(paused.approvalId)));
    expect(record).not.toHaveProperty('sessionId');
    expect(record.snapshot).toMatchObject({
      remainingToolCalls: [],
      checkpoints: [
        {
          checkpoint: {
            status: 'awaiting-approval',
            businessState: { cart: 1 },
            principal: { id: 'ann' },
            usage: { modelCalls: 1 },
          },
        },
      ],
    });
    const other = world.onNewProcess({ script: ['Paid.'], agent: {} });
    const { agent: _agent, ...rest } = other.options();
    expect(rest.checkpointStore).toBeUndefined();
    const result = await other.decide({ id: record.id, approved: true });
    expect(result).toMatchObject({
      text: 'Paid.',
      steps: 2,
      usage: { modelCalls: 2 },
      businessState: { cart: 1 },
    });
    expect(roles(other.model.calls[0]?.messages)).toBe('system user assistant tool tool');
    expect(world.storage.effects).toEqual(['free', 'pay']);
    expect(await world.inbox()).toEqual([]);
  });

  it('takes the saved name, model and instructions when the decider names no agent', async () => {
    const world = givenShop([calling('pay')], {
      agent: { name: 'clerk', instructions: 'Be kind.', model: 'big' },
    });
    const paused = await world.send('go');
    const { agent: _agent, ...setup } = { agent: undefined, script: ['Paid.'] };
    const other = givenShop(setup.script, { storage: world.storage });
    const result = await other.decide({ id: need(paused.approvalId), approved: true });
    expect(result.agentName).toBe('clerk');
    expect(other.model.calls[0]).toMatchObject({
      model: 'big',
      messages: [{ content: 'Be kind.' }, {}, {}, {}],
    });
    expect(result.messages.filter(({ role }) => role === 'system')).toHaveLength(1);
  });

  it('with several calls carries each decision to the next', async () => {
    const world = givenShop([calling('pay', 'mail')]);
    const [pay, mail] = need((await world.send('go')).approvalIds);
    const first = await world.onNewProcess().decide({ id: need(mail), approved: false, note: 'no' });
    expect(first).toMatchObject({ finishReason: 'awaiting-approval', approvalIds: [pay] });
    const result = await world.onNewProcess({ script: ['done'] }).decide({ id: need(pay), approved: true });
    expect(result.text).toBe('done');
    expect(resultIds(result.messages)).toEqual(['call_pay', 'call_mail']);
    expect(world.storage.effects).toEqual(['pay']);
    expect(await world.inbox()).toEqual([]);
  });

  it('pauses again with a record of its own, in the inbox that the decider names', async () => {
    const world = givenShop([calling('pay')]);
    const paused = await world.send('go');
    const other = world.onNewProcess({ script: [calling('mail'), 'done'] });
    const second = ephemeralApprovals();
    const again = await other.decide(
      { id: need(paused.approvalId), approved: true },
      { approvalStore: second },
    );
    expect(again.finishReason).toBe('awaiting-approval');
    expect(await world.inbox()).toEqual([]);
    expect(await second.list()).toMatchObject([{ id: again.approvalId, toolName: 'mail' }]);
  });

  it('that an older release paused at its first gated call does not run the calls behind it', async () => {
    const world = givenShop([calling('free', 'pay', 'later')]);
    const { approvalId } = await world.send('go');
    const record = need(await world.approvals.load(need(approvalId)));
    const { checkpoints } = need(record.snapshot);
    const old = need(checkpoints[0]);
    // It knew no early results either: "later" is as open as "pay".
    const checkpoint = { ...old.checkpoint, settledResults: [] };
    await world.approvals.save({ ...record, snapshot: { checkpoints: [{ ...old, checkpoint }] } });

    const result = await world.onNewProcess({ script: ['Paid.'] }).decide({ id: record.id, approved: true });
    expect(result.text).toBe('Paid.');
    expect(resultIds(result.messages)).toEqual(['call_free', 'call_pay', 'call_later']);
    expect(result.messages.at(-2)).toMatchObject({ content: [{ isError: true, kind: 'not-run' }] });
    expect(world.storage.effects).toEqual(['free', 'later', 'pay']);
  });

  it('whose record is damaged is refused, and the record stays', async () => {
    const world = givenShop([calling('pay')]);
    const { approvalId } = await world.send('go');
    const record = need(await world.approvals.load(need(approvalId)));
    const old = need(need(record.snapshot).checkpoints[0]);
    const damaged = { ...old, checkpoint: { ...old.checkpoint, stepIndex: -1 } };
    await world.approvals.save({ ...record, snapshot: { checkpoints: [damaged] } });
    const deciding = world.onNewProcess().decide({ id: record.id, approved: true });
    await refusal(deciding, 'LOUSHO_CHECKPOINT_CORRUPT');
    expect(await world.inbox()).toHaveLength(1);
    expect(world.storage.effects).toEqual([]);
  });

  it('with sibling calls decided at one moment loses neither decision', async () => {
    const world = givenShop([calling('pay', 'mail'), 'done']);
    const [pay, mail] = need((await world.send('go')).approvalIds);
    const decided = await Promise.all([
      world.decide({ id: need(pay), approved: true }),
      world.decide({ id: need(mail), approved: true }),
    ]);
    expect(decided.map(({ finishReason }) => finishReason).sort()).toEqual(['awaiting-approval', 'stop']);
    expect([...world.storage.effects].sort()).toEqual(['mail', 'pay']);
    expect(await world.inbox()).toEqual([]);
  });

  it('decided by two at once goes on with one: the call runs once', async () => {
    const world = givenShop([calling('pay')]);
    const id = need((await world.send('go')).approvalId);
    const ends = await Promise.allSettled(
      [1, 2].map(() => world.onNewProcess({ script: ['Paid.'] }).decide({ id, approved: true })),
    );
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(world.storage.effects).toEqual(['pay']);
  });

  it('decided a second time is gone', async () => {
    const world = givenShop([calling('pay'), 'Paid.']);
    const id = need((await world.send('go')).approvalId);
    await world.decide({ id, approved: true });
    await refusal(world.decide({ id, approved: true }), 'LOUSHO_APPROVAL_NOT_FOUND');
    expect(world.storage.effects).toEqual(['pay']);
  });

  it('may be finished by a person who changes the arguments', async () => {
    const world = givenShop([calling(['pay', { amount: 10 }]), 'Paid.']);
    const id = need((await world.send('go')).approvalId);
    const { toolCalls } = await world.decide({ id, approved: true, args: { amount: 5 } });
    expect(toolCalls).toMatchObject([{ args: { amount: 5 } }]);
  });
});

it('a stored run cannot be decided without its store, and nothing changes', async () => {
  const storage = givenStorage();
  const durable = givenShop([calling('pay')], { storage, isDurable: true });
  const id = need((await durable.send('go')).approvalId);
  const without = givenShop(['never'], { storage });
  await refusal(without.decide({ id, approved: true }), 'LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE');
  expect(await durable.inbox()).toEqual([id]);
  expect(storage.effects).toEqual([]);
});
