import type { JsonValue, ToolContext } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import {
  calling,
  givenStorage,
  givenWorld,
  need,
  noting,
  refusal,
  resultFor,
  type Setup,
} from './support.ts';

const count = (_args: unknown, ctx: ToolContext): JsonValue => {
  const before = (ctx.businessState as { readonly count: number } | undefined)?.count ?? 0;
  ctx.businessState = { count: before + 1 };
  return before;
};

function givenCounter(more: Partial<Setup> = {}) {
  const storage = givenStorage();
  return givenWorld({
    storage,
    tools: [noting(storage, 'count', count)],
    script: [calling('count'), calling('count'), 'done'],
    ...more,
  });
}

describe("the caller's own state", () => {
  it('is what the tools make of it, saved with their results and given with the result', async () => {
    const world = givenCounter();
    const { businessState } = await world.send('go', { businessState: { count: 5 } });
    expect(businessState).toEqual({ count: 7 });
    expect(world.storage.store.saves.map((saved) => saved.businessState)).toEqual([
      { count: 5 },
      { count: 6 },
      { count: 6 },
      { count: 7 },
      { count: 7 },
    ]);
  });

  it('survives a crash together with the result that it came with', async () => {
    const world = givenCounter({ diesAt: { call: 'saveIfLeased#4', when: 'before' } });
    await world.untilDead(world.send('go'));
    const resumed = await world.afterCrash({ script: ['done'] });
    // The second call had begun, but neither its result nor its state was saved.
    expect(need(await resumed.resume()).businessState).toEqual({ count: 2 });
    expect(world.timesRun('count')).toBe(3);
  });

  it('is kept by a resume that names none, replaced by one that does, cleared with null', async () => {
    const failing = async (more: object) => {
      const world = givenCounter({ script: [calling('count'), new Error('down')], retry: { maxRetries: 0 } });
      await world.send('go', { businessState: { count: 1 } }).catch(() => undefined);
      return (await world.onNewProcess({ script: ['done'] }).send([], more)).businessState;
    };
    expect(await failing({})).toEqual({ count: 2 });
    expect(await failing({ businessState: { count: 9 } })).toEqual({ count: 9 });
    expect(await failing({ businessState: null })).toBe(null);
  });

  it('goes on in the next turn of the conversation', async () => {
    const world = givenCounter({ script: [calling('count'), 'done', calling('count'), 'done'] });
    await world.send('go');
    expect((await world.send('again')).businessState).toEqual({ count: 2 });
    expect((await world.send([], { businessState: null })).businessState).toEqual({ count: 2 });
  });

  it('is carried over a pause', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'count', count, { needsApproval: true })],
      script: [calling('count'), 'done'],
    });
    const paused = await world.send('go', { businessState: { count: 1 } });
    const result = await world.onNewProcess().decide({ id: need(paused.approvalId), approved: true });
    expect(result.businessState).toEqual({ count: 2 });
  });

  it('is absent when nobody ever set it', async () => {
    expect(await givenCounter({ script: ['hi'] }).send('go')).not.toHaveProperty('businessState');
  });

  it('that JSON cannot say is refused where it is set, with the path', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', (_args, ctx) => void (ctx.businessState = { seen: 1n } as never))],
      script: [calling('a'), 'done'],
    });
    const { messages, businessState } = await world.send('go', { businessState: { kept: true } });
    expect(resultFor(messages, 'a')).toMatchObject({
      kind: 'execution',
      result: { error: expect.stringContaining('businessState.seen') },
    });
    expect(businessState).toEqual({ kept: true });
    const error = await refusal(
      world.send('go', { businessState: { seen: 1n } as never }),
      'LOUSHO_CONFIG_INVALID',
    );
    expect(error.details).toMatchObject({ option: 'businessState.seen' });
  });

  it('is turned into JSON when it is set, so that a resume sees the same', async () => {
    const storage = givenStorage();
    const seen: unknown[] = [];
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'a', (_args, ctx) => {
          ctx.businessState = { at: new Date(0), tags: new Set(['x']) } as never;
          seen.push(ctx.businessState);
        }),
      ],
      script: [calling('a'), 'done'],
    });
    const { businessState } = await world.send('go');
    expect(businessState).toEqual({ at: '1970-01-01T00:00:00.000Z', tags: ['x'] });
    expect(seen).toEqual([businessState]);
  });

  it("is the caller's no more once it is given", async () => {
    const mine = { list: [1] };
    const world = givenCounter({ script: ['hi'] });
    const sent = world.send('go', { businessState: mine });
    mine.list.push(2);
    expect((await sent).businessState).toEqual({ list: [1] });
  });
});
