/** What the agent can do: two calls of the shop, which is another Worker. */
import { defineTool, type Tool } from '@lousho/core';
import { z } from 'zod';

/** A service binding. */
export interface Shop {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

export function shopTools(shop: Shop): readonly Tool[] {
  const input = z.object({ order: z.string() });
  const ask = async (what: string, body: object): Promise<unknown> => {
    const response = await shop.fetch(`https://shop/${what}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`The shop answered ${response.status}.`);
    return response.json();
  };
  return [
    defineTool({
      name: 'reserve',
      description: 'Reserves the goods of an order.',
      input,
      execute: ({ order }) => ask('reserve', { order }),
    }),
    defineTool({
      name: 'charge',
      description: 'Charges the card of the customer.',
      input,
      // When a Worker is cut off in here, the call is made again, with the same key: the shop charges once.
      execute: ({ order }, { idempotencyKey }) => ask('charge', { order, idempotencyKey }),
    }),
  ];
}
