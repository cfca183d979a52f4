/** The same promises in workerd, with its Web Crypto: the bundle of a Worker, and no Node. */
import { fileURLToPath } from 'node:url';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startWorker } from '../../store-kv/test/support/worker.ts';
import type { RuleReport } from './support/conformance-worker.ts';

let worker: Miniflare;
beforeAll(async () => {
  worker = await startWorker({
    entry: fileURLToPath(new URL('./support/conformance-worker.ts', import.meta.url)),
    conditions: ['@lousho/source'],
    binding: 'UNUSED',
  });
}, 60_000);
afterAll(() => worker?.dispose());

it.each(['checkpoints', 'leases', 'fencing', 'history', 'list', 'approvals', 'sessions', 'lifecycle'])(
  'keeps the promises about %s in workerd',
  async (group) => {
    const response = await worker.dispatchFetch(`http://worker/${group}`);
    const rules = (await response.json()) as readonly RuleReport[];
    expect(rules.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
    expect(rules.filter(({ outcome }) => outcome === 'passed').length).toBeGreaterThan(2);
  },
  120_000,
);
