/** Turns measurements into verdicts, and both into tables for a terminal. */
import { holds } from './goals.mjs';
import { median } from './measure.mjs';

/**
 * @typedef {object} Verdict
 * @property {import('./goals.mjs').Goal} goal
 * @property {number} [value] from the medians
 * @property {[number, number]} [range] lowest and highest value of the single rounds
 * @property {'stretch' | 'holds' | 'FAILS' | 'skipped' | 'error'} outcome
 * @property {string} [reason] why there is no value
 */

/** @returns {Verdict} */
export function judge(goal, measured) {
  const entryOf = (contestant, scenario) =>
    measured.find((entry) => entry.contestant === contestant && entry.scenario === scenario);

  let problem;
  goal.value((contestant, scenario) => {
    problem ??= entryOf(contestant, scenario).problem;
    return 1;
  });
  if (problem !== undefined) return { goal, outcome: problem.kind, reason: problem.reason };

  const value = goal.value((contestant, scenario, figure) =>
    median(entryOf(contestant, scenario).rounds.map((figures) => figures[figure])),
  );
  if (Number.isNaN(value)) return { goal, outcome: 'skipped', reason: 'this platform does not count it' };

  const roundCount = measured.find(({ rounds }) => rounds.length > 0).rounds.length;
  const single = Array.from({ length: roundCount }, (_, round) =>
    goal.value((contestant, scenario, figure) => entryOf(contestant, scenario).rounds[round][figure]),
  );
  const outcome = holds(goal, value, goal.stretch)
    ? 'stretch'
    : holds(goal, value, goal.hard)
      ? 'holds'
      : 'FAILS';
  return { goal, value, range: [Math.min(...single), Math.max(...single)], outcome };
}

/** One line a goal. */
export function goalTable(verdicts) {
  const rows = verdicts.map(({ goal, value, range, outcome, reason }) => {
    const sign = goal.bound === 'at least' ? '>=' : '<=';
    const number = (amount) => `${round(amount)}${goal.unit === undefined ? '' : ` ${goal.unit}`}`;
    const limits = [`${sign} ${number(goal.hard)}`, `${sign} ${number(goal.stretch)}`];
    if (value === undefined)
      return [goal.id, goal.compares, '-', '', ...limits, `${outcome}: ${firstLine(reason)}`];
    return [goal.id, goal.compares, number(value), range.map(round).join('..'), ...limits, outcome];
  });
  return table(['goal', 'compares', 'value', 'rounds', 'hard', 'stretch', 'verdict'], rows);
}

/** One line a contestant and scenario: medians. */
export function costTable(measured) {
  const rows = measured
    .filter(({ problem }) => problem === undefined)
    .map(({ contestant, scenario, rounds }) => {
      const of = (figure) => median(rounds.map((figures) => figures[figure]));
      return [
        scenario,
        contestant,
        of('wallMs').toFixed(1),
        of('cpuMs').toFixed(1),
        (of('writeBytes') / 1024).toFixed(0),
        of('maxRssMb').toFixed(0),
      ];
    });
  return table(['scenario', 'contestant', 'wall ms', 'CPU ms', 'KB written', 'peak MB'], rows);
}

function round(value) {
  return Number(value.toPrecision(3)).toString();
}

function firstLine(text) {
  return text.split('\n', 1)[0];
}

function table(head, rows) {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column].length)),
  );
  const line = (cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd();
  return [head, widths.map((width) => '-'.repeat(width)), ...rows].map(line).join('\n');
}
