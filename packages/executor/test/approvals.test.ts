/** Calls that wait for a person: one, several, decided in any order and in any process. */
import {
  PropagatingToolError,
  SessionAwaitingApprovalError,
  type ExecutionResult,
  type JsonValue,
  type ToolContext,
  type ToolFailure,
} from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  calling,
  deferred,
  givenStorage,
  givenWorld,
  need,
  noting,
  refusal,
  resultFor,
  resultIds,
  results,
  roles,
  until,
  type Setup,
  type World,
} from './support.ts';

type Seen = { readonly name: string; readonly args: JsonValue; readonly ctx: ToolContext };

/** Tools `free`, `other` and the gated `pay`, `mail`, `ship`, which show what they ran with. */
function givenShop(script: Setup['script'], more: Partial<Setup> = {}) {
  const storage = more.storage ?? givenStorage();
  const seen: Seen[] = [];
  const show = (name: string, gated: boolean) =>
    noting(
      storage,
      name,
      (args, ctx) => {
        seen.push({ name, args, ctx });
        return `${name} done`;
      },
      { needsApproval: gated },
    );
  const tools = [
    show('free', false),
    show('other', false),
    show('pay', true),
    show('mail', true),
    show('ship', true),
  ];
  const world = givenWorld({ storage, tools, script: script ?? [], ...more });
  return { world, seen };
}

const pausedIds = (result: ExecutionResult): readonly string[] => need(result.approvalIds);

