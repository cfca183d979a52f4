import type { ToolContext } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { calling, givenStorage, givenWorld, need, noting, type Setup } from './support.ts';

/** What the calls of `a` saw. */
async function contextsOf(
  script: NonNullable<Setup['script']>,
  more: Partial<Setup> = {},
  options: object = {},
) {
  const storage = givenStorage();
  const seen: ToolContext[] = [];
  const world = givenWorld({
    storage,
    tools: [noting(storage, 'a', (_args, ctx) => void seen.push(ctx))],
    script,
    ...more,
  });
  const result = await world.send('go', options);
  return { seen, result, world };
}

describe('what a tool sees of its run', () => {
  it('is who calls it, for whom and where', async () => {
    const { seen, result } = await contextsOf(
      [calling('a'), 'done'],
      { agent: { name: 'clerk' } },
      { metadata: { tenant: 't' }, principal: { id: 'ann' } },
    );
    expect(seen[0]).toMatchObject({
      toolCallId: 'call_a',
      toolName: 'a',
      runId: result.runId,
      sessionId: 'order-7',
      step: 1,
      agentName: 'clerk',
      metadata: { tenant: 't' },
      principal: { id: 'ann' },
      rerun: false,
    });
    expect(need(seen[0])).not.toHaveProperty('approval');
  });

  it('is nothing that is not there', async () => {
    const { seen } = await contextsOf(
      [calling('a'), 'done'],
      {},
      { sessionId: undefined, checkpointStore: undefined },
    );
    expect(need(seen[0])).not.toHaveProperty('sessionId');
    expect(need(seen[0])).not.toHaveProperty('principal');
    expect(need(seen[0]).metadata).toEqual({});
  });

  it('is what the model had seen: no instructions, not the calling message', async () => {
    const { seen } = await contextsOf([calling('a'), calling('a'), 'done'], {
      agent: { instructions: 'Be kind.' },
    });
    expect(seen.map(({ messages }) => messages.map(({ role }) => role).join(' '))).toEqual([
      'user',
      'user assistant tool',
    ]);
  });
});

describe('the key for systems that take one', () => {
  const keys = (seen: readonly ToolContext[]): readonly string[] =>
    seen.map(({ idempotencyKey }) => idempotencyKey);

  it('is another for each call: by step, by position, by arguments, also when a provider repeats its ids', async () => {
    const again = {
      toolCalls: [
        { name: 'a', id: 'call_0' },
        { name: 'a', id: 'call_1' },
      ],
    };
    const { seen } = await contextsOf([again, again, 'done']);
    expect(new Set(keys(seen)).size).toBe(4);
  });

  it('is another in another run with the same words', async () => {
    const { seen, world } = await contextsOf([calling('a'), 'done', calling('a'), 'done']);
    await world.send('go');
    expect(new Set(keys(seen)).size).toBe(2);
  });

  it('is the same for arguments in another order, and another for other arguments', async () => {
    const storage = givenStorage();
    const seen: ToolContext[] = [];
    const tool = noting(storage, 'a', (_args, ctx) => void seen.push(ctx), { needsApproval: true });
    const world = givenWorld({ storage, tools: [tool], script: [calling(['a', { x: 1, y: 2 }]), 'done'] });
    const run = async (args?: object) => {
      await need(storage.store.checkpoints).delete('order-7');
      const first = world.onNewProcess({ script: [calling(['a', { x: 1, y: 2 }]), 'done'] });
      const ports = { ...first.ports, ids: { random: () => 'same0000-run' } };
      const paused = await first.send('go', { ports });
      await first.decide(
        { id: need(paused.approvalId), approved: true, ...(args && { args: args as never }) },
        { ports },
      );
    };
    await run();
    await run({ y: 2, x: 1 });
    await run({ x: 1, y: 3 });
    const [plain, reordered, changed] = keys(seen);
    expect(reordered).toBe(plain);
    expect(changed).not.toBe(plain);
  });

  it('is short and plain enough for every such system', async () => {
    const { seen } = await contextsOf([calling(['a', { text: 'x'.repeat(10_000) }]), 'done']);
    expect(keys(seen)[0]).toMatch(/^[\w:.-]{1,100}$/);
  });
});
