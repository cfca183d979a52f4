/** The agent of both processes: it gives money back, and a person says yes or no before. */
import { createAgent, defineTool, type Agent, type AgentStore } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import { z } from 'zod';

const refund = defineTool({
  name: 'refund',
  description: 'Gives money back.',
  input: z.object({ order: z.number().int(), cents: z.number().int() }),
  needsApproval: ({ cents }) => cents > 1000,
  async execute({ order, cents }) {
    console.log(`refunding ${cents} cents of order ${order}`);
    return { refunded: cents };
  },
});

export function refundDesk(store: AgentStore): Agent {
  return createAgent({
    name: 'refund-desk',
    // Answers from a script, so that no key is needed: it asks for the refund, then says what became of it.
    provider: mockModel(
      [
        { toolCalls: [{ name: 'refund', args: { order: 8, cents: 5000 } }] },
        ({ messages }) => {
          const result = JSON.stringify(messages.at(-1));
          return result.includes('"isError":true') ? 'No refund, sorry.' : 'Your refund is on its way.';
        },
      ],
      { answerBy: 'step' },
    ),
    tools: [refund],
    store,
  });
}