describe('a gated call', () => {
  it('does not run: the run waits, and the inbox shows what would run', async () => {
    const { world } = givenShop([calling(['pay', { amount: 10 }]), 'Paid.']);
    const result = await world.send('pay 10');
    expect(result).toMatchObject({ finishReason: 'awaiting-approval', steps: 1 });
    expect(result.approvalIds).toEqual([result.approvalId]);
    expect(world.timesRun('pay')).toBe(0);
    const [record] = await need(world.storage.store.approvals).list();
    expect(record).toMatchObject({
      id: result.approvalId,
      kind: 'tool',
      sessionId: 'order-7',
      toolCallId: 'call_pay',
      toolName: 'pay',
      args: { amount: 10 },
      checkpointId: 'order-7',
    });
    expect(record).not.toHaveProperty('snapshot');
    expect(await world.stored()).toMatchObject({
      status: 'awaiting-approval',
      approvalIds: result.approvalIds,
    });
  });

  it('approved runs once, with what the person saw, and asks the model only then', async () => {
    const { world, seen } = givenShop([calling(['pay', { amount: 10 }]), 'Paid.']);
    const paused = await world.send('pay 10');
    const other = world.onNewProcess({ script: ['Paid.'] });
    const result = await other.decide({
      id: need(paused.approvalId),
      approved: true,
      by: 'ann',
      note: 'fine',
    });
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Paid.', steps: 2, usage: { modelCalls: 2 } });
    expect(seen).toMatchObject([
      {
        name: 'pay',
        args: { amount: 10 },
        ctx: { approval: { id: paused.approvalId, by: 'ann', note: 'fine' } },
      },
    ]);
    expect(resultFor(result.messages, 'pay')).toMatchObject({
      result: 'pay done',
      approval: { id: paused.approvalId, approved: true, by: 'ann', note: 'fine' },
    });
    expect(await world.inbox()).toEqual([]);
    expect(other.model.calls).toHaveLength(1);
  });

  it('approved is marked before it runs, then its result is saved, then the model is asked', async () => {
    const { world } = givenShop([calling('pay'), 'Paid.']);
    const paused = await world.send('pay');
    const { saves } = world.storage.store;
    const before = saves.length;
    await world.decide({ id: need(paused.approvalId), approved: true });
    expect(
      saves
        .slice(before)
        .map(({ status, startedToolCallIds, messages }) => [status, startedToolCallIds, roles(messages)]),
    ).toEqual([
      ['in-progress', [], 'user assistant'],
      ['in-progress', ['call_pay'], 'user assistant'],
      ['in-progress', [], 'user assistant tool'],
      ['finished', [], 'user assistant tool assistant'],
    ]);
  });

  it('rejected never runs: the model hears so, with the note', async () => {
    const { world } = givenShop([calling('pay'), 'Then not.']);
    const paused = await world.send('pay');
    const result = await world.decide({
      id: need(paused.approvalId),
      approved: false,
      note: 'Not today',
      args: { amount: 1 },
    });
    expect(world.timesRun('pay')).toBe(0);
    expect(resultFor(world.model.calls[1]?.messages, 'pay')).toMatchObject({
      kind: 'rejected',
      isError: true,
      result: { error: expect.stringContaining('did not run'), note: 'Not today' },
      approval: { approved: false },
    });
    expect(result.text).toBe('Then not.');
    expect(result.toolCalls[0]?.args).toEqual({});
  });

  it('that throws has an error result, and the run goes on', async () => {
    const storage = givenStorage();
    const pay = noting(
      storage,
      'pay',
      () => {
        throw new Error('payment gateway time-out');
      },
      { needsApproval: true },
    );
    const { world } = givenShop([calling('pay'), 'Sorry.'], { storage, tools: [pay] });
    const paused = await world.send('pay');
    const result = await world.decide({ id: need(paused.approvalId), approved: true });
    expect(resultFor(result.messages, 'pay')).toMatchObject({
      kind: 'execution',
      approval: { approved: true },
    });
    expect(result.finishReason).toBe('stop');
  });

  it('that rejects the run counts as begun: a resume does not run it again', async () => {
    const storage = givenStorage();
    const error = new PropagatingToolError('no money');
    const pay = noting(
      storage,
      'pay',
      () => {
        throw error;
      },
      { needsApproval: true },
    );
    const { world } = givenShop([calling('pay')], { storage, tools: [pay] });
    const paused = await world.send('pay');
    await expect(world.decide({ id: need(paused.approvalId), approved: true })).rejects.toBe(error);
    expect(await world.unfinished()).toMatchObject({ attempts: 1 });
    const result = need(await world.onNewProcess({ script: ['Sorry.'] }).resume());
    expect(resultFor(result.messages, 'pay').kind).toBe('interrupted');
    expect(world.timesRun('pay')).toBe(1);
  });

  it('whose model call afterwards fails is not asked about again', async () => {
    const { world } = givenShop([calling('pay'), new Error('down')], { retry: { maxRetries: 0 } });
    const paused = await world.send('pay');
    await refusal(world.decide({ id: need(paused.approvalId), approved: true }), 'LOUSHO_PROVIDER_ERROR');
    const result = await world.onNewProcess({ script: ['Paid.'] }).resume();
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Paid.' });
    expect(world.timesRun('pay')).toBe(1);
  });

  it('may be asked about again in the next step, under another id', async () => {
    const { world } = givenShop([calling('pay'), calling('pay'), 'Paid twice.']);
    const first = await world.send('pay');
    const second = await world.decide({ id: need(first.approvalId), approved: true });
    expect(second.finishReason).toBe('awaiting-approval');
    expect(second.approvalId).not.toBe(first.approvalId);
    expect(await world.inbox()).toEqual([second.approvalId]);
    expect((await world.decide({ id: need(second.approvalId), approved: true })).text).toBe('Paid twice.');
    expect(world.timesRun('pay')).toBe(2);
  });

  it('keeps new words out until it is decided', async () => {
    const { world } = givenShop([calling('pay'), 'Paid.', 'Hello.']);
    const paused = await world.send('pay');
    const stored = JSON.stringify(await world.stored());
    for (const attempt of [
      () => world.send('hello?'),
      () => world.send('pay'),
      () => world.send([]),
      () => world.resume(),
    ]) {
      const error = await refusal(attempt(), 'LOUSHO_SESSION_AWAITING_APPROVAL');
      expect(error).toBeInstanceOf(SessionAwaitingApprovalError);
      expect(error).toMatchObject({ sessionId: 'order-7', approvalId: paused.approvalId });
    }
    expect(JSON.stringify(await world.stored())).toBe(stored);
    expect(world.model.calls).toHaveLength(1);
    await world.decide({ id: need(paused.approvalId), approved: true });
    expect((await world.send('pay')).text).toBe('Hello.');
  });

  it('on an agent whose inbox is missing fails, and never runs', async () => {
    const { world } = givenShop([calling('pay')]);
    await refusal(world.send('pay', { approvalStore: undefined }), 'LOUSHO_CONFIG_MISSING_APPROVAL_STORE');
    expect(world.timesRun('pay')).toBe(0);
  });

  it('shows its id only when both the record and the pause are stored', async () => {
    const { world } = givenShop([calling('pay')]);
    const held = deferred();
    let isHeld = false;
    world.storage.store.beforeCall = (call, [, checkpoint]) => {
      if (call !== 'saveIfLeased' || (checkpoint as { status: string }).status !== 'awaiting-approval')
        return undefined;
      isHeld = true;
      return held.promise;
    };
    const sent = world.send('pay');
    await until(() => isHeld);
    expect(world.eventTypes()).not.toContain('approval.requested');
    held.resolve();
    await sent;
    expect(world.eventTypes()).toContain('approval.requested');
  });

  it('whose record cannot be stored rejects the run; a resume asks again under the same id', async () => {
    const { world } = givenShop([calling('pay')]);
    world.storage.store.beforeCall = (call) => {
      if (call === 'approvals.save') throw new Error('disk full');
    };
    await expect(world.send('pay')).rejects.toThrow('disk full');
    expect(await world.unfinished()).toMatchObject({ attempts: 1, approvals: [] });
    world.storage.store.beforeCall = () => undefined;
    const paused = need(await world.onNewProcess().resume());
    expect(paused.finishReason).toBe('awaiting-approval');
    expect(await world.inbox()).toEqual([paused.approvalId]);
  });
});

