/** One process of the shop: takes the order when it is new, and finishes what another process left unfinished. */
import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, defineTool } from '@lousho/core';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel } from '@lousho/testing';
import { z } from 'zod';

const order = z.object({ order: z.number().int() });

const charge = defineTool({
  name: 'charge',
  description: 'Charges the card of the customer.',
  input: order,
  async execute({ order }) {
    appendFileSync('payments.txt', `order ${order}: 42.00\n`);
    console.log('charged');
    return 'charged 42.00';
  },
});
const ship = defineTool({
  name: 'ship',
  description: 'Books the parcel. Slow.',
  input: order,
  async execute({ order }, ctx) {
    // `rerun`: an earlier process began this call and died in it. The key of both is the same.
    console.log(ctx.rerun ? 'shipping, again' : 'shipping');
    await wait(3000, undefined, { signal: ctx.signal });
    return { parcel: `parcel of order ${order}`, key: ctx.idempotencyKey };
  },
});

const store = new SqliteStore('./agent.db');
const agent = createAgent({
  name: 'shop',
  provider: mockModel(
    [
      { toolCalls: [{ name: 'charge', args: { order: 7 } }] },
      { toolCalls: [{ name: 'ship', args: { order: 7 } }] },
      'Order 7 is paid and on its way.',
    ],
    { answerBy: 'step' },
  ),
  tools: [charge, ship],
  store,
});

if (process.argv[2] === 'order') {
  console.log((await agent.send('Handle order 7.', { sessionId: 'order-7', inputId: 'order-7' })).text);
} else {
  // What every process of a service does when it starts. Here it stops behind the first run that it finished.
  const recovery = agent.recover({
    onRecovered: (run, { text }) => {
      console.log(`recovered ${run.sessionId}: ${text}`);
      void recovery.stop();
    },
    onError: (error) => console.error(error),
  });
  await recovery.done;
}
await store.close();
