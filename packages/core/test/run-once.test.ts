/** `agent.runOnce`: a job that is delivered at least once runs once. */
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { crashTest } from '@lousho/testing/crash';
import { describe, expect, it } from 'vitest';
import { createAgent, defineTool, PropagatingToolError } from '../src/index.ts';

const anyObject = { type: 'object' } as const;

describe('runOnce', () => {
  it('runs a job once, however many callers come at one moment, and gives all the same result', async () => {
    let effects = 0;
    const work = defineTool({
      name: 'work',
      description: 'Works.',
      input: anyObject,
      execute: () => ++effects,
    });
    const provider = mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.'], { answerBy: 'step' });
    const agent = createAgent({ provider, tools: [work], store: memoryStore() });

    const results = await Promise.all(Array.from({ length: 50 }, () => agent.runOnce('job-1', 'Work.')));

    expect(effects).toBe(1);
    expect(provider.calls).toHaveLength(2);
    expect(new Set(results.map(({ runId, text }) => `${runId} ${text}`)).size).toBe(1);
  });

  it('finishes an interrupted job without adding its input again', async () => {
    let attempts = 0;
    const ship = defineTool({
      name: 'ship',
      description: 'Ships.',
      input: anyObject,
      execute: () => {
        attempts += 1;
        if (attempts === 1) throw new PropagatingToolError('The process dies here.');
        return 'shipped';
      },
    });
    const provider = mockModel([{ toolCalls: [{ name: 'ship' }] }, 'Shipped.'], { answerBy: 'step' });
    const agent = createAgent({ provider, tools: [ship], store: memoryStore() });
    await expect(agent.runOnce('job-2', 'Ship.')).rejects.toThrow('The process dies here.');

    const result = await agent.runOnce('job-2', 'Ship, please.');

    expect(result.text).toBe('Shipped.');
    expect(result.messages.filter(({ role }) => role === 'user')).toEqual([
      { role: 'user', content: 'Ship.' },
    ]);
  });

  it('gives what a job came to while another process holds its lease: it only reads', async () => {
    const store = memoryStore();
    const agent = createAgent({ provider: mockModel(['Done.']), store });
    const first = await agent.runOnce('job-4', 'Work.');
    await store.checkpoints.acquireLease('job-4', 'another process', 30_000);

    expect(await agent.runOnce('job-4', 'Work.')).toEqual(first);
  });

  it('gives the stored pause of a job that waits for a person, and runs nothing', async () => {
    const pay = defineTool({
      name: 'pay',
      description: 'Pays.',
      input: anyObject,
      needsApproval: true,
      execute: () => 'paid',
    });
    const provider = mockModel([{ toolCalls: [{ name: 'pay' }] }, 'Paid.'], { answerBy: 'step' });
    const agent = createAgent({ provider, tools: [pay], store: memoryStore() });
    const paused = await agent.runOnce('job-3', 'Pay.');

    const again = await agent.runOnce('job-3', 'Pay.');

    expect(again).toEqual(paused);
    expect(again.finishReason).toBe('awaiting-approval');
    expect(provider.calls).toHaveLength(1);
  });

  it('asks for input on an id that has no run', async () => {
    const agent = createAgent({ provider: mockModel([]), store: memoryStore() });
    await expect(agent.runOnce('job-4', [])).rejects.toMatchObject({ code: 'LOUSHO_INPUT_EMPTY' });
  });

  it('survives a crash at every store call, approval included', async () => {
    const report = await crashTest({
      input: 'Pay and ship.',
      agent: ({ store, ports, effect }) =>
        createAgent({
          store,
          ports,
          provider: mockModel([{ toolCalls: [{ name: 'pay' }, { name: 'ship' }] }, 'Done.'], {
            answerBy: 'step',
          }),
          tools: [
            defineTool({
              name: 'pay',
              description: 'Pays.',
              input: anyObject,
              needsApproval: true,
              execute: () => effect('pay'),
            }),
            defineTool({
              name: 'ship',
              description: 'Ships.',
              input: anyObject,
              execute: () => effect('ship'),
            }),
          ],
        }),
      check: ({ effects }) => expect(effects.get('pay') ?? 0).toBeLessThanOrEqual(1),
    });
    expect(report.failures).toEqual([]);
    expect(report.points).toBeGreaterThan(20);
  });
});
