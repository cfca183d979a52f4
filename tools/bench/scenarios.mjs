/**
 * What is done with a contestant and what is noted of it. Each function runs in a process of its own (measure-one.mjs).
 *
 * A contestant is `{ run(id, task), resume(id, task), listUnfinished(task), load(id), history(id, limit),
 * fork(id, task, step), close() }`; but for the first only where a scenario needs it. `task` is described in workload.mjs. Those of contestants/store.mjs are
 * `{ startRun(id, messageCount, status), listUnfinished(), close() }`.
 */
import { directoryBytes, median, startMeter } from './measure.mjs';

/** @type {Record<string, { prepare?: Function, measure: Function }>} */
export const scenarios = {
  /** One session of `turns` turns with one call each. */
  sequence: { measure: measureSequence },
  /** Sessions of one turn with `width` calls at once. */
  parallel: { measure: measureParallel },
  /** `count` sessions of three turns, one after another. */
  short: { measure: (open, directory, count) => measureSessions(open, directory, count, 1) },
  /** `count` sessions of three turns, so many at a time. */
  concurrent: { measure: measureSessions },
  /** The process died in the model call after `turns` turns; a new one resumes, makes one more turn and ends. */
  resume: { prepare: dieInModelCall, measure: measureResume },
  /** So many finished sessions are stored, and 100 unfinished: list those. */
  pending: { prepare: fillStore, measure: measurePending },
  /** A finished session of `turns` turns: read its newest states, and fork it at its newest step. */
  history: { prepare: finishSession, measure: measureHistory },
  /** One run with so many messages of 1 KB: save one more, many times. */
  append: { measure: measureAppend },
  /** So many runs at once, each saving one message after another. */
  savers: { measure: measureSavers },
  /** So many finished runs are stored, and ten unfinished: list those. */
  listing: { prepare: fillWithRuns, measure: measureListing },
  /** A whole process, from its start to its exit: the caller takes the time. */
  cold: { measure: runOnce },
};

const SHORT_TURNS = 3;
const PARALLEL_SESSIONS = 12;
const UNFINISHED = 100;
const LISTINGS = 9;
const READINGS = 9;
const HISTORY_ENTRIES = 50;
const FEW_UNFINISHED = 10;
const WARM_UP_SAVES = 20;
const SAVES = 60;
const SAVES_A_SAVER = 20;

async function measureSequence(open, directory, turns) {
  const contestant = await open(directory);
  // Compiles the code and sets up what is set up lazily: a server pays that once, not per session.
  await contestant.run('warm-up', { turns: 5 });
  const modelCallsAtMs = [];
  const task = { turns, onModelCall: () => modelCallsAtMs.push(performance.now()) };
  const stopMeter = startMeter();
  const before = contestant.figures?.() ?? {};
  await contestant.run('measured', task);
  const cost = stopMeter();
  const own = Object.entries(contestant.figures?.() ?? {}).map(([name, value]) => [
    name,
    value - before[name],
  ]);
  await contestant.close();
  return {
    ...cost,
    ...Object.fromEntries(own),
    slowdown: slowdown(modelCallsAtMs),
    closedBytes: directoryBytes(directory),
  };
}

/** Median time of a turn in the last tenth of a session over that in the first tenth. */
function slowdown(modelCallsAtMs) {
  const turnsMs = modelCallsAtMs.slice(1).map((atMs, index) => atMs - modelCallsAtMs[index]);
  const tenth = Math.max(1, Math.floor(turnsMs.length / 10));
  return median(turnsMs.slice(-tenth)) / median(turnsMs.slice(0, tenth));
}

async function measureParallel(open, directory, width) {
  const contestant = await open(directory);
  const task = { turns: 1, parallel: width };
  await contestant.run('warm-up', task);
  const sessionsMs = [];
  const stopMeter = startMeter();
  for (let index = 0; index < PARALLEL_SESSIONS; index += 1) {
    const startedAtMs = performance.now();
    await contestant.run(`session-${index}`, task);
    sessionsMs.push(performance.now() - startedAtMs);
  }
  const cost = stopMeter();
  await contestant.close();
  // A dozen sessions are too short to count what a database moves from its log into its file: raw moves nothing before 4 MB, and we
  // move every 256 KB. At the end of closing, both have moved everything.
  const { writeBytes } = stopMeter();
  return { ...cost, writeBytes, sessionMs: median(sessionsMs) };
}

async function measureSessions(open, directory, count, concurrency) {
  const contestant = await open(directory);
  const task = { turns: SHORT_TURNS };
  for (let index = 0; index < 5; index += 1) await contestant.run(`warm-up-${index}`, task);
  const stopMeter = startMeter();
  await forEachIndex(count, concurrency, (index) => contestant.run(`session-${index}`, task));
  const cost = stopMeter();
  await contestant.close();
  return { ...cost, sessionsPerSecond: (count / cost.wallMs) * 1000 };
}

async function dieInModelCall(open, directory, turns) {
  const contestant = await open(directory);
  await new Promise((resolve, reject) => {
    const task = { turns: turns + 1, silentAt: turns, onSilent: resolve };
    contestant.run('measured', task).catch(reject);
  });
  // Nothing is closed: the process now exits in the middle of the run.
}