describe('approve with changes', () => {
  it('runs with them; transcript and model see them; the audit keeps what was proposed', async () => {
    const { world, seen } = givenShop([calling(['mail', { to: 'wrong' }]), 'Sent.']);
    const paused = await world.send('mail');
    const result = await world.decide({ id: need(paused.approvalId), approved: true, args: { to: 'right' } });
    expect(seen.map(({ args }) => args)).toEqual([{ to: 'right' }]);
    expect(result.toolCalls).toMatchObject([{ args: { to: 'right' } }]);
    expect(JSON.stringify(world.model.calls[1]?.messages[1])).toContain('right');
    expect(JSON.stringify(world.model.calls[1]?.messages[1])).not.toContain('wrong');
    expect(resultFor(result.messages, 'mail').approval).toMatchObject({ proposedArgs: { to: 'wrong' } });
  });

  it.each<readonly [string, unknown]>([
    ['that do not fit', { to: 7 }],
    ['that JSON cannot say', { to: 1n }],
  ])('%s is refused: nothing ran, and the right ones work', async (_what, args) => {
    const storage = givenStorage();
    const mail = noting(storage, 'mail', undefined, {
      needsApproval: true,
      input: z.object({ to: z.string() }),
    });
    const { world } = givenShop([calling(['mail', { to: 'wrong' }]), 'Sent.'], { storage, tools: [mail] });
    const { approvalId } = await world.send('mail');
    const stored = JSON.stringify(await world.stored());
    const error = await refusal(
      world.decide({ id: need(approvalId), approved: true, args: args as never }),
      'LOUSHO_TOOL_ARGS_INVALID',
    );
    expect(error.details).toMatchObject({ toolName: 'mail', approvalId, issues: [{ path: 'to' }] });
    expect(JSON.stringify(await world.stored())).toBe(stored);
    expect(await world.inbox()).toEqual([approvalId]);
    const result = await world.decide({ id: need(approvalId), approved: true, args: { to: 'right' } });
    expect(result.text).toBe('Sent.');
  });

  it('keeps what was proposed through a crash before the result', async () => {
    const { world } = givenShop([calling(['mail', { to: 'wrong' }])]);
    const paused = await world.send('mail');
    const crashing = world.onNewProcess({ diesAt: { call: 'saveIfLeased#2', when: 'before' } });
    await crashing.untilDead(
      crashing.decide({ id: need(paused.approvalId), approved: true, args: { to: 'right' } }),
    );
    const resumed = await crashing.afterCrash({ script: ['Sent.'] });
    const result = need(await resumed.resume());
    expect(result.toolCalls).toMatchObject([{ args: { to: 'right' }, result: 'mail done' }]);
    expect(resultFor(result.messages, 'mail').approval).toMatchObject({ proposedArgs: { to: 'wrong' } });
  });
});

