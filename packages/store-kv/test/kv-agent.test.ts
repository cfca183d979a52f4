/** An agent over KV: a crash before and after each store call, and a run that is taken over at another location. */
import { createAgent, defineTool, type Agent } from '@lousho/core';
import { manualClock, mockModel } from '@lousho/testing';
import { crashSweep, type CrashWorld } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { KVStore } from '../src/index.ts';
import { ExactKV } from './support/exact-kv.ts';
import { seededRandom } from './support/random.ts';
import { SimKV } from './support/sim-kv.ts';
import { waitingPorts } from './support/waiting-ports.ts';

/** Two free calls and one that waits, then the answer. */
const script = [{ toolCalls: ['look', 'charge', 'ship'].map((name) => ({ name })) }, 'Done.'];

function agentOf({ store, ports, effect }: Pick<CrashWorld, 'store' | 'ports' | 'effect'>): Agent {
  const tool = (name: string) =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: { type: 'object' },
      needsApproval: name === 'charge',
      execute() {
        effect(name);
        // More than stays whole in one value: parts are cut off while the run goes on.
        return `${name} done ${'x'.repeat(40_000)}`;
      },
    });
  const tools = ['look', 'charge', 'ship'].map(tool);
  return createAgent({ store, ports, tools, provider: mockModel(script, { answerBy: 'step' }) });
}

async function finish(agent: Agent): Promise<void> {
  let result = await agent.runOnce('order-7', 'sell');
  while (result.finishReason === 'awaiting-approval')
    result = await agent.approvals.resolve({ id: result.approvalId, approved: true });
}

it('finishes a run after a crash at every store call, with every effect as often as it may be', async () => {
  const report = await crashSweep({
    createStore: (ports) => new KVStore(new ExactKV(ports.clock), { ports }),
    run: (world) => finish(agentOf(world)),
    check({ effects }) {
      // Its approval is a person's: at most once, whatever happens.
      expect(effects.get('charge') ?? 0).toBeLessThanOrEqual(1);
    },
  });
  expect(report.failures).toEqual([]);
  expect(report.points).toBeGreaterThan(30);
});

it('goes on at another location once what was saved is visible there, and repeats nothing that was recorded', async () => {
  const clock = manualClock();
  const kv = new SimKV({ clock, random: seededRandom(5) });
  const effects: string[] = [];
  const agentAt = (location: number): Agent => {
    const ports = {
      ...waitingPorts(clock),
      processes: { own: () => ({ instanceId: 'here' }), isGone: () => false },
    };
    const store = new KVStore(kv.at(location), { ports });
    return agentOf({ store, ports, effect: (name) => void effects.push(name) });
  };
  const paused = await agentAt(0).runOnce('order-7', 'sell');
  expect(paused.finishReason).toBe('awaiting-approval');
  await clock.advance(3 * 60_000);
  const there = agentAt(1);
  const [request] = await there.approvals.list();
  const result = await there.approvals.resolve({ id: request?.id ?? '', approved: true });
  expect(result.text).toBe('Done.');
  expect([...effects].sort()).toEqual(['charge', 'look', 'ship']);
});
