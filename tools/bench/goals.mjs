/**
 * What has to be fast and by how much. `hard` is what a release must keep, `stretch` what we want to publish.
 *
 * A goal's `value` is a function of medians: `of(contestant, scenario, figure)`. What is measured follows from what the
 * values ask for, so a new goal is a new row here and nothing else.
 */

const ours = 'lousho:sqlite';
const oursProcess = 'lousho:sqlite-process';
const oursFile = 'lousho:file';
const oursKV = 'lousho:kv';
const oursMemory = 'lousho:memory';
const oursStoreless = 'lousho:none';
const raw = 'raw:fenced';
const group = 'raw:group';
const appending = 'raw:append';
const ai6 = 'ai:6';
const ai7 = 'ai:7';

const sequence = (turns) => `sequence ${turns}`;
const thousand = sequence(1000);
const parallel = 'parallel 32';
const short = 'short 1000';
const concurrent = 'concurrent 1000 100';

/**
 * @typedef {object} Goal
 * @property {string} id `<goal>` or `<goal>@<which of its figures>`
 * @property {string} compares
 * @property {(of: (contestant: string, scenario: string, figure: string) => number) => number} value
 * @property {number} hard
 * @property {number} stretch
 * @property {'at most' | 'at least'} [bound] 'at most' by default
 * @property {string} [unit] a ratio by default
 */

