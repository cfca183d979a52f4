/** What was measured, as a page of the documentation. */
import { median } from '../measure.mjs';

const OURS = 'lousho:sqlite';

/**
 * @param {object} facts `{ roundCount, versions: Record<package, version>, machine: string }`
 * @returns the text of docs/benchmarks.md
 */
export function benchmarkPage(measurements, contestants, measured, { roundCount, versions, machine }) {
  return `# Benchmarks beside peers

Written by \`npm run bench:peers -- --write\`: everything on this page comes from one run of it. Each figure is the median of ${roundCount} rounds
in processes of their own, on ${machine}. The machine, its disk and what else it did are in every figure of time, so
compare the figures of one table with each other, and no figure with one from elsewhere. Bytes are steady.

The job is [the same for all](../tools/bench/README.md#the-job): the model says 200 bytes and asks for a tool whose result is 1 KB. The model is
scripted and answers at once, so what is measured is the loop around it and what it keeps.

![What a turn writes and how long it takes, over the length of the run](images/benchmarks.svg)

## Who keeps what

A peer that keeps less, or later, has less to do. "Synced" survives a power cut.

${table(
  ['contestant', 'survives'],
  Object.values(contestants).map(({ label, keeps }) => [label, keeps]),
)}

${measurements.map((measurement) => section(measurement, contestants, measured)).join('\n\n')}

## Versions

${Object.entries(versions)
  .map(([name, version]) => `- ${name} ${version}`)
  .join('\n')}
`;
}

function section({ scenario, title, contestants: names, columns }, contestants, measured) {
  const entryOf = (name) =>
    measured.find((entry) => entry.contestant === name && entry.scenario === scenario);
  const valueOf = (name, { of }) => median(entryOf(name).rounds.map(of));
  const rows = names.map((name) => {
    const { problem } = entryOf(name);
    const { label } = contestants[name];
    if (problem !== undefined) return [label, reasonOf(problem), ...columns.slice(1).map(() => ''), ''];
    const [first] = columns;
    const times = valueOf(name, first) / valueOf(OURS, first);
    return [
      label,
      ...columns.map((column) => figure(valueOf(name, column))),
      name === OURS ? '' : figure(times),
    ];
  });
  const head = [
    'contestant',
    ...columns.map(({ head: name }) => name),
    `${columns[0].head} / Lousho, SqliteStore`,
  ];
  return `## ${title}\n\n${table(head, rows, '--:')}`;
}

function reasonOf({ kind, reason }) {
  return kind === 'skipped' ? `skipped: ${reason}` : 'failed, or took longer than 5 minutes';
}

function figure(value) {
  return Number(value.toPrecision(3)).toLocaleString('en', { maximumFractionDigits: 3 });
}

function table(head, rows, alignment = '---') {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const under = head.map((_, column) => (column === 0 ? '---' : alignment));
  return [head, under, ...rows].map(line).join('\n');
}
