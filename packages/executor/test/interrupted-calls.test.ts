/** What a resume does with a call that had begun when its process died. */
import {
  PropagatingToolError,
  type OnInterrupted,
  type ToolContext,
  type ToolFailure,
} from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import {
  calling,
  givenStorage,
  givenWorld,
  need,
  noting,
  resultFor,
  type Setup,
  type World,
} from './support.ts';

/** A run that died while its only call `charge` ran: the mark is saved, the result is not. */
async function givenCutCall(
  onInterrupted: OnInterrupted | undefined,
  more: Partial<Setup> = {},
): Promise<World> {
  const storage = more.storage ?? givenStorage();
  const isMarked = onInterrupted !== undefined && onInterrupted !== 'retry';
  const world = givenWorld({
    storage,
    tools: [noting(storage, 'charge', undefined, { onInterrupted })],
    script: [calling(['charge', { amount: 10 }])],
    diesAt: { call: isMarked ? 'saveIfLeased#3' : 'saveIfLeased#2', when: 'before' },
    ...more,
  });
  await world.untilDead(world.send('go'));
  expect(world.timesRun('charge')).toBe(1);
  return world.afterCrash({ script: ['done'] });
}

describe('a call that had begun', () => {
  it.each([undefined, 'retry'] as const)(
    'runs again (%s), and no mark was saved for it',
    async (onInterrupted) => {
      const world = await givenCutCall(onInterrupted);
      expect(
        world.storage.store.saves.every(({ startedToolCallIds }) => startedToolCallIds.length === 0),
      ).toBe(true);
      const result = need(await world.resume());
      expect(world.timesRun('charge')).toBe(2);
      expect(resultFor(result.messages, 'charge').result).toBe('charge done');
    },
  );

  it('"never" runs again: the model hears that it may have happened', async () => {
    const world = await givenCutCall('never');
    const result = need(await world.resume());
    expect(world.timesRun('charge')).toBe(1);
    const { kind, isError, result: failure } = resultFor(world.model.calls[0]?.messages, 'charge');
    expect({ kind, isError }).toEqual({ kind: 'interrupted', isError: true });
    expect((failure as unknown as ToolFailure).error).toContain('may or may not have taken effect');
    expect(result.finishReason).toBe('stop');
  });

  it('"never" runs when it is sure that it did not begin', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'charge', undefined, { onInterrupted: 'never' })],
      script: [calling('charge')],
      diesAt: { call: 'saveIfLeased#2', when: 'before' },
    });
    await world.untilDead(world.send('go'));
    expect(storage.effects).toEqual([]);
    await (await world.afterCrash({ script: ['done'] })).resume();
    expect(storage.effects).toEqual(['charge']);
  });

  it('"ask" waits for a person; with a yes it runs again', async () => {
    const world = await givenCutCall('ask');
    const paused = need(await world.resume());
    expect(paused.finishReason).toBe('awaiting-approval');
    const [record] = await need(world.storage.store.approvals).list();
    expect(record).toMatchObject({ kind: 'interrupted', toolName: 'charge', args: { amount: 10 } });
    expect(world.timesRun('charge')).toBe(1);
    const result = await world.decide({ id: need(paused.approvalId), approved: true });
    expect(world.timesRun('charge')).toBe(2);
    expect(resultFor(result.messages, 'charge').result).toBe('charge done');
  });

  it('"ask" with a yes tells the tool that it may have begun before', async () => {
    const reruns: boolean[] = [];
    const storage = givenStorage();
    const body = (_args: unknown, { rerun }: ToolContext) => reruns.push(rerun);
    const tools = [noting(storage, 'charge', body, { onInterrupted: 'ask' })];
    const world = await givenCutCall('ask', { storage, tools });
    const paused = need(await world.resume());
    await world.decide({ id: need(paused.approvalId), approved: true });
    expect(reruns).toEqual([false, true]);
  });

  it('"ask" with a no does not run again, and the result does not say that it never ran', async () => {
    const world = await givenCutCall('ask');
    const paused = need(await world.resume());
    const result = await world.decide({
      id: need(paused.approvalId),
      approved: false,
      note: 'I looked: it is booked.',
    });
    expect(world.timesRun('charge')).toBe(1);
    const failure = resultFor(result.messages, 'charge').result as unknown as ToolFailure;
    expect(failure.error).not.toContain('did not run');
    expect(failure.error).toContain('may');
    expect(failure.note).toBe('I looked: it is booked.');
  });

  it('"ask" that expires does not say that it never ran either', async () => {
    const world = await givenCutCall('ask', { approvalTtlMs: 1_000 });
    const paused = need(await world.resume());
    await world.clock.advance(1_000);
    const result = await world.decide({ id: need(paused.approvalId), approved: true });
    expect(world.timesRun('charge')).toBe(1);
    const { kind, result: failure } = resultFor(result.messages, 'charge');
    expect(kind).toBe('denied');
    expect((failure as unknown as ToolFailure).error).not.toContain('did not run');
  });

  it('"ask", cut again while it runs with a yes, is not run a third time', async () => {
    const world = await givenCutCall('ask');
    const paused = need(await world.resume());
    // 1 the decision, 2 the mark; dies before the result is saved.
    const dying = world.onNewProcess({ diesAt: { call: 'saveIfLeased#3', when: 'before' } });
    await dying.untilDead(dying.decide({ id: need(paused.approvalId), approved: true }));
    expect(world.timesRun('charge')).toBe(2);
    const last = await dying.afterCrash({ script: ['done'] });
    const result = need(await last.resume());
    expect(resultFor(result.messages, 'charge').kind).toBe('interrupted');
    expect(world.timesRun('charge')).toBe(2);
  });

  it('a function that finds its result gives it: the tool does not run again', async () => {
    const seen: Pick<ToolContext, 'rerun' | 'idempotencyKey'>[] = [];
    const world = await givenCutCall((args: unknown, { rerun, idempotencyKey }: ToolContext) => {
      seen.push({ rerun, idempotencyKey });
      return { result: { found: args } };
    });
    const result = need(await world.resume());
    expect(resultFor(result.messages, 'charge').result).toEqual({ found: { amount: 10 } });
    expect(world.timesRun('charge')).toBe(1);
    expect(seen).toMatchObject([{ rerun: true }]);
  });

  it('a function that found nothing has it run, with the mark in place', async () => {
    const world = await givenCutCall(() => 'retry' as const);
    await world.resume();
    expect(world.timesRun('charge')).toBe(2);
    for (const { startedToolCallIds } of world.storage.store.saves)
      expect(startedToolCallIds.length).toBeLessThanOrEqual(1);
  });

  it.each<readonly [string, OnInterrupted]>([
    ['throws', () => need<never>(undefined)],
    ['gives what JSON cannot say', () => ({ result: 1n })],
    ['says nothing', (() => undefined) as unknown as OnInterrupted],
  ])(
    'a function that %s leaves it interrupted: nobody knows whether it happened',
    async (_what, onInterrupted) => {
      const world = await givenCutCall(onInterrupted);
      const result = need(await world.resume());
      expect(resultFor(result.messages, 'charge').kind).toBe('interrupted');
      expect(world.timesRun('charge')).toBe(1);
    },
  );

  it('a function that rejects the run leaves the call open for the next resume', async () => {
    let isDown = true;
    const world = await givenCutCall(() => {
      if (isDown) throw new PropagatingToolError('the bank is down');
      return { result: 'booked' };
    });
    await expect(world.resume()).rejects.toThrow('the bank is down');
    isDown = false;
    const result = need(await world.onNewProcess({ script: ['done'] }).resume());
    expect(resultFor(result.messages, 'charge').result).toBe('booked');
    expect(world.timesRun('charge')).toBe(1);
  });

  it('and was approved is never run again, whatever the tool says', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'charge', undefined, { needsApproval: true, onInterrupted: 'retry' })],
      script: [calling('charge')],
    });
    const paused = await world.send('go');
    const dying = world.onNewProcess({ diesAt: { call: 'saveIfLeased#3', when: 'before' } });
    await dying.untilDead(dying.decide({ id: need(paused.approvalId), approved: true, by: 'ann' }));
    expect(storage.effects).toEqual(['charge']);
    const resumed = await dying.afterCrash({ script: ['done'] });
    expect(await resumed.stored()).toMatchObject({ status: 'in-progress' });
    const result = need(await resumed.resume());
    expect(resultFor(result.messages, 'charge')).toMatchObject({
      kind: 'interrupted',
      approval: { approved: true, by: 'ann' },
    });
    expect(storage.effects).toEqual(['charge']);
    expect(await world.inbox()).toEqual([]);
  });

  it('and was approved runs once when the process died right before it began', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'charge', undefined, { needsApproval: true })],
      script: [calling('charge')],
    });
    const paused = await world.send('go');
    const dying = world.onNewProcess({ diesAt: { call: 'saveIfLeased#2', when: 'before' } });
    await dying.untilDead(dying.decide({ id: need(paused.approvalId), approved: true }));
    const result = need(await (await dying.afterCrash({ script: ['done'] })).resume());
    expect(storage.effects).toEqual(['charge']);
    expect(resultFor(result.messages, 'charge').result).toBe('charge done');
  });

  it('beside calls that had not is the only one that is interrupted', async () => {
    const storage = givenStorage();
    const never = { onInterrupted: 'never' } as const;
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', undefined, never), noting(storage, 'b', undefined, never)],
      toolConcurrency: 1,
      script: [calling('a', 'b')],
      diesAt: { call: 'saveIfLeased#3', when: 'before' },
    });
    await world.untilDead(world.send('go'));
    const result = need(await (await world.afterCrash({ script: ['done'] })).resume());
    expect(resultFor(result.messages, 'a').kind).toBe('interrupted');
    expect(resultFor(result.messages, 'b').kind).toBeUndefined();
    expect(storage.effects).toEqual(['a', 'b']);
  });

  describe('with arguments that a hook had changed', () => {
    const hooks = { beforeTool: () => ({ args: { amount: 5 } }) };

    it('is asked about, and runs again, with the changed ones', async () => {
      const world = await givenCutCall('ask', { hooks });
      const paused = need(await world.resume());
      expect(await need(world.storage.store.approvals).list()).toMatchObject([{ args: { amount: 5 } }]);
      const result = await world.decide({ id: need(paused.approvalId), approved: true });
      expect(resultFor(result.messages, 'charge').result).toBe('charge done');
      expect(world.timesRun('charge')).toBe(2);
    });

    it('that now refuses it says only that it may have happened', async () => {
      const world = await givenCutCall('ask');
      const refusing = world.onNewProcess({
        script: ['done'],
        hooks: { beforeTool: () => ({ deny: 'not today' }) },
      });
      const result = need(await refusing.resume());
      expect(resultFor(result.messages, 'charge').kind).toBe('interrupted');
      expect(world.timesRun('charge')).toBe(1);
    });

    it('is looked up with the changed ones, and under the key that it ran with', async () => {
      const storage = givenStorage();
      const keys: string[] = [];
      const charge = noting(storage, 'charge', (_args, ctx) => void keys.push(ctx.idempotencyKey), {
        onInterrupted(args: unknown, ctx: ToolContext) {
          keys.push(ctx.idempotencyKey);
          return { result: { found: args } };
        },
      });
      const world = await givenCutCall('never', { storage, tools: [charge], hooks });
      const result = need(await world.resume());
      expect(resultFor(result.messages, 'charge').result).toEqual({ found: { amount: 5 } });
      expect(keys[1]).toBe(keys[0]);
    });
  });
});
