/** A crash before and after each store call of a run that has everything: nothing recorded is lost, repeated or left behind. */
import { defineTool, type ExecutionResult } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { crashSweep, type CrashWorld } from '@lousho/testing/crash';
import { expect, it } from 'vitest';
import { createAgent, type Agent } from '../src/index.ts';
import { goOn, sweepEveryStore } from './support/sweep.ts';

/** Two free calls and two that wait, then a question about one more, then the answer. */
const script = [
  { toolCalls: ['look', 'charge', 'ship', 'refund'].map((name) => ({ name })) },
  { toolCalls: [{ name: 'look' }, { name: 'charge' }] },
  'Done.',
];

function agentOf({ store, ports, effect }: CrashWorld): Agent {
  const tool = (name: string, needsApproval: boolean) =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: { type: 'object' },
      needsApproval,
      execute(_args, ctx) {
        effect(name);
        ctx.businessState = { ...(ctx.businessState as object | undefined), [name]: ctx.step };
        return `${name} done`;
      },
    });
  return createAgent({
    store,
    ports,
    provider: mockModel(script, { answerBy: 'step' }),
    instructions: 'Sell.',
    tools: [tool('look', false), tool('charge', true), tool('ship', false), tool('refund', true)],
  });
}

sweepEveryStore('a crash at every store call', (createStore) => {
  it('of a run with free calls, pauses, a yes and a no leaves it to be finished, with every effect at most as often as it may be', async () => {
    let last: ExecutionResult | undefined;
    const report = await crashSweep({
      createStore: createStore(),
      async run(world) {
        const agent = agentOf(world);
        for (;;) {
          const next = await goOn(agent);
          if (!Array.isArray(next)) {
            last = next as ExecutionResult;
            return;
          }
          for (const id of next as readonly string[]) {
            const request = await agent.approvals.get(id);
            if (request === undefined) continue;
            await agent.approvals.resolve({ id, approved: request.toolName !== 'refund', by: 'ann' });
          }
        }
      },
      check({ effects }) {
        expect(last).toMatchObject({
          finishReason: 'stop',
          text: 'Done.',
          steps: 3,
          usage: { modelCalls: 3 },
        });
        expect(effects.get('refund')).toBeUndefined();
        expect(effects.get('charge')).toBeLessThanOrEqual(2);
        const kinds = last?.toolCalls.map(({ toolName, kind }) => `${toolName} ${kind ?? 'done'}`) ?? [];
        expect(kinds.map((kind) => kind.replace('charge interrupted', 'charge done'))).toEqual([
          'look done',
          'charge done',
          'ship done',
          'refund rejected',
          'look done',
          'charge done',
        ]);
      },
    });
    expect(report.failures).toEqual([]);
    expect(report.points).toBeGreaterThan(60);
  }, 30_000);
});
