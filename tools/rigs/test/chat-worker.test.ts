/** `http`, `provider-ai-sdk` and `store-kv` in workerd: a page of the AI SDK talks to a Worker that is killed in the middle of an answer. */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { UIMessage } from 'ai';
import { Response, type Miniflare, type Request } from 'miniflare';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import {
  approvalIdsIn,
  openPage,
  partsOf,
  type Page,
} from '../../../packages/http/test/support/chat-page.ts';
import { anthropic } from '../../../packages/provider-ai-sdk/test/support/anthropic.ts';
import { ANSWER, TEXT } from '../../../packages/provider-ai-sdk/test/support/service.ts';
import {
  startWireServer,
  type Answer,
  type WireServer,
} from '../../../packages/provider-ai-sdk/test/support/wire-server.ts';
import { startWorker } from '../../../packages/store-kv/test/support/worker.ts';

let model: WireServer;
let folder: string;
/** Which tools ran, in order. */
let ran: string[];
/** What holds the model's answer back. */
let gate: Promise<void>;

beforeAll(async () => {
  model = await startWireServer();
  folder = mkdtempSync(path.join(os.tmpdir(), 'lousho-chat-worker-'));
});
afterAll(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  ran = [];
  gate = Promise.resolve();
});

/** Over the built packages, as esbuild finds them for whoever installs them. */
async function startChat(runs: string): Promise<{ readonly api: string; readonly worker: Miniflare }> {
  const worker = await startWorker({
    entry: path.join(import.meta.dirname, 'support/chat-worker.ts'),
    conditions: [],
    binding: 'RUNS',
    persistIn: path.join(folder, runs),
    services: {
      async MODEL(request) {
        await gate;
        return forward(request);
      },
      async TOOLS(request) {
        const name = new URL(request.url).pathname.slice(1);
        ran.push(name);
        return new Response(`${name} is fine`);
      },
    },
  });
  onTestFinished(() => worker.dispose().catch(() => undefined));
  return { worker, api: `${(await worker.ready).origin}/api/chat` };
}

/** Byte by byte, as they come. */
async function forward(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const body = await request.text();
  const answer = await fetch(new URL(pathname, model.baseUrl), { method: 'POST', body });
  return new Response(answer.body as never, { status: answer.status, headers: [...answer.headers] });
}

/** Half of the second step, and then nothing. */
const breaksOff: Answer = (request) => {
  const { chunks, ...reply } = anthropic.secondStep(request);
  return { ...reply, chunks: chunks.slice(0, 4), end: 'hang' };
};

async function reloaded(api: string): Promise<Page> {
  const { messages } = (await (await fetch(`${api}/chat`)).json()) as { messages: UIMessage[] };
  const page = openPage('v6', { api, id: 'chat', messages });
  await page.chat.resumeStream();
  return page;
}

const asked = ['reasoning:done', `text:${TEXT}`, 'tool-weather:output-available'];

it('goes on with the answer of a Worker that was killed, and an approved call runs once', async () => {
  model.answerWith(anthropic.firstStep, breaksOff, anthropic.secondStep);
  const first = await startChat('killed');
  const page = openPage('v6', { api: first.api, id: 'chat' });
  await page.chat.sendMessage({ text: 'How is the weather?' });
  expect(partsOf(page.chat.lastMessage)).toEqual([...asked, 'tool-now:approval-requested']);
  expect(ran).toEqual(['weather']);

  const [id = ''] = approvalIdsIn(page.chat.lastMessage);
  await page.chat.addToolApprovalResponse({ id, approved: true });
  await vi.waitFor(() => expect(partsOf(page.chat.lastMessage).at(-1)).toMatch(/^text:It is/), 20_000);
  await first.worker.dispose();
  await page.settled();
  expect(page.chat.status).toBe('error');
  expect(partsOf(page.chat.lastMessage).at(-1)).not.toBe(`text:${ANSWER}`);

  const second = await startChat('killed');
  // Until its lease has ended nobody can know that the first one is gone; then the Worker that the page asked goes on.
  const later = await reloaded(second.api);
  expect(later.chat.messages.map(partsOf)).toEqual([
    ['text:How is the weather?'],
    [...asked, 'tool-now:output-available', `text:${ANSWER}`],
  ]);
  expect(ran).toEqual(['weather', 'now']);
  expect(model.requests).toHaveLength(3);
  // The signatures of the first step as well.
  expect(anthropic.itemsIn(model.requests[2]?.body ?? {})).toEqual(anthropic.itemsOfFirstStep);
  expect((await reloaded(second.api)).chat.messages.map(partsOf)).toEqual(later.chat.messages.map(partsOf));
});

it('finishes an answer whose page went away', async () => {
  model.answerWith(anthropic.secondStep);
  let open: () => void = () => undefined;
  gate = new Promise((resolve) => (open = resolve));
  const { api } = await startChat('left');
  const words = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'How is the weather?' }] }];
  const body = JSON.stringify({ id: 'chat', messages: words });
  const reader = (await fetch(api, { method: 'POST', body })).body?.getReader();
  await reader?.read();
  await reader?.cancel();
  open();
  await vi.waitFor(
    async () => {
      const { messages } = (await (await fetch(`${api}/chat`)).json()) as { messages: UIMessage[] };
      expect(messages.map(partsOf).at(-1)).toEqual([`text:${ANSWER}`]);
    },
    { timeout: 30_000, interval: 200 },
  );
});
