/** Stands for the payment provider: delivers one event three times at once, and once more when it was handled. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createAgent, defineTool } from '@lousho/core';
import { SqliteStore } from '@lousho/store-sqlite';
import { mockModel } from '@lousho/testing';
import { z } from 'zod';
import { webhookServer } from './server.ts';

const ship = defineTool({
  name: 'ship',
  description: 'Books the parcel.',
  input: z.object({ order: z.number().int() }),
  async execute({ order }) {
    console.log(`shipping order ${order}`);
    return { parcel: `parcel of order ${order}` };
  },
});

const store = new SqliteStore('./agent.db');
const agent = createAgent({
  name: 'warehouse',
  provider: mockModel([{ toolCalls: [{ name: 'ship', args: { order: 7 } }] }, 'Order 7 is on its way.'], {
    answerBy: 'step',
  }),
  tools: [ship],
  store,
});

const server = webhookServer(agent).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`;

for (const answer of await Promise.all([deliver(), deliver(), deliver()])) console.log(answer);
console.log(await deliver());
server.close();
await store.close();

async function deliver(): Promise<string> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ id: 'evt_1', order: 7 }) });
  return `${response.status} ${await response.text()}`;
}
