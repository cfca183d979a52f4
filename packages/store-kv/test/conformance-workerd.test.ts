/** The same promises in workerd, with its namespace: the bundle of a Worker, no Node, no mock. */
import { fileURLToPath } from 'node:url';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RuleReport } from './support/conformance-worker.ts';
import { startWorker } from './support/worker.ts';

let worker: Miniflare;
beforeAll(async () => {
  worker = await startWorker({
    entry: fileURLToPath(new URL('./support/conformance-worker.ts', import.meta.url)),
    conditions: ['@lousho/source'],
    binding: 'RUNS',
  });
}, 60_000);
afterAll(() => worker?.dispose());

const groups = [
  ...['checkpoints', 'leases', 'fencing', 'history', 'list'],
  ...['approvals', 'sessions', 'lifecycle', 'weaker'],
];
/** What only stores with stronger claims are asked, and L13: to list leases would take a read for each run. */
const notClaimed = ['F3', 'L1', 'L2', 'L13'];

it.each(groups)(
  'keeps the promises about %s in workerd',
  async (group) => {
    const response = await worker.dispatchFetch(`http://worker/${group}`);
    const rules = (await response.json()) as readonly RuleReport[];
    expect(rules.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
    const skipped = rules.filter(({ outcome }) => outcome === 'skipped').map(({ id }) => id);
    expect(skipped.filter((id) => !notClaimed.includes(id))).toEqual([]);
    expect(rules.filter(({ outcome }) => outcome === 'passed').length).toBeGreaterThan(2);
  },
  120_000,
);

it('reads back in workerd what has the longest keys, and text that is not well-formed', async () => {
  const response = await worker.dispatchFetch('http://worker/limits');
  const { stored, read } = (await response.json()) as { readonly stored: unknown; readonly read: unknown };
  expect(read).toEqual(stored);
}, 60_000);
