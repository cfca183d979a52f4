/**
 * Measures contestants in rounds. Each measurement is a fresh process; a round measures each contestant of each scenario once, so that
 * what disturbs the machine disturbs all of them.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { scenarios } from './scenarios.mjs';

const MEASUREMENT_LIMIT_MS = 300_000;

/**
 * @param {Map<string, Iterable<string>>} needed scenario to contestants
 * @param {(contestant: string) => { path: string } | { missing: string }} nodeFor
 * @returns one entry a contestant and scenario: `{ contestant, scenario, rounds: figures[] }` or, in place of rounds, `problem`
 */
export function measureRounds(needed, roundCount, nodeFor) {
  // Below the repository, not in the system's temporary folder: that one is often memory, where a sync costs nothing.
  const scratch = mkdtempSync(path.join(import.meta.dirname, 'scratch-'));
  try {
    const measured = [...needed].flatMap(([scenario, contestants]) =>
      [...contestants].map((contestant) => ({ contestant, scenario, rounds: [] })),
    );
    for (const entry of measured) prepare(entry, scratch, nodeFor(entry.contestant));
    for (let round = 1; round <= roundCount; round += 1) {
      // The other way round every second time: nobody always runs in the wake of the same neighbour.
      const order = round % 2 === 1 ? measured : measured.toReversed();
      for (const entry of order) measureOnce(entry, scratch, round);
    }
    return measured;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Makes what the scenario starts from, once; every round works on a copy. */
function prepare(entry, scratch, node) {
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

function measureOnce(entry, scratch, round) {
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
