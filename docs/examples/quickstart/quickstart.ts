/** An agent whose run is stored in a file: started again after it finished, or after it was killed, it repeats nothing that is stored. */
import { createAgent, defineTool } from '@lousho/core';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel } from '@lousho/testing';
import { z } from 'zod';

const charge = defineTool({
  name: 'charge',
  description: 'Charges the card of the customer.',
  input: z.object({ cents: z.number().int() }),
  async execute({ cents }, ctx) {
    console.log(`charging ${cents} cents`);
    // The payment provider gets the key: it stays the same when this call has to be made again.
    return { charged: cents, idempotencyKey: ctx.idempotencyKey };
  },
});

const store = new SqliteStore('./agent.db');
const agent = createAgent({
  name: 'order-desk',
  instructions: 'You charge orders.',
  // Answers from a script, so that no key is needed. Your model goes in here.
  provider: mockModel([{ toolCalls: [{ name: 'charge', args: { cents: 4200 } }] }, 'Order 7 is paid.'], {
    answerBy: 'step',
  }),
  tools: [charge],
  store,
});

const result = await agent.send('Charge 42.00 for order 7.', { sessionId: 'order-7', inputId: 'order-7' });
console.log(result.text);
await store.close();