async function measureResume(open, directory, turns) {
  let modelCalledAtMs;
  const task = { turns: turns + 1, onModelCall: () => (modelCalledAtMs ??= performance.now()) };
  const startedAtMs = performance.now();
  const stopMeter = startMeter();
  const contestant = await open(directory);
  await contestant.resume('measured', task);
  const cost = stopMeter();
  await contestant.close();
  return { ...cost, toModelCallMs: modelCalledAtMs - startedAtMs };
}

async function fillStore(open, directory, finishedCount) {
  const contestant = await open(directory);
  const finished = { turns: 1 };
  await forEachIndex(finishedCount, 100, (index) => contestant.run(`finished-${index}`, finished));
  await Promise.all(
    Array.from(
      { length: UNFINISHED },
      (_, index) =>
        new Promise((resolve, reject) => {
          const task = { turns: 2, silentAt: 1, onSilent: resolve };
          contestant.run(`unfinished-${index}`, task).catch(reject);
        }),
    ),
  );
}

async function measurePending(open, directory) {
  const contestant = await open(directory);
  const task = { turns: 1 };
  const listingsMs = [];
  const stopMeter = startMeter();
  for (let index = 0; index < LISTINGS; index += 1) {
    const startedAtMs = performance.now();
    const listed = await contestant.listUnfinished(task);
    listingsMs.push(performance.now() - startedAtMs);
    if (listed !== UNFINISHED)
      throw new Error(`Listed ${listed} unfinished sessions instead of ${UNFINISHED}.`);
  }
  const cost = stopMeter();
  await contestant.close();
  return { ...cost, listMs: median(listingsMs) };
}

async function finishSession(open, directory, turns) {
  const contestant = await open(directory);
  await contestant.run('measured', { turns });
  await contestant.close();
}

async function measureHistory(open, directory, turns) {
  const loadsMs = [];
  const historiesMs = [];
  for (let index = 0; index < READINGS; index += 1) {
    // Opened anew for each: a store remembers what it has read.
    loadsMs.push(await timeOf(open, directory, (contestant) => contestant.load('measured')));
    historiesMs.push(
      await timeOf(open, directory, (contestant) => contestant.history('measured', HISTORY_ENTRIES)),
    );
  }
  const contestant = await open(directory);
  const { messages } = await contestant.load('measured');
  const stopMeter = startMeter();
  await contestant.fork('measured', { turns }, turns);
  const cost = stopMeter();
  await contestant.close();
  return {
    ...cost,
    loadMs: median(loadsMs),
    historyMs: median(historiesMs),
    forkBytes: cost.writeBytes,
    transcriptBytes: Buffer.byteLength(JSON.stringify(messages)),
  };
}

async function timeOf(open, directory, work) {
  const contestant = await open(directory);
  const startedAtMs = performance.now();
  await work(contestant);
  const tookMs = performance.now() - startedAtMs;
  await contestant.close();
  return tookMs;
}

async function measureAppend(open, directory, messageCount) {
  const store = await open(directory);
  const save = await store.startRun('measured', messageCount);
  for (let index = 0; index < WARM_UP_SAVES; index += 1) await save();
  const savesMs = [];
  const stopMeter = startMeter();
  for (let index = 0; index < SAVES; index += 1) {
    const startedAtMs = performance.now();
    await save();
    savesMs.push(performance.now() - startedAtMs);
  }
  const cost = stopMeter();
  await store.close();
  return { ...cost, saveMs: median(savesMs) };
}

async function measureSavers(open, directory, count) {
  const store = await open(directory);
  const saveAll = (saves) => Promise.all(saves.map((save) => save()));
  const saves = await Promise.all(
    Array.from({ length: count }, (_, index) => store.startRun(`run-${index}`, 1)),
  );
  for (let index = 0; index < WARM_UP_SAVES; index += 1) await saveAll(saves);
  const stopMeter = startMeter();
  await Promise.all(
    saves.map(async (save) => {
      for (let index = 0; index < SAVES_A_SAVER; index += 1) await save();
    }),
  );
  const cost = stopMeter();
  await store.close();
  return { ...cost, savesPerSecond: ((count * SAVES_A_SAVER) / cost.wallMs) * 1000 };
}

async function fillWithRuns(open, directory, finishedCount) {
  const store = await open(directory);
  await forEachIndex(finishedCount, 100, (index) => store.startRun(`finished-${index}`, 2, 'finished'));
  for (let index = 0; index < FEW_UNFINISHED; index += 1) await store.startRun(`unfinished-${index}`, 2);
  await store.close();
}

async function measureListing(open, directory) {
  const store = await open(directory);
  const listingsMs = [];
  const stopMeter = startMeter();
  for (let index = 0; index < LISTINGS; index += 1) {
    const startedAtMs = performance.now();
    const listed = await store.listUnfinished();
    listingsMs.push(performance.now() - startedAtMs);
    if (listed !== FEW_UNFINISHED) throw new Error(`Listed ${listed} runs instead of ${FEW_UNFINISHED}.`);
  }
  const cost = stopMeter();
  await store.close();
  return { ...cost, listMs: median(listingsMs) };
}

async function runOnce(open, directory, turns) {
  const stopMeter = startMeter();
  const contestant = await open(directory);
  await contestant.run('measured', { turns });
  await contestant.close();
  return stopMeter();
}

/** Calls `work` for 0 .. count - 1, at most `concurrency` at a time. */
async function forEachIndex(count, concurrency, work) {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
