/** The example of a Worker (docs/examples/cloudflare-worker), as a user has it: over the built packages, in workerd, killed in the middle. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { Response, type Miniflare, type Request } from 'miniflare';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startWorker } from './support/worker.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const example = path.join(root, 'docs/examples/cloudflare-worker');
const runs = mkdtempSync(path.join(os.tmpdir(), 'lousho-worker-'));
const workers: Miniflare[] = [];

beforeAll(() => {
  if (!existsSync(path.join(root, 'packages/store-kv/dist/index.js')))
    throw new Error('The example uses the built packages: npx nx test @lousho/store-kv builds them.');
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.dispose().catch(String)));
  rmSync(runs, { recursive: true, force: true });
});

interface Asked {
  readonly what: string;
  readonly order: string;
  readonly idempotencyKey?: string;
}

/** Charges each key once. While it `hangs`, it says that it was asked to charge and never answers. */
class Shop {
  readonly asked: Asked[] = [];
  readonly charged = new Set<string>();
  hangs = false;
  #sayAsked: () => void = () => undefined;
  readonly askedToCharge = new Promise<void>((resolve) => (this.#sayAsked = resolve));

  answer = async (request: Request): Promise<Response> => {
    const what = new URL(request.url).pathname.slice(1);
    const body = (await request.json()) as Omit<Asked, 'what'>;
    this.asked.push({ what, ...body });
    if (what === 'charge') {
      this.charged.add(body.idempotencyKey ?? '');
      this.#sayAsked();
      if (this.hangs) return new Promise(() => undefined);
    }
    return Response.json({ done: what });
  };
}

async function start(shop: Shop): Promise<Miniflare> {
  const worker = await startWorker({
    entry: path.join(example, 'src/worker.ts'),
    conditions: [],
    binding: 'RUNS',
    persistIn: runs,
    bindings: { LEASE_MS: '2000' },
    services: { SHOP: (request) => shop.answer(request) },
  });
  workers.push(worker);
  return worker;
}

const post = (worker: Miniflare) => worker.dispatchFetch('http://worker/orders/7', { method: 'POST' });

it('finishes in the next request what the killed Worker had begun, and repeats nothing that is stored', async () => {
  const shop = new Shop();
  shop.hangs = true;
  const first = await start(shop);
  const cutOff = post(first).then(
    () => 'answered',
    () => 'cut off',
  );
  await shop.askedToCharge;
  await first.dispose();
  expect(await cutOff).toBe('cut off');

  shop.hangs = false;
  const second = await start(shop);
  // Until its lease has ended nobody can know that its holder is gone: 409, and ask again.
  const response = await vi.waitFor(
    async () => {
      const asked = await post(second);
      if (asked.status !== 200) await asked.body?.cancel();
      expect([asked.status, asked.headers.has('retry-after')]).toEqual([200, false]);
      return asked;
    },
    { timeout: 40_000, interval: 100 },
  );
  const answer = { text: 'Order 7 is charged.', toolCalls: 2, modelCalls: 3 };
  expect(await response.json()).toEqual(answer);
  expect(shop.asked.map(({ what }) => what)).toEqual(['reserve', 'charge', 'charge']);
  expect(shop.charged.size).toBe(1);

  // Whoever asks again gets the stored answer.
  expect(await (await post(second)).json()).toEqual(answer);
  expect(shop.asked.length).toBe(3);
}, 60_000);

it('answers what is no order with 404', async () => {
  const worker = await start(new Shop());
  const response = await worker.dispatchFetch('http://worker/orders/x', { method: 'POST' });
  expect(response.status).toBe(404);
  await response.body?.cancel();
}, 60_000);

it('compiles against what the packages publish', () => {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  expect(execFileSync(process.execPath, [tsc, '-p', example], { encoding: 'utf8' })).toBe('');
}, 60_000);