/** @type {Goal[]} */
const goals = [
  ...[50, 200, 1000].map((turns) => ({
    id: `1@${turns}`,
    compares: `bytes written per turn / raw, N=${turns}`,
    value: ratio('writeBytes', sequence(turns), ours, raw),
    hard: 1.15,
    stretch: 0.8,
  })),
  {
    id: '2',
    compares: 'bytes written per turn, N=1000 / N=50',
    value: (of) => of(ours, thousand, 'writeBytes') / 20 / of(ours, sequence(50), 'writeBytes'),
    hard: 1.05,
    stretch: 1.02,
  },
  {
    id: '3@cpu',
    compares: 'growth of CPU from N=200 to N=1000, as an exponent',
    value: (of) => Math.log(of(ours, thousand, 'cpuMs') / of(ours, sequence(200), 'cpuMs')) / Math.log(5),
    hard: 1.05,
    stretch: 0.95,
  },
  {
    id: '3@turn',
    compares: 'time of a turn, last tenth / first tenth, N=1000',
    value: (of) => of(ours, thousand, 'slowdown'),
    hard: 1.2,
    stretch: 1.05,
  },
  {
    id: '4',
    compares: 'closed database / raw, N=1000',
    value: ratio('closedBytes', thousand, ours, raw),
    hard: 1.25,
    stretch: 1.1,
  },
  ...[200, 1000].map((turns) => ({
    id: `5@${turns}`,
    compares: `wall per turn / raw, N=${turns}`,
    value: ratio('wallMs', sequence(turns), ours, raw),
    hard: 1.6,
    stretch: 1.3,
  })),
  {
    id: '6',
    compares: 'CPU per turn / raw, N=1000',
    value: ratio('cpuMs', thousand, ours, raw),
    hard: 2.0,
    stretch: 1.5,
  },
  {
    id: '7@200',
    compares: 'wall / AI SDK 7 without durability, N=200',
    value: ratio('wallMs', sequence(200), ours, ai7),
    hard: 1.7,
    stretch: 1.3,
  },
  {
    id: '7@1000',
    compares: 'wall / AI SDK 7 without durability, N=1000',
    value: ratio('wallMs', thousand, ours, ai7),
    hard: 1.2,
    stretch: 1.0,
  },
  ...[200, 1000].map((turns) => ({
    id: `7b@${turns}`,
    compares: `(wall - raw) / AI SDK 7, N=${turns}`,
    value: (of) => {
      const wallMs = (contestant) => of(contestant, sequence(turns), 'wallMs');
      return (wallMs(ours) - wallMs(raw)) / wallMs(ai7);
    },
    hard: 0.5,
    stretch: 0.3,
  })),
  {
    id: '7c@200',
    compares: 'wall / AI SDK 6 on the same Node, N=200',
    value: ratio('wallMs', sequence(200), ours, ai6),
    hard: 0.7,
    stretch: 0.55,
  },
  {
    id: '7c@1000',
    compares: 'wall / AI SDK 6 on the same Node, N=1000',
    value: ratio('wallMs', thousand, ours, ai6),
    hard: 0.13,
    stretch: 0.11,
  },
  {
    id: '8',
    compares: "wall with durability 'process' / AI SDK 7, N=1000",
    value: ratio('wallMs', thousand, oursProcess, ai7),
    hard: 0.5,
    stretch: 0.3,
  },
  {
    id: '9@wall',
    compares: 'a turn of 32 parallel calls / raw with group commit',
    value: ratio('sessionMs', parallel, ours, group),
    hard: 2.5,
    stretch: 1.5,
  },
  {
    id: '9@bytes',
    compares: 'bytes written by 12 such turns, closing included / raw with group commit',
    value: ratio('writeBytes', parallel, ours, group),
    hard: 1.3,
    stretch: 1.3,
  },
  {
    id: '10',
    compares: 'sessions a second, 100 at a time, 3 turns each / AI SDK 7',
    value: ratio('sessionsPerSecond', concurrent, ours, ai7),
    bound: 'at least',
    hard: 0.5,
    stretch: 0.7,
  },
  {
    id: '11',
    compares: 'sessions of 3 turns one after another, wall / raw',
    value: ratio('wallMs', short, ours, raw),
    hard: 1.6,
    stretch: 1.3,
  },
  {
    id: '12@sqlite',
    compares: 'resume, from open to the next model call / raw, N=1000',
    value: ratio('toModelCallMs', 'resume 1000', ours, raw),
    hard: 3,
    stretch: 1.5,
  },
  {
    id: '12@file',
    compares: 'the same with fileStore / raw append',
    value: ratio('toModelCallMs', 'resume 1000', oursFile, appending),
    hard: 3,
    stretch: 1.5,
  },
  {
    id: '13@ms',
    compares: 'pending() of 100 unfinished beside 10,000 finished',
    value: (of) => of(ours, 'pending 10000', 'listMs'),
    unit: 'ms',
    hard: 3,
    stretch: 1,
  },
  {
    id: '13@stored',
    compares: 'the same / beside 1,000 finished',
    value: listing(ours, 1000),
    hard: 1.2,
    stretch: 1.2,
  },
  ...['sqlite', 'file'].map((store) => ({
    id: `13@${store}-alone`,
    compares: `${store}: pending() of 100 unfinished beside 10,000 finished / of 100 alone`,
    value: listing(`lousho:${store}`, 0),
    hard: 2,
    stretch: 1.2,
  })),
  {
    id: '14@read',
    compares: 'history of 50 states / one load, N=1000',
    value: (of) => of(ours, 'history 1000', 'historyMs') / of(ours, 'history 1000', 'loadMs'),
    hard: 3,
    stretch: 1.5,
  },
  {
    id: '14@fork',
    compares: 'bytes written by a fork / the transcript, N=1000',
    value: (of) => of(ours, 'history 1000', 'forkBytes') / of(ours, 'history 1000', 'transcriptBytes'),
    hard: 2,
    stretch: 0.1,
  },
  {
    id: '14@fork-growth',
    compares: 'bytes written by a fork, N=1000 / N=50',
    value: (of) => of(ours, 'history 1000', 'forkBytes') / of(ours, 'history 50', 'forkBytes'),
    hard: 1.3,
    stretch: 1.05,
  },
  {
    id: '15@sqlite',
    compares: 'peak memory / AI SDK 7, N=1000',
    value: ratio('maxRssMb', thousand, ours, ai7),
    hard: 1.1,
    stretch: 0.8,
  },
  {
    id: '15@memory',
    compares: 'peak memory of memoryStore / AI SDK 7, N=1000',
    value: ratio('maxRssMb', thousand, oursMemory, ai7),
    hard: 1.3,
    stretch: 1.0,
  },
  {
    id: '16',
    compares: 'CPU with memoryStore / without a store, N=1000',
    value: ratio('cpuMs', thousand, oursMemory, oursStoreless),
    hard: 1.3,
    stretch: 1.1,
  },
  {
    id: '17@bytes',
    compares: 'bytes written per turn with fileStore / raw append, N=1000',
    value: ratio('writeBytes', thousand, oursFile, appending),
    hard: 1.5,
    stretch: 1.1,
  },
  {
    id: '17@wall',
    compares: 'wall per turn with fileStore / raw append, N=1000',
    value: ratio('wallMs', thousand, oursFile, appending),
    hard: 1.8,
    stretch: 1.3,
  },
  {
    id: '19',
    compares: 'bytes put per turn with KVStore, N=1000 / N=50',
    value: (of) => of(oursKV, thousand, 'putBytes') / 20 / of(oursKV, sequence(50), 'putBytes'),
    hard: 1.1,
    stretch: 1.05,
  },
  {
    id: '20',
    compares: 'a cold process with 10 turns, start to exit / raw',
    value: ratio('processMs', 'cold 10', ours, raw),
    hard: 2.0,
    stretch: 1.6,
  },
  ...['sqlite', 'file'].flatMap((store) => [
    ...[1000, 10_000].map((messages) => ({
      id: `save@${store}-${messages}-bytes`,
      compares: `${store}: bytes of a save behind ${messages} messages / behind 10`,
      value: growth('writeBytes', `store:${store}`, messages),
      hard: 1.3,
      stretch: 1.05,
    })),
    ...[1000, 10_000].map((messages) => ({
      id: `save@${store}-${messages}-ms`,
      compares: `${store}: time of a save behind ${messages} messages / behind 10`,
      value: growth('saveMs', `store:${store}`, messages),
      hard: 1.3,
      stretch: 1.05,
    })),
  ]),
  {
    id: 'save@append',
    compares: 'a save of the file store / a raw append and sync of as many bytes',
    value: ratio('saveMs', 'append 1000', 'store:file', 'store:append'),
    hard: 1.5,
    stretch: 1.2,
  },
  {
    id: 'save@shared',
    compares: 'sqlite: saves a second of 100 runs at once / of one run',
    value: (of) =>
      of('store:sqlite', 'savers 100', 'savesPerSecond') / of('store:sqlite', 'savers 1', 'savesPerSecond'),
    bound: 'at least',
    hard: 5,
    stretch: 8,
  },
  {
    id: 'list@sqlite',
    compares: 'sqlite: list ten unfinished runs among 10,000 finished / among ten',
    value: (of) => of('store:sqlite', 'listing 10000', 'listMs') / of('store:sqlite', 'listing 10', 'listMs'),
    hard: 3,
    stretch: 1.5,
  },
];

