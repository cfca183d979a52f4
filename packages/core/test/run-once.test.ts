/** `agent.runOnce`: a job that is delivered at least once runs once. */
import { mockModel } from '@lousho/testing';
import { crashTest } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { createAgent, defineTool } from '../src/index.ts';
import { lines, rejection } from './support/read.ts';
import { deferred, failingOnceTool, gatedTool, spyTool } from './support/tools.ts';
import { onEveryStore } from './support/world.ts';

onEveryStore('runOnce', (world) => {
  it('runs a job once, however many callers come at one moment, and gives all the same result', async () => {
    const work = spyTool('work');
    const provider = mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.'], { answerBy: 'step' });
    const agent = world.agent({ provider, tools: [work.tool] });

    const results = await Promise.all(Array.from({ length: 50 }, () => agent.runOnce('job-1', 'Work.')));

    expect(work.runs).toHaveLength(1);
    expect(provider.calls).toHaveLength(2);
    expect(new Set(results.map(({ runId, text }) => `${runId} ${text}`)).size).toBe(1);
  });

  it('is busy for a delivery to another process while the job runs, which then has what it came to', async () => {
    const begun = deferred();
    const ended = deferred();
    const work = spyTool('work', async () => {
      begun.resolve();
      await ended.promise;
    });
    const provider = mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.'], { answerBy: 'step' });
    const config = { provider, tools: [work.tool] };
    const first = world.agent(config).runOnce('delivery-1', 'Work.');
    await begun.promise;
    const other = world.otherProcess().agent(config);
    expect(await rejection(other.runOnce('delivery-1', 'Work.'))).toMatchObject({
      code: 'LOUSHO_SESSION_BUSY',
    });
    ended.resolve();
    await first;
    expect(await other.runOnce('delivery-1', 'Work.')).toMatchObject({ text: 'Done.' });
    expect([work.runs.length, provider.calls.length]).toEqual([1, 2]);
  });

  it('finishes an interrupted job without adding its input again', async () => {
    const ship = failingOnceTool('ship');
    const provider = mockModel([{ toolCalls: [{ name: 'ship' }] }, 'Shipped.'], { answerBy: 'step' });
    const agent = world.agent({ provider, tools: [ship.tool] });
    await expect(agent.runOnce('job-2', 'Ship.')).rejects.toThrow('process died');

    const result = await agent.runOnce('job-2', 'Ship, please.');

    expect(result.text).toBe('Shipped.');
    expect(lines(result.messages).filter((line) => line.startsWith('user'))).toEqual(['user Ship.']);
  });

  it('gives what a job came to while another process holds its lease: it only reads', async () => {
    const agent = world.agent({ provider: mockModel(['Done.']) });
    const first = await agent.runOnce('job-4', 'Work.');
    await world.checkpoints.acquireLease('job-4', 'another process', 30_000);

    expect(await agent.runOnce('job-4', 'Work.')).toEqual(first);
  });

  it('gives the stored pause of a job that waits for a person, and runs nothing', async () => {
    const pay = gatedTool('pay');
    const provider = mockModel([{ toolCalls: [{ name: 'pay' }] }, 'Paid.'], { answerBy: 'step' });
    const agent = world.agent({ provider, tools: [pay.tool] });
    const paused = await agent.runOnce('job-3', 'Pay.');

    const again = await agent.runOnce('job-3', 'Pay.');

    expect(again).toEqual(paused);
    expect(again.finishReason).toBe('awaiting-approval');
    expect([provider.calls.length, pay.runs.length]).toEqual([1, 0]);
  });

  it('asks for input on an id that has no run', async () => {
    const agent = world.agent({ provider: mockModel([]) });
    await expect(agent.runOnce('job-4', [])).rejects.toMatchObject({ code: 'LOUSHO_INPUT_EMPTY' });
  });
});

const anyObject = { type: 'object' } as const;

it('a job survives a crash at every store call, approval included', async () => {
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
