/**
 * `npm run bench -- [--quick] [--rounds 5] [--goal N]... [--json FILE]`: measures the goals of goals.mjs and says which hold.
 * A goal compares medians over the rounds.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { neededMeasurements, selectGoals } from './goals.mjs';
import { judge, goalTable, costTable } from './report.mjs';
import { measureRounds } from './rounds.mjs';
import { setUp } from './setup.mjs';

const options = readOptions();
const selected = selectGoals(options.goals);
const measured = measureRounds(neededMeasurements(selected), options.rounds, setUp());
const verdicts = selected.map((goal) => judge(goal, measured));
console.log(`\n${costTable(measured)}\n\n${goalTable(verdicts)}`);
if (options.json !== undefined) writeFileSync(options.json, toJson(verdicts));
if (verdicts.some(({ outcome }) => outcome === 'FAILS' || outcome === 'error')) process.exitCode = 1;

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