function ratio(figure, scenario, contestant, against) {
  return (of) => of(contestant, scenario, figure) / of(against, scenario, figure);
}

/** Beside 10,000 finished runs, and beside so many. */
function listing(contestant, finishedCount) {
  return (of) =>
    of(contestant, 'pending 10000', 'listMs') / of(contestant, `pending ${finishedCount}`, 'listMs');
}

function growth(figure, contestant, messages) {
  return (of) => of(contestant, `append ${messages}`, figure) / of(contestant, 'append 10', figure);
}

/** The goals with these numbers, all for an empty list: `5` takes `5@200` and `5@1000`. */
export function selectGoals(numbers) {
  if (numbers.length === 0) return goals;
  const selected = goals.filter(({ id }) => numbers.includes(id) || numbers.includes(id.split('@')[0]));
  if (selected.length === 0) throw new Error(`There is no goal ${numbers.join(', ')} in this benchmark.`);
  return selected;
}

/** The contestants that each scenario needs for these goals: scenario to contestants. */
export function neededMeasurements(selected) {
  const needed = new Map();
  const note = (contestant, scenario) => {
    if (!needed.has(scenario)) needed.set(scenario, new Set());
    needed.get(scenario).add(contestant);
    return 1;
  };
  for (const goal of selected) goal.value(note);
  return needed;
}

export function holds({ bound = 'at most' }, value, limit) {
  return bound === 'at most' ? value <= limit : value >= limit;
}