describe('several calls of one response', () => {
  const several = calling('free', 'pay', 'other', 'mail');

  it('have the free ones run and recorded, then wait once for all the others, in call order', async () => {
    const { world } = givenShop([several]);
    const paused = await world.send('go');
    expect(world.storage.effects).toEqual(['free', 'other']);
    expect(pausedIds(paused)).toHaveLength(2);
    expect((await need(world.storage.store.approvals).list()).map(({ toolName }) => toolName).sort()).toEqual(
      ['mail', 'pay'],
    );
    const stored = need(await world.stored());
    expect(resultIds(stored.messages)).toEqual(['call_free']);
    expect(stored.settledResults.map(({ toolCallId }) => toolCallId)).toEqual(['call_other']);
    expect(paused.toolCalls.map(({ toolName }) => toolName)).toEqual(['free']);
  });

  it('go on waiting until the last is decided: nothing runs before, and the result names the rest', async () => {
    const { world } = givenShop([several, 'All done.']);
    const ids = pausedIds(await world.send('go'));
    const first = await world.onNewProcess().decide({ id: need(ids[1]), approved: false, note: 'no mail' });
    expect(first).toMatchObject({
      finishReason: 'awaiting-approval',
      approvalId: ids[0],
      approvalIds: [ids[0]],
    });
    expect(await world.inbox()).toEqual([ids[0]]);
    expect(world.storage.effects).toEqual(['free', 'other']);
    const last = world.onNewProcess({ script: ['All done.'] });
    const result = await last.decide({ id: need(ids[0]), approved: true });
    expect(result.text).toBe('All done.');
    expect(results(result.messages).map(({ toolName, kind }) => [toolName, kind])).toEqual([
      ['free', undefined],
      ['pay', undefined],
      ['other', undefined],
      ['mail', 'rejected'],
    ]);
    expect(last.model.calls).toHaveLength(1);
    expect(await world.inbox()).toEqual([]);
  });

  it('take each decision for its own call, whatever order they are decided in, each in another process', async () => {
    const { world, seen } = givenShop([calling(['pay', { n: 1 }], ['mail', { n: 2 }], ['ship', { n: 3 }])]);
    const [pay, mail, ship] = pausedIds(await world.send('go'));
    const left: number[] = [];
    for (const [id, args] of [
      [ship, { n: 33 }],
      [pay, { n: 11 }],
      [mail, { n: 22 }],
    ] as const) {
      await world.onNewProcess({ script: ['done'] }).decide({ id: need(id), approved: true, args });
      left.push((await world.inbox()).length);
    }
    expect(left).toEqual([2, 1, 0]);
    expect(seen.map(({ name, args }) => [name, args])).toEqual([
      ['pay', { n: 11 }],
      ['mail', { n: 22 }],
      ['ship', { n: 33 }],
    ]);
  });

  it('decided at one moment both count', async () => {
    const { world } = givenShop([calling('pay', 'mail')]);
    const [pay, mail] = pausedIds(await world.send('go'));
    const decided = await world.letTimePass(
      Promise.all([
        world.onNewProcess({ script: ['done'] }).decide({ id: need(pay), approved: true }),
        world.onNewProcess({ script: ['done'] }).decide({ id: need(mail), approved: true }),
      ]),
      25,
    );
    expect(decided.map(({ finishReason }) => finishReason).sort()).toEqual(['awaiting-approval', 'stop']);
    expect(await world.stored()).toMatchObject({ status: 'finished' });
    expect(world.storage.effects.sort()).toEqual(['mail', 'pay']);
  });

  it('one at a time are each marked just before they begin', async () => {
    const { world } = givenShop([calling('pay', 'mail')], { toolConcurrency: 1 });
    const [pay, mail] = pausedIds(await world.send('go'));
    await world.decide({ id: need(pay), approved: true });
    // 1 the decision, 2 the mark of `pay`; dies while its result is saved.
    const crashing = world.onNewProcess({ diesAt: { call: 'saveIfLeased#3', when: 'before' } });
    await crashing.untilDead(crashing.decide({ id: need(mail), approved: true }));
    const resumed = await crashing.afterCrash({ script: ['done'] });
    const result = need(await resumed.resume());
    expect(results(result.messages).map(({ kind }) => kind)).toEqual(['interrupted', undefined]);
    expect(world.storage.effects).toEqual(['pay', 'mail']);
    expect(await world.inbox()).toEqual([]);
  });

  it('leave a valid transcript whatever was decided', async () => {
    const { world } = givenShop([several, 'done']);
    const ids = pausedIds(await world.send('go'));
    await world.decide({ id: need(ids[0]), approved: false });
    const { messages } = await world.decide({ id: need(ids[1]), approved: true });
    expect(transcriptProblems(messages)).toEqual([]);
  });
});

