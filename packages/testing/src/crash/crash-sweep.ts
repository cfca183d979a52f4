/** Runs a scenario once for each store call that it makes, dying before and after that call, and says which crash broke what. */
import {
  platformClock,
  type AgentStore,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
} from '@lousho/contract';
import { manualClock, type ManualClock } from '../manual-clock.ts';
import { referenceStore } from '../reference-store.ts';
import { settle } from '../settle-clock.ts';
import { testPorts } from '../test-ports.ts';
import { CrashJournal } from './crash-journal.ts';
import { brokenPromises } from './crash-promises.ts';
import type { CrashOutcome, CrashPoint, CrashReport, CrashScenario, CrashWorld } from './crash-scenario.ts';
import { crashingStore, type CrashingStore } from './crashing-store.ts';
import { processClock } from './process-clock.ts';

/** Longer than any lease and any back-off that a run waits for by itself. */
const RESTART_AFTER_MS = 10 * 60_000;
/** More restarts than a run that goes on at all can need. */
const MAX_RESTARTS = 5;
/** Long enough for a scenario on a slow disk, short enough for a test to wait for. */
const STUCK_AFTER_REAL_MS = 5_000;
/** While a process waits, its clock goes on by this much a turn; after so many turns, nearly three hours, nothing will come. */
const MS_A_TURN = 1_000;
const MAX_TURNS = 10_000;
/** One stuck point says it all; a few show whether it is the rule. More only cost time. */
const MAX_STUCK_POINTS = 3;

/**
 * A control run without a crash counts the calls. Then, for each call, before and after it: run until the process dies, restart on the
 * same data until `run` resolves, check. Rejects when the control run itself fails; a crash that breaks a promise is in the report.
 */
export async function crashSweep(scenario: CrashScenario): Promise<CrashReport> {
  const control = await runPass(scenario);
  if (control.problems.length > 0)
    throw new Error(`Without any crash: ${control.problems.join(' ')}`, { cause: control.error });
  const points = control.calls.flatMap((call): CrashPoint[] => [
    { call, when: 'before' },
    { call, when: 'after' },
  ]);
  const failures: { readonly point: CrashPoint; readonly message: string }[] = [];
  let stuckCount = 0;
  for (const point of points) {
    const pass = await runPass(scenario, { point, control: control.journal });
    if (pass.isStuck) stuckCount += 1;
    const problems = [...pass.problems];
    if (stuckCount === MAX_STUCK_POINTS) problems.push('The points behind this one were not tried.');
    if (pass.problems.length > 0) failures.push({ point, message: problems.join(' ') });
    if (stuckCount === MAX_STUCK_POINTS) break;
  }
  return { points: points.length, failures };
}

interface Pass {
  readonly journal: CrashJournal;
  /** Store calls of the first process. */
  readonly calls: readonly string[];
  readonly problems: readonly string[];
  readonly isStuck: boolean;
  readonly error?: unknown;
}

async function runPass(
  scenario: CrashScenario,
  plan: { readonly point?: CrashPoint; readonly control?: CrashJournal } = {},
): Promise<Pass> {
  const clock = manualClock();
  const storagePorts = testPorts(clock);
  const store = await (scenario.createStore?.(storagePorts) ?? referenceStore({ clock }));
  const journal = new CrashJournal();
  let calls: readonly string[] = [];
  const failed = (problem: string, error?: unknown): Pass => {
    return { journal, calls, problems: [problem], isStuck: false, error };
  };
  for (let restart = 0; ; restart += 1) {
    const started = startProcess({
      store,
      clock,
      journal,
      restart,
      point: restart === 0 ? plan.point : undefined,
    });
    const end = await driveToEnd(async () => scenario.run(started.world), clock, started.crashing);
    started.kill();
    if (restart === 0) calls = started.crashing.calls;
    if (end.kind === 'resolved') break;
    if (end.kind === 'stuck') return { ...failed(`Process ${restart} got stuck.`), isStuck: true };
    const isLast = plan.point === undefined || restart === MAX_RESTARTS;
    if (isLast)
      return failed(`Process ${restart} ${describeEnd(end)}.`, end.kind === 'failed' ? end.error : undefined);
    await clock.advance(RESTART_AFTER_MS);
  }
  const outcome = await outcomeOf(store, journal, plan.point);
  const { ends = 'finished' } = scenario;
  const broken = await brokenPromises({ ...outcome, store, journal, ends, control: plan.control });
  const checked = await driveToEnd(async () => scenario.check?.(outcome), clock);
  const isStuck = checked.kind === 'stuck';
  if (checked.kind !== 'resolved') broken.push(`The check ${describeEnd(checked)}.`);
  return {
    journal,
    calls,
    problems: broken,
    isStuck,
    error: checked.kind === 'failed' ? checked.error : undefined,
  };
}

interface ProcessPlan {
  readonly store: AgentStore;
  readonly clock: ManualClock;
  readonly journal: CrashJournal;
  readonly restart: number;
  readonly point: CrashPoint | undefined;
}

function startProcess({ store, clock, journal, restart, point }: ProcessPlan) {
  journal.beginProcess();
  const ownClock = processClock(clock);
  const crashing = crashingStore(store, { point, onPerformed: (call) => journal.noteCall(call) });
  const world: CrashWorld = {
    store: crashing.store,
    ports: { ...testPorts(clock), clock: ownClock },
    restart,
    // What a dead process still computes never reaches the world.
    effect: (name) => (crashing.isDead ? undefined : journal.noteEffect(name)),
  };
  return {
    world,
    crashing,
    kill(): void {
      crashing.kill();
      ownClock.stop();
    },
  };
}

type ProcessEnd =
  | { readonly kind: 'resolved' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'died' }
  | { readonly kind: 'stuck' };

/** Lets the clock go on while the work waits, until it ends, its process dies, or nothing more will come. */
async function driveToEnd(
  work: () => Promise<unknown>,
  clock: ManualClock,
  crashing?: CrashingStore,
): Promise<ProcessEnd> {
  const ends: ProcessEnd[] = [];
  const fail = (error: unknown): void => void ends.push({ kind: 'failed', error });
  void work().then(() => ends.push({ kind: 'resolved' }), fail);
  const giveUpAtMs = platformClock.monotonicMs() + STUCK_AFTER_REAL_MS;
  for (let turn = 0; turn < MAX_TURNS && platformClock.monotonicMs() < giveUpAtMs; turn += 1) {
    await settle();
    // First: whatever a dead process believes to have reached does not count.
    if (crashing?.isDead === true) return { kind: 'died' };
    if (ends[0] !== undefined) return ends[0];
    // A timer that throws ends a process like any uncaught error.
    await clock.advance(MS_A_TURN).catch(fail);
  }
  return { kind: 'stuck' };
}

function describeEnd(end: Exclude<ProcessEnd, { readonly kind: 'resolved' }>): string {
  if (end.kind === 'died') return 'died again';
  if (end.kind === 'stuck') return 'got stuck';
  const { error } = end;
  return `failed: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`;
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
