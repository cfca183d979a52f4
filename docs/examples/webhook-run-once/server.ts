/** A webhook of a payment provider, which delivers each event at least once: `POST /events` with `{ id, order }`. */
import { createServer, type Server } from 'node:http';
import { json } from 'node:stream/consumers';
import { isSDKError, type Agent } from '@lousho/core';
import { z } from 'zod';

const eventSchema = z.object({ id: z.string().regex(/^evt_[a-z0-9]{1,40}$/), order: z.number().int() });

export function webhookServer(agent: Agent): Server {
  return createServer((request, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    // Its sender delivers an event again that got no 2xx.
    handle(agent, request).then(
      ({ status, body }) => answer(status, body),
      (error: unknown) => {
        console.error(error);
        answer(500, { error: 'failed' });
      },
    );
  });
}

async function handle(agent: Agent, request: AsyncIterable<unknown>) {
  const event = eventSchema.safeParse(await json(request as never).catch(() => undefined));
  if (!event.success) return { status: 400, body: { error: 'POST { id, order }' } };
  const { id, order } = event.data;
  try {
    // The id of the event is the id of the run: any number of deliveries, one run.
    const { text } = await agent.runOnce(id, `Order ${order} was paid.`);
    return { status: 200, body: { text } };
  } catch (error) {
    // Another process executes it: the next delivery meets its stored result.
    if (isSDKError(error, 'LOUSHO_SESSION_BUSY')) return { status: 409, body: { error: error.message } };
    throw error;
  }
}
