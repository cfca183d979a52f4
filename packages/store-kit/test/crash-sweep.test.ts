/** A crash at every store call of a run with a pause, over a sealed store whose seals take their time. */
import { defineTool, type Ports } from '@lousho/contract';
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { crashSweep, type CrashWorld } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { platformCrypto } from '../src/crypto-ports.ts';
import { sealedStore } from '../src/encrypted-store.ts';
import { testKey } from './support/keys.ts';

it('loses nothing that was acknowledged, and repeats no approved call', async () => {
  let text: string | undefined;
  const report = await crashSweep({
    createStore: (ports: Ports) => sealedStore(memoryStore({ ports }), [testKey('2026-01')], slowCrypto),
    async run(world) {
      text = await sell(world);
    },
    check: ({ effects }) => {
      expect(text).toBe('Sold.');
      expect(effects.get('charge') ?? 0).toBeLessThanOrEqual(1);
    },
  });
  expect(report.failures).toEqual([]);
  expect(report.points).toBeGreaterThan(25);
}, 60_000);

/** Each seal takes a few turns of the event loop more than it would. */
const slowCrypto: typeof platformCrypto = {
  ...platformCrypto,
  async encrypt(...args) {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    return platformCrypto.encrypt(...args);
  },
};

/** Starts, or goes on where it was, and says yes to what waits. */
async function sell(world: CrashWorld): Promise<string> {
  const { store, ports, effect } = world;
  const tool = (name: string, needsApproval: boolean) =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: { type: 'object' },
      needsApproval,
      execute: () => {
        effect(name);
        return `${name} done`;
      },
    });
  const agent = createAgent({
    store,
    ports,
    provider: mockModel([{ toolCalls: [{ name: 'look' }, { name: 'charge' }] }, 'Sold.'], {
      answerBy: 'step',
    }),
    tools: [tool('look', false), tool('charge', true)],
  });
  for (const { id } of await agent.approvals.list()) {
    const { text, finishReason } = await agent.approvals.resolve({ id, approved: true });
    if (finishReason === 'stop') return text;
  }
  const { text, approvalIds = [] } = await agent.send('sell', { sessionId: 'order-7', inputId: 'input-1' });
  if (approvalIds.length === 0) return text;
  return sell(world);
}
