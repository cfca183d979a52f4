/** `POST /orders/<number>` handles an order. Sent again after the Worker was cut off, it finishes what was begun and repeats nothing. */
import { createAgent, isSDKError, type Agent } from '@lousho/core';
import { KVStore, type KVNamespaceLike } from '@lousho/store-kv';
import { scriptedModel } from './scripted-model.ts';
import { shopTools, type Shop } from './shop-tools.ts';

interface Env {
  readonly RUNS: KVNamespaceLike;
  readonly SHOP: Shop;
  readonly LEASE_MS: string;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const order = /^\/orders\/(\d{1,9})$/.exec(new URL(request.url).pathname)?.[1];
    if (order === undefined || request.method !== 'POST')
      return Response.json({ error: 'POST /orders/<number>' }, { status: 404 });
    try {
      const { text, toolCalls, usage } = await orderDesk(env).send(`Handle order ${order}.`, {
        // The name of the run: whoever sends it again meets what is stored under it.
        sessionId: `order-${order}`,
        // The same input, however often it is sent.
        inputId: `order-${order}`,
      });
      return Response.json({ text, toolCalls: toolCalls.length, modelCalls: usage.modelCalls });
    } catch (error) {
      // It is executing in another request, or was until a moment ago.
      if (isSDKError(error, 'LOUSHO_SESSION_BUSY'))
        return Response.json({ error: error.message }, { status: 409, headers: { 'retry-after': '10' } });
      throw error;
    }
  },
};

/** In each request anew: what one request of a Worker waits for, another cannot. */
function orderDesk({ RUNS, SHOP, LEASE_MS }: Env): Agent {
  return createAgent({
    name: 'order-desk',
    instructions: 'You handle orders: reserve the goods, charge the card, tell the customer.',
    provider: scriptedModel,
    tools: shopTools(SHOP),
    store: new KVStore(RUNS),
    lease: { ttlMs: Number(LEASE_MS) },
  });
}