describe('a decision that comes too late', () => {
  async function givenDecided() {
    const { world } = givenShop([calling('pay'), 'Paid.', calling('pay')]);
    const paused = await world.send('pay');
    const id = need(paused.approvalId);
    await world.decide({ id, approved: true, by: 'ann' });
    return { world, id };
  }

  it('is told who decided, and changes nothing', async () => {
    const { world, id } = await givenDecided();
    const stored = JSON.stringify(await world.stored());
    const error = await refusal(world.decide({ id, approved: false }), 'LOUSHO_APPROVAL_DECIDED');
    expect(error.details).toMatchObject({
      approvalId: id,
      approved: true,
      by: 'ann',
      decidedAt: '2026-01-01T00:00:00.000Z',
    });
    expect(JSON.stringify(await world.stored())).toBe(stored);
    expect(world.timesRun('pay')).toBe(1);
  });

  it('while the call runs is told so at once', async () => {
    const storage = givenStorage();
    const running = deferred<string>();
    const pay = noting(storage, 'pay', () => running.promise, { needsApproval: true });
    const { world } = givenShop([calling('pay'), 'Paid.'], { storage, tools: [pay] });
    const id = need((await world.send('pay')).approvalId);
    const first = world.decide({ id, approved: true });
    await until(() => world.timesRun('pay') === 1);
    await refusal(world.decide({ id, approved: false }), 'LOUSHO_APPROVAL_DECIDED');
    await refusal(world.onNewProcess().decide({ id, approved: false }), 'LOUSHO_APPROVAL_DECIDED');
    running.resolve('ok');
    expect((await first).text).toBe('Paid.');
  });

  it('at the very moment of another loses: one run goes on, the call runs once', async () => {
    const { world } = givenShop([calling('pay')]);
    const id = need((await world.send('pay')).approvalId);
    const both = await world.letTimePass(
      Promise.allSettled([
        world.onNewProcess({ script: ['Paid.'] }).decide({ id, approved: true }),
        world.onNewProcess({ script: ['Not paid.'] }).decide({ id, approved: false }),
      ]),
      25,
    );
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const winner = both.find((end) => end.status === 'fulfilled');
    expect(world.timesRun('pay')).toBe(winner?.value.text === 'Paid.' ? 1 : 0);
  });

  it('for a run that is gone, or another one by now, finds nothing that waits, and the record goes', async () => {
    const { world } = givenShop([calling('pay')]);
    const id = need((await world.send('pay')).approvalId);
    await world.checkpoints.delete('order-7');
    await refusal(world.decide({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(await world.inbox()).toEqual([]);
    const newer = world.onNewProcess({ script: [calling('pay')] });
    const later = await newer.send('pay again');
    const stored = JSON.stringify(await world.stored());
    await refusal(world.decide({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(JSON.stringify(await world.stored())).toBe(stored);
    expect(await world.inbox()).toEqual([later.approvalId]);
    expect(world.timesRun('pay')).toBe(0);
  });

  it.each(['never-was', 'order-7', '', '../evil', 'bogus id!', 'order-7.apr-x-1-1'])(
    'for "%s", which never was one, is told so',
    async (id) => {
      const { world } = givenShop([]);
      await refusal(world.decide({ id, approved: true }), 'LOUSHO_APPROVAL_NOT_FOUND');
    },
  );

  it('whose lease is held elsewhere leaves the approval undecided', async () => {
    const { world } = givenShop([calling('pay')]);
    const id = need((await world.send('pay')).approvalId);
    await world.checkpoints.acquireLease?.('order-7', 'somebody', 60_000);
    await world.letTimePass(refusal(world.decide({ id, approved: true }), 'LOUSHO_SESSION_BUSY'), 100);
    expect(await world.inbox()).toEqual([id]);
    expect(await world.stored()).toMatchObject({ status: 'awaiting-approval' });
  });

  it('about a call that is not the one that was shown is refused', async () => {
    const { world } = givenShop([calling(['pay', { amount: 10 }])]);
    const id = need((await world.send('pay')).approvalId);
    const stored = need(await world.stored());
    const forged = JSON.parse(
      JSON.stringify(stored).replaceAll('"amount":10', '"amount":1000'),
    ) as typeof stored;
    await world.checkpoints.save('order-7', forged);
    await refusal(world.decide({ id, approved: true }), 'LOUSHO_APPROVAL_ORPHANED');
    expect(world.timesRun('pay')).toBe(0);
  });
});

describe('expiry', () => {
  async function givenExpiring(approvalTtlMs: number | undefined) {
    const { world } = givenShop([calling('pay'), 'done'], { approvalTtlMs });
    return { world, id: need((await world.send('pay')).approvalId) };
  }

  it('is part of the pause, and a decision before it counts', async () => {
    const { world, id } = await givenExpiring(60_000);
    const [record] = await need(world.storage.store.approvals).list();
    expect(record?.expiresAt).toBe('2026-01-01T00:01:00.000Z');
    expect(world.events.find(({ type }) => type === 'approval.requested')).toMatchObject({
      expiresAt: record?.expiresAt,
    });
    await world.clock.advance(59_999);
    await world.decide({ id, approved: true });
    expect(world.timesRun('pay')).toBe(1);
  });

  it('makes every later decision a denial', async () => {
    const { world, id } = await givenExpiring(60_000);
    await world.clock.advance(60_000);
    const result = await world.decide({ id, approved: true, by: 'ann' });
    expect(world.timesRun('pay')).toBe(0);
    const { kind, result: failure, approval } = resultFor(result.messages, 'pay');
    expect(kind).toBe('denied');
    expect((failure as unknown as ToolFailure).error).toContain('expired');
    expect(approval).toMatchObject({ approved: false, source: 'expiry', by: 'ann' });
    expect(result.finishReason).toBe('stop');
  });

  it('is never without a time to live, nor when its time cannot be read', async () => {
    const { world, id } = await givenExpiring(undefined);
    expect((await world.stored())?.approvals[0]).not.toHaveProperty('expiresAt');
    const stored = need(await world.stored());
    const approvals = stored.approvals.map((approval) => ({ ...approval, expiresAt: 'some day' }));
    await world.checkpoints.save('order-7', { ...stored, approvals });
    await world.clock.advance(10 * 365 * 24 * 3_600_000);
    await world.decide({ id, approved: true });
    expect(world.timesRun('pay')).toBe(1);
  });
});

describe('the gate', () => {
  function givenGate(needsApproval: Parameters<typeof noting>[3]) {
    const storage = givenStorage();
    return givenWorld({
      storage,
      tools: [noting(storage, 'pay', undefined, needsApproval)],
      script: [calling(['pay', { amount: 10 }]), 'done'],
    });
  }

  it('may look at the arguments', async () => {
    const above = (limit: number) => ({
      needsApproval: (args: unknown) => (args as { amount: number }).amount > limit,
    });
    expect((await givenGate(above(5)).send('pay')).finishReason).toBe('awaiting-approval');
    expect((await givenGate(above(50)).send('pay')).finishReason).toBe('stop');
  });

  it('may deny without asking', async () => {
    const result = await givenGate({ needsApproval: () => ({ deny: 'over the limit' }) }).send('pay');
    expect(resultFor(result.messages, 'pay')).toMatchObject({
      kind: 'denied',
      result: { error: 'over the limit' },
    });
  });

  it.each<readonly [string, () => unknown]>([
    ['throws', () => need(undefined)],
    ['rejects', () => Promise.reject(new Error('down'))],
    ['says nothing', () => undefined],
    ['says null', () => null],
    ['denies without a reason', () => ({ deny: 7 })],
  ])('that %s asks a person: nothing runs because its gate is broken', async (_what, needsApproval) => {
    const result = await givenGate({ needsApproval: needsApproval as never }).send('pay');
    expect(result.finishReason).toBe('awaiting-approval');
  });

  it('is not asked about arguments that do not fit', async () => {
    let asked = 0;
    const world = givenGate({
      needsApproval: () => (asked += 1) > 0,
      input: z.object({ amount: z.string() }),
    });
    expect((await world.send('pay')).finishReason).toBe('stop');
    expect(asked).toBe(0);
  });

  it('is not asked again about a call that is decided', async () => {
    let asked = 0;
    const world = givenGate({
      needsApproval: () => {
        asked += 1;
        if (asked > 1) throw new Error('asked twice');
        return true;
      },
    });
    const paused = await world.send('pay');
    expect((await world.decide({ id: need(paused.approvalId), approved: true })).finishReason).toBe('stop');
    expect(asked).toBe(1);
  });

  it('is asked again on a resume about a call that never ran', async () => {
    const storage = givenStorage();
    let isGated = false;
    const pay = noting(storage, 'pay', undefined, { needsApproval: () => isGated });
    const world = givenWorld({
      storage,
      tools: [pay],
      script: [calling('pay')],
      diesAt: { call: 'saveIfLeased#1', when: 'after' },
    });
    await world.untilDead(world.send('pay'));
    isGated = true;
    const resumed = await world.afterCrash();
    expect((await resumed.resume())?.finishReason).toBe('awaiting-approval');
    expect(storage.effects).toEqual([]);
  });

  it('of calls that settle in another order still names them in call order', async () => {
    const storage = givenStorage();
    const after = (ms: number) => ({
      needsApproval: () => new Promise<boolean>((resolve) => storage.clock.setTimer(() => resolve(true), ms)),
    });
    const tools = (
      [
        ['a', 30],
        ['b', 5],
        ['c', 15],
      ] as const
    ).map(([name, ms]) => noting(storage, name, undefined, after(ms)));
    const world = givenWorld({ storage, tools, script: [calling('a', 'b', 'c')] });
    const paused = await world.letTimePass(world.send('go'), 10);
    const records = await need(storage.store.approvals).list();
    const names = pausedIds(paused).map((id) => records.find((record) => record.id === id)?.toolName);
    expect(names).toEqual(['a', 'b', 'c']);
  });
});

describe('hooks around a decision', () => {
  const hookedWorld = (hooks: Setup['hooks']) =>
    givenShop([calling(['pay', { amount: 10 }]), 'done'], { hooks });

  it('run before the pause and again before the call, and know which is which', async () => {
    const seen: (true | undefined)[] = [];
    const { world } = hookedWorld({
      beforeTool: ({ resumedAfterApproval }) => void seen.push(resumedAfterApproval),
    });
    const paused = await world.send('pay');
    await world.decide({ id: need(paused.approvalId), approved: true });
    expect(seen).toEqual([undefined, true]);
  });

  it('that change the arguments before the pause: the person sees, and agrees to, the changed ones', async () => {
    const { world, seen } = hookedWorld({
      beforeTool: ({ resumedAfterApproval }) => (resumedAfterApproval ? undefined : { args: { amount: 5 } }),
    });
    const paused = await world.send('pay');
    expect(await need(world.storage.store.approvals).list()).toMatchObject([{ args: { amount: 5 } }]);
    await world.decide({ id: need(paused.approvalId), approved: true });
    expect(seen.map(({ args }) => args)).toEqual([{ amount: 5 }]);
  });

  it('that change the arguments behind the decision keep the call from running', async () => {
    const { world } = hookedWorld({
      beforeTool: ({ resumedAfterApproval }) =>
        resumedAfterApproval ? { args: { amount: 1_000 } } : undefined,
    });
    const paused = await world.send('pay');
    const result = await world.decide({ id: need(paused.approvalId), approved: true });
    expect(world.timesRun('pay')).toBe(0);
    expect(resultFor(result.messages, 'pay').kind).toBe('validation');
  });

  it('that give the same arguments in another order change nothing', async () => {
    const { world, seen } = givenShop([calling(['pay', { a: 1, b: 2 }]), 'done'], {
      hooks: { beforeTool: () => ({ args: { b: 2, a: 1 } }) },
    });
    const paused = await world.send('pay');
    await world.decide({ id: need(paused.approvalId), approved: true });
    expect(seen).toHaveLength(1);
  });
});

describe('an agent that changed while a person thought', () => {
  it('without the tool is refused, and the approval still waits for one that has it; a no needs no tool', async () => {
    const { world } = givenShop([calling('pay')]);
    const id = need((await world.send('pay')).approvalId);
    const stored = JSON.stringify(await world.stored());
    const without = world.onNewProcess({ tools: [], script: ['done'], onAgentDrift: 'ignore' });
    await refusal(without.decide({ id, approved: true }), 'LOUSHO_RESUME_TOOL_MISSING');
    expect(JSON.stringify(await world.stored())).toBe(stored);
    expect(await world.inbox()).toEqual([id]);
    expect((await without.decide({ id, approved: false })).finishReason).toBe('stop');
  });

  it('is refused with the policy "error"; the right one can still decide', async () => {
    const { world } = givenShop([calling('pay')], { agent: { instructions: 'Be kind.' } });
    const id = need((await world.send('pay')).approvalId);
    const stored = JSON.stringify(await world.stored());
    const other = world.onNewProcess({ agent: { instructions: 'Be brief.' }, onAgentDrift: 'error' });
    await refusal(other.decide({ id, approved: true }), 'LOUSHO_AGENT_DRIFT');
    expect(JSON.stringify(await world.stored())).toBe(stored);
    const same = world.onNewProcess({ script: ['Paid.'], onAgentDrift: 'error' });
    const result = await same.decide({ id, approved: true });
    expect(result.text).toBe('Paid.');
    expect(result.messages.filter(({ role }) => role === 'system')).toHaveLength(1);
  });
});

describe('the events of a decision', () => {
  it('are those of a resumed run, the decided call as a resumed one, without gaps', async () => {
    const { world } = givenShop([calling('pay')]);
    const id = need((await world.send('pay')).approvalId);
    const deciding = world.onNewProcess({ script: ['Paid.'] });
    const run = deciding.streamDecide({ id, approved: true });
    const types: string[] = [];
    for await (const event of run) {
      expect(event.seq).toBe(types.length);
      types.push(event.type);
    }
    expect(types.filter((type) => type !== 'checkpoint.saved')).toEqual([
      'run.start',
      'step.start',
      'tool.resume',
      'tool.done',
      'step.done',
      'step.start',
      'text.delta',
      'text.done',
      'step.done',
      'run.done',
    ]);
    expect(deciding.events[0]).toMatchObject({ resumed: true, sessionId: 'order-7' });
  });

  it('of a rejection tell of it as an error of the call', async () => {
    const { world } = givenShop([calling('pay')]);
    const id = need((await world.send('pay')).approvalId);
    const deciding = world.onNewProcess({ script: ['ok'] });
    await deciding.streamDecide({ id, approved: false }).result;
    expect(deciding.events.find(({ type }) => type === 'tool.error')).toMatchObject({
      kind: 'rejected',
      toolName: 'pay',
    });
    expect(deciding.eventTypes()).not.toContain('tool.resume');
  });

  it('of one that is not the last are few: nothing ran', async () => {
    const { world } = givenShop([calling('pay', 'mail')]);
    const [pay] = pausedIds(await world.send('go'));
    const deciding = world.onNewProcess();
    await deciding.streamDecide({ id: need(pay), approved: true }).result;
    expect(deciding.eventTypes()).toEqual(['run.start', 'run.done']);
    expect(deciding.events.at(-1)).toMatchObject({ finishReason: 'awaiting-approval' });
  });

  it('aborted at the start of the call ask no model', async () => {
    const { world } = givenShop([calling('pay')]);
    const id = need((await world.send('pay')).approvalId);
    const deciding: World = world.onNewProcess({
      script: ['never'],
      onEvent: ({ type }) => type === 'tool.resume' && run.abort(),
    });
    const run = deciding.streamDecide({ id, approved: true });
    expect((await run.result).finishReason).toBe('aborted');
    expect(deciding.model.calls).toEqual([]);
  });

  it('aborted before anything is stored leaves the approval undecided', async () => {
    const { world } = givenShop([calling('pay')]);
    const id = need((await world.send('pay')).approvalId);
    const result = await world.decide({ id, approved: true }, { signal: AbortSignal.abort() });
    expect(result.finishReason).toBe('aborted');
    expect(await world.inbox()).toEqual([id]);
    expect(await world.stored()).toMatchObject({ status: 'awaiting-approval' });
  });

  it('enqueued words reach the next model call', async () => {
    const storage = givenStorage();
    const running = deferred<string>();
    const pay = noting(storage, 'pay', () => running.promise, { needsApproval: true });
    const { world } = givenShop([calling('pay'), 'Paid.'], { storage, tools: [pay] });
    const id = need((await world.send('pay')).approvalId);
    const run = world.streamDecide({ id, approved: true });
    await until(() => world.timesRun('pay') === 1);
    const queued = run.enqueue('and a receipt');
    running.resolve('ok');
    await run.result;
    expect(await queued.joined).toBe(true);
    expect(roles(world.model.calls[1]?.messages)).toBe('user assistant tool user');
  });
});
