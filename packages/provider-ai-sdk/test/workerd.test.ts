/** An agent with models of the AI SDK in workerd: it pauses in one runtime and is finished by another, over one KV namespace. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Response, type Miniflare, type Request } from 'miniflare';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startWorker } from '../../store-kv/test/support/worker.ts';
import { modelNamed } from './support/models.ts';
import { ANSWER } from './support/service.ts';
import { startWireServer, type WireServer } from './support/wire-server.ts';

let server: WireServer;
const workers: Miniflare[] = [];
const folder = mkdtempSync(path.join(os.tmpdir(), 'lousho-provider-'));
beforeAll(async () => {
  server = await startWireServer();
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.dispose().catch(String)));
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What the Worker asks its model goes to the server of this test, byte by byte, and so does the answer. */
async function forward(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const answer = await fetch(new URL(pathname, server.baseUrl), {
    method: 'POST',
    body: await request.text(),
  });
  return new Response(answer.body as never, { status: answer.status, headers: [...answer.headers] });
}

async function start(persistIn: string): Promise<Miniflare> {
  const worker = await startWorker({
    entry: fileURLToPath(new URL('./support/model-worker.ts', import.meta.url)),
    conditions: ['@lousho/source'],
    binding: 'RUNS',
    persistIn,
    services: { MODEL: forward },
  });
  workers.push(worker);
  return worker;
}

it.each(['anthropic v3', 'openai responses v3', 'openai-compatible v4'])(
  'goes on in another runtime, with every item of the first step: %s',
  async (name) => {
    const { service } = modelNamed(name);
    server.answerWith(service.firstStep, service.secondStep);
    const runs = path.join(folder, name);
    const ask = async (worker: Miniflare, what: string): Promise<unknown> =>
      (await worker.dispatchFetch(`http://worker/${what}?model=${encodeURIComponent(name)}`)).json();

    const first = await start(runs);
    expect(await ask(first, 'start')).toEqual({ finishReason: 'awaiting-approval' });
    await first.dispose();
    expect(await ask(await start(runs), 'approve')).toEqual({ text: ANSWER });
    expect(server.requests).toHaveLength(2);
    expect(service.itemsIn(server.requests[1]?.body ?? {})).toEqual(service.itemsOfFirstStep);
  },
);
