/**
 * `npm run bench -- [--quick] [--rounds 5] [--goal N]... [--json FILE]`: measures the goals of goals.mjs and says which hold.
 *
 * Each measurement is a fresh process. A round measures each contestant of each scenario once, so that what disturbs the
 * machine disturbs all of them; a goal compares medians over the rounds.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { neededMeasurements, selectGoals } from './goals.mjs';
import { judge, goalTable, costTable } from './report.mjs';
import { scenarios } from './scenarios.mjs';
import { setUp } from './setup.mjs';

const MEASUREMENT_LIMIT_MS = 300_000;

const options = readOptions();
const selected = selectGoals(options.goals);
const nodeFor = setUp();
// Below the repository, not in the system's temporary folder: that one is often memory, where a sync costs nothing.
const scratch = mkdtempSync(path.join(import.meta.dirname, 'scratch-'));
try {
  const measured = measureAll(neededMeasurements(selected));
  const verdicts = selected.map((goal) => judge(goal, measured));
  console.log(`\n${costTable(measured)}\n\n${goalTable(verdicts)}`);
  if (options.json !== undefined) writeFileSync(options.json, toJson(verdicts));
  if (verdicts.some(({ outcome }) => outcome === 'FAILS' || outcome === 'error')) process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      goal: { type: 'string', multiple: true, default: [] },
      json: { type: 'string' },
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? 2 : 5));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number from 1.');
  return { rounds, goals: values.goal, json: values.json };
}

/** @returns one entry a contestant and scenario: `{ contestant, scenario, rounds: figures[] }` or, in place of rounds, `problem` */
function measureAll(needed) {
  const measured = [...needed].flatMap(([scenario, contestants]) =>
    [...contestants].map((contestant) => ({ contestant, scenario, rounds: [] })),
  );
  for (const entry of measured) prepare(entry);
  for (let round = 1; round <= options.rounds; round += 1) {
    // The other way round every second time: nobody always runs in the wake of the same neighbour.
    const order = round % 2 === 1 ? measured : measured.toReversed();
    for (const entry of order) measureOnce(entry, round);
  }
  return measured;
}

/** Makes what the scenario starts from, once; every round works on a copy. */
function prepare(entry) {
  const node = nodeFor(entry.contestant);
  if (node.missing !== undefined) {
    entry.problem = { kind: 'skipped', reason: node.missing };
    return;
  }
  entry.node = node.path;
  if (scenarios[entry.scenario.split(' ')[0]].prepare === undefined) return;
  entry.prepared = path.join(scratch, `${entry.contestant} ${entry.scenario}`.replaceAll(/\W/g, '-'));
  mkdirSync(entry.prepared);
  inNewProcess(entry, entry.prepared, 'prepare');
}

function measureOnce(entry, round) {
  if (entry.problem !== undefined) return;
  const directory = path.join(scratch, 'measured');
  if (entry.prepared === undefined) mkdirSync(directory);
  else cpSync(entry.prepared, directory, { recursive: true });
  const figures = inNewProcess(entry, directory, 'measure');
  rmSync(directory, { recursive: true });
  if (figures === undefined) return;
  entry.rounds.push(figures);
  const name = `${entry.contestant.padEnd(22)} ${entry.scenario.padEnd(20)}`;
  console.log(
    `round ${round}  ${name} wall ${figures.wallMs.toFixed(1)} ms, CPU ${figures.cpuMs.toFixed(1)} ms`,
  );
}

function inNewProcess(entry, directory, phase) {
  const script = path.join(import.meta.dirname, 'measure-one.mjs');
  const startedAtMs = performance.now();
  const child = spawnSync(entry.node, [script, entry.contestant, entry.scenario, directory, phase], {
    encoding: 'utf8',
    timeout: MEASUREMENT_LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  const processMs = performance.now() - startedAtMs;
  if (child.status === 0) return { ...JSON.parse(child.stdout.trimEnd().split('\n').at(-1)), processMs };
  const reason = child.error?.message ?? child.stderr.trim();
  entry.problem = { kind: 'error', reason: `${entry.contestant}, ${entry.scenario}, ${phase}: ${reason}` };
  console.error(entry.problem.reason);
  return undefined;
}

function toJson(verdicts) {
  const rows = verdicts.map(({ goal: { id, hard, stretch }, value, reason }) => ({
    goal: id,
    value: value ?? null,
    hard,
    stretch,
    ...(reason === undefined ? {} : { reason }),
  }));
  return `${JSON.stringify(rows, null, 2)}\n`;
}
