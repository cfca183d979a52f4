/**
 * `npm run simulate -- [--seeds 5000] [--seed 1]`: tells the stories of so many seeds, from that one on, and says which break a promise
 * of docs/contract.md. What happens in them is in packages/testing/src/simulation. Runs the sources: nothing has to be built.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';

const MOST_SHOWN = 5;
const SEEDS_A_LINE = 5_000;

const { count, first } = readOptions();
const startedMs = performance.now();
let told = 0;
const folder = mkdtempSync(path.join(os.tmpdir(), 'lousho-simulate-'));
try {
  const program = await bundle();
  const workers = Math.max(1, Math.min(count, os.availableParallelism()));
  const shares = Array.from({ length: workers }, (_, index) => ({
    first: first + index,
    count: Math.ceil((count - index) / workers),
    step: workers,
  }));
  const runs = (await Promise.all(shares.map((share) => runShare(program, share)))).flat();
  const failures = runs.filter(({ failure }) => failure !== undefined);
  for (const { failure } of failures.slice(0, MOST_SHOWN)) console.log(`${failure}\n`);
  if (failures.length > MOST_SHOWN)
    console.log(
      `... and seeds ${failures
        .slice(MOST_SHOWN)
        .map(({ seed }) => seed)
        .join(', ')}`,
    );
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  console.log(`${runs.length} seeds from ${first} on, ${seconds} s, ${failures.length} failures`);
  if (failures.length > 0 || runs.length < count) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function readOptions() {
  const { values } = parseArgs({ options: { seeds: { type: 'string' }, seed: { type: 'string' } } });
  const numbers = { count: Number(values.seeds ?? 5_000), first: Number(values.seed ?? 1) };
  for (const number of Object.values(numbers))
    if (!Number.isSafeInteger(number) || number < 1)
      throw new Error('--seeds and --seed are whole numbers from 1 on');
  return numbers;
}

/** One file with every package in it, each once. */
async function bundle() {
  const outfile = path.join(folder, 'run-seeds.mjs');
  await build({
    entryPoints: [path.join(import.meta.dirname, 'src', 'simulation', 'run-seeds.ts')],
    ...{ outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'warning' },
    conditions: ['@lousho/source'],
  });
  return outfile;
}

/** In a thread of its own: hashes are put in order there, one world at a time. */
function runShare(program, share) {
  return new Promise((resolve, reject) => {
    const runs = [];
    const worker = new Worker(program, { workerData: share });
    worker.on('message', (run) => {
      runs.push(run);
      if (run.failure !== undefined) console.log(`Seed ${run.seed} fails.`);
      told += 1;
      if (told % SEEDS_A_LINE === 0 && told < count) console.error(`${told} of ${count} seeds`);
    });
    worker.on('error', reject);
    worker.on('exit', () => resolve(runs));
  });
}
