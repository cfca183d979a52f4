/** One pass of a scenario: its processes, one after the other on the same data, and what is wrong in the end. */
import type { AgentStore, CheckpointHistoryEntry, CheckpointListEntry } from '@lousho/contract';
import { manualClock, type ManualClock } from '../manual-clock.ts';
import { referenceStore } from '../reference-store.ts';
import { testPorts } from '../test-ports.ts';
import { CrashJournal } from './crash-journal.ts';
import { brokenPromises, lostSaves } from './crash-promises.ts';
import type { CrashOutcome, CrashPoint, CrashScenario, CrashWorld } from './crash-scenario.ts';
import { crashingStore, type CrashingStore } from './crashing-store.ts';
import { describeEnd, driveToEnd, type WorkEnd } from './drive-to-end.ts';
import { processClock } from './process-clock.ts';
import { storeClock, type StoreClock } from './store-clock.ts';

/** Longer than any lease and any back-off that a run waits for by itself. */
const RESTART_AFTER_MS = 10 * 60_000;
/** More restarts than a run that goes on at all can need. */
const MAX_RESTARTS = 5;

export interface PassPlan {
  /** Absent: the control run. */
  readonly crash?: { readonly point: CrashPoint; readonly control: CrashJournal } | undefined;
}
export interface Pass {
  readonly journal: CrashJournal;
  /** Store calls and effects of the first process. */
  readonly calls: readonly string[];
  readonly problems: readonly string[];
  readonly isStuck: boolean;
  /** What was thrown, when that is the problem. */
  readonly error?: unknown;
}

export async function runPass(scenario: CrashScenario, { crash }: PassPlan): Promise<Pass> {
  const clock = manualClock();
  const ownClock = storeClock(clock);
  const store = await (scenario.createStore?.({ ...testPorts(clock), clock: ownClock }) ??
    referenceStore({ clock: ownClock }));
  const machine: Machine = { store, clock, storeClock: ownClock, journal: new CrashJournal() };
  try {
    const { calls, end, restart, lost } = await runProcesses(scenario, machine, crash?.point);
    const verdict =
      end.kind === 'resolved' ? await judge(scenario, machine, crash) : problemOf(end, `Process ${restart}`);
    return { ...verdict, journal: machine.journal, calls, problems: [...lost, ...verdict.problems] };
  } finally {
    await store.close?.();
  }
}

/** What outlives its processes. */
interface Machine {
  readonly store: AgentStore;
  readonly clock: ManualClock;
  readonly storeClock: StoreClock;
  readonly journal: CrashJournal;
}
interface ProcessesEnd {
  readonly calls: readonly string[];
  /** Of the last process. */
  readonly end: WorkEnd;
  readonly restart: number;
  /** What each process that ended left less than it had saved. */
  readonly lost: readonly string[];
}

/** Starts a process again until its work is done. Without a planned crash the first one must do it. */
async function runProcesses(
  scenario: CrashScenario,
  machine: Machine,
  point: CrashPoint | undefined,
): Promise<ProcessesEnd> {
  const lost: string[] = [];
  let calls: readonly string[] = [];
  for (let restart = 0; ; restart += 1) {
    const { world, crashing, stop } = startProcess(machine, restart, restart === 0 ? point : undefined);
    const end = await driveToEnd(() => scenario.run(world), machine.clock, {
      get isDead() {
        return crashing.isDead;
      },
      get isStoreAtWork() {
        return crashing.underWay.size > 0 && !machine.storeClock.isWaitedFor;
      },
    });
    stop();
    if (restart === 0) calls = crashing.calls;
    const isOver = end.kind === 'resolved' || end.kind === 'stuck';
    if (isOver || point === undefined || restart === MAX_RESTARTS) return { calls, end, restart, lost };
    await machine.clock.advance(RESTART_AFTER_MS);
    lost.push(...(await lostSaves(machine.store, machine.journal, crashing.underWay)));
  }
}

interface Process {
  readonly world: CrashWorld;
  readonly crashing: CrashingStore;
  stop(this: void): void;
}

function startProcess(
  { store, clock, journal }: Machine,
  restart: number,
  point: CrashPoint | undefined,
): Process {
  journal.beginProcess();
  const ownClock = processClock(clock);
  const crashing = crashingStore(store, { point, onPerformed: (call) => journal.noteCall(call) });
  return {
    world: {
      store: crashing.store,
      ports: { ...testPorts(clock), clock: ownClock },
      restart,
      // What a dead process still computes never reaches the world.
      effect: (name) => crashing.effect(name, () => journal.noteEffect(name)),
    },
    crashing,
    stop() {
      crashing.kill();
      ownClock.stop();
    },
  };
}

type Verdict = Pick<Pass, 'problems' | 'isStuck' | 'error'>;

/** The general promises, and those of the scenario. */
async function judge(scenario: CrashScenario, machine: Machine, crash: PassPlan['crash']): Promise<Verdict> {
  const { store, clock, journal } = machine;
  const { ends = 'finished' } = scenario;
  const outcome = await outcomeOf(store, journal, crash?.point);
  const { checkpoints } = outcome;
  const broken = await brokenPromises({ store, journal, checkpoints, ends, control: crash?.control });
  const checked = await driveToEnd(() => scenario.check?.(outcome), clock);
  if (checked.kind === 'resolved') return { problems: broken, isStuck: false };
  const verdict = problemOf(checked, 'The check');
  return { ...verdict, problems: [...broken, ...verdict.problems] };
}

function problemOf(end: WorkEnd, who: string): Verdict {
  return {
    problems: [`${who} ${describeEnd(end)}.`],
    isStuck: end.kind === 'stuck',
    error: end.kind === 'failed' ? end.error : undefined,
  };
}

async function outcomeOf(
  store: AgentStore,
  journal: CrashJournal,
  crashPoint: CrashPoint | undefined,
): Promise<CrashOutcome> {
  const checkpoints = await storedCheckpoints(store, journal);
  const history: CheckpointHistoryEntry[] = [];
  for (const { sessionId } of checkpoints)
    history.push(...((await store.checkpoints?.history?.(sessionId)) ?? []));
  return {
    ...(crashPoint === undefined ? {} : { crashPoint }),
    effects: journal.totalEffects(),
    checkpoints,
    history,
  };
}

/** As listed; of a store that cannot list, every id that was ever saved. */
async function storedCheckpoints(
  store: AgentStore,
  journal: CrashJournal,
): Promise<readonly CheckpointListEntry[]> {
  if (store.checkpoints?.list !== undefined) return store.checkpoints.list();
  const entries: CheckpointListEntry[] = [];
  for (const sessionId of new Set(journal.runs.map(({ id }) => id))) {
    const checkpoint = await store.checkpoints?.load(sessionId);
    if (checkpoint) entries.push({ sessionId, status: checkpoint.status, checkpoint });
  }
  return entries;
}
