/** The agent: it looks orders up, and pays back what a person agrees to. */
import { createAgent, defineTool, type Agent, type AgentStore, type LLMProvider } from '@lousho/core';
import { z } from 'zod';
import type { Shop } from './shop.ts';

export function supportDesk(provider: LLMProvider, shop: Shop, store: AgentStore): Agent {
  const order = z.number().int().describe('The number of the order');
  const findOrder = defineTool({
    name: 'find_order',
    description: 'Looks an order up: what it is, what it cost, where it is.',
    input: z.object({ order }),
    execute: ({ order: number }) => shop.find(number),
  });
  const refund = defineTool({
    name: 'refund',
    description: 'Pays money of an order back to the card of the customer.',
    input: z.object({ order, cents: z.number().int().positive() }),
    // Nothing runs before a person has seen the order and the sum; after that it runs at most once.
    needsApproval: true,
    execute: ({ order: number, cents }, { idempotencyKey }) => shop.refund(number, cents, idempotencyKey),
  });
  return createAgent({
    name: 'support-desk',
    instructions: [
      'You are the support desk of a small shop. Look an order up before you speak about it.',
      'Say in a sentence what you are about to pay back, then call refund. A person is asked before it runs.',
    ].join(' '),
    provider,
    tools: [findOrder, refund],
    store,
  });
}
