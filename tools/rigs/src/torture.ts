/** Processes that send, resume and decide on one pool of sessions, while a nemesis kills and stops them. Ends by itself. */
import { LineCounter, type LogLine } from './effect-log.ts';
import type { Evidence, Look } from './checker.ts';
import type { Random } from './random.ts';
import { Rig, type JobOptions } from './rig.ts';
import { WorkerCrew } from './worker-crew.ts';
import type { Action, ScriptedCall, WorkerProcess } from './worker-process.ts';

export interface TortureOptions {
  readonly durationMs: number;
  /** Ends sooner when so many runs have come to their end. */
  readonly finishedRuns?: number;
  readonly random: Random;
  readonly storeFault?: 'no-fence';
  readonly script?: Script;
  /** How many operations of a hundred send and resume; the others decide. */
  readonly chances?: Chances;
  /** About how long the processes are left alone between two blows. */
  readonly calmMs?: number;
}

/** The calls of each response, over and over; none: the run ends. */
export type Script = readonly (readonly ScriptedCall[])[];

interface Chances {
  readonly send: number;
  readonly resume: number;
}

const SESSIONS = ['s1', 's2', 's3', 's4'];
const WORKERS = 3;
/** What each process does at a time. */
const LOOPS = 2;
const MOST_OPERATIONS = 20_000;
/** A holder that stops is taken over after two of these. */
const LEASE_TTL_MS = 600;
/** Four responses a run: parallel calls, calls that must not be repeated, calls that a person decides, the end. */
const everything: Script = [
  [call('work', 20), call('work', 5), call('work', 35)],
  [call('careful', 15), call('work', 25)],
  [call('refund', 20), call('work', 10), call('refund', 10)],
  [],
];

export function call(name: ScriptedCall['name'], ms: number): ScriptedCall {
  return { name, args: { ms } };
}

export async function torture(rig: Rig, options: TortureOptions): Promise<Evidence> {
  const { random, durationMs, finishedRuns = Infinity, calmMs = 120, storeFault } = options;
  const { script = everything } = options;
  const agent = { script, modelMs: 3, lease: { ttlMs: LEASE_TTL_MS, heartbeatMs: LEASE_TTL_MS / 4 } };
  const fault = storeFault === undefined ? {} : { storeFault };
  // All calls of a response at once, or the next one as soon as one has ended.
  const jobs = [
    { agent, ...fault },
    { agent: { ...agent, toolConcurrency: 1 }, ...fault },
  ];
  const stage = new Stage(rig, jobs, random, options.chances ?? { send: 35, resume: 15 });
  await stage.crew.fill();
  const endMs = performance.now() + durationMs;
  while (performance.now() < endMs && stage.finishedRuns < finishedRuns) {
    await stage.crew.strike();
    await stage.look();
    await sleep(calmMs / 2 + random.below(calmMs));
  }
  await stage.clear();
  await drain(rig, { agent }, random);
  const finals = new Map<string, Awaited<ReturnType<Rig['load']>>>();
  for (const session of SESSIONS) finals.set(session, await rig.load(session));
  return { log: rig.log(), looks: stage.looks, finals, leaseTtlMs: LEASE_TTL_MS };
}

/** The processes that are at work now, and what happens to them. */
class Stage {
  readonly #rig: Rig;
  readonly #random: Random;
  readonly #lines: LineCounter;
  readonly crew: WorkerCrew;
  readonly #inputs = new Map<string, string[]>();
  readonly looks: Look[] = [];
  #operationCount = 0;
  #isOver = false;
  finishedRuns = 0;

  constructor(
    rig: Rig,
    jobs: readonly JobOptions[],
    random: Random,
    readonly chances: Chances,
  ) {
    this.#rig = rig;
    this.#random = random;
    this.#lines = new LineCounter(rig.logPath);
    this.crew = new WorkerCrew(random, {
      size: WORKERS,
      leaseTtlMs: LEASE_TTL_MS,
      chances: { kill: 0.2, end: 0.25, stall: 0.55, pause: 0.75 },
      start: () => rig.start(random.pick(jobs)),
      begun: (worker) => {
        for (let loop = 0; loop < LOOPS; loop += 1) void this.#work(worker);
      },
    });
  }

  /** What another handle sees now: all that was acknowledged before it looked. */
  async look(): Promise<void> {
    const session = this.#random.pick(SESSIONS);
    const logLength = this.#lines.count();
    const checkpoint = await this.#rig.load(session);
    if (checkpoint !== null) this.looks.push({ session, logLength, checkpoint });
  }

  async clear(): Promise<void> {
    this.#isOver = true;
    await this.crew.killAll();
    await this.crew.killSpare();
  }

  async #work(worker: WorkerProcess): Promise<void> {
    while (worker.isAlive && !this.#isOver && (this.#operationCount += 1) <= MOST_OPERATIONS) {
      const session = this.#random.pick(SESSIONS);
      const ending = await worker.perform(session, this.#nextAction(session));
      if (ending.type === 'resolved' && ending.finishReason === 'stop') this.finishedRuns += 1;
      if (ending.type === 'rejected') await sleep(this.#random.below(40));
    }
  }

  #nextAction(session: string): Action {
    const { send, resume } = this.chances;
    const chance = 100 * this.#random.next();
    if (chance < send) return { type: 'send', inputId: this.#nextInput(session) };
    if (chance < send + resume) return { type: 'resume' };
    return { type: 'decide', approved: this.#random.next() < 0.75, index: this.#random.below(5) };
  }

  /** A new one, or one of the last ones again, as a caller does that never got an answer. */
  #nextInput(session: string): string {
    const given = this.#inputs.get(session) ?? [];
    this.#inputs.set(session, given);
    if (given.length > 0 && this.#random.next() < 0.2) return this.#random.pick(given.slice(-3));
    given.push(`${session}-${given.length + 1}`);
    return given.at(-1) as string;
  }
}

/** A clean process finishes what is left. */
async function drain(rig: Rig, job: JobOptions, random: Random): Promise<void> {
  const worker = await rig.startReady(job);
  for (let left = 40 * SESSIONS.length; left > 0; left -= 1) {
    const looked = await worker.perform('-', { type: 'look' });
    const [pending] = (looked.type === 'resolved' && looked.pending) || [];
    if (pending === undefined) break;
    const decide: Action = { type: 'decide', approved: random.next() < 0.75 };
    await worker.perform(pending.sessionId, pending.status === 'in-progress' ? { type: 'resume' } : decide);
  }
  await worker.end();
}

function sleep(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

/** One line of numbers: whether the torture was one. */
export function summarize({ log }: Evidence): TortureSummary {
  const count = (fits: (line: LogLine) => boolean): number => log.filter(fits).length;
  const ended = (code: string | undefined): number =>
    count(
      (line) =>
        line.kind === 'op.ended' &&
        (line.outcome.type === 'rejected' ? line.outcome.code === code : code === undefined),
    );
  const starts = log.filter((line) => line.kind === 'tool.started');
  return {
    kills: count(({ kind }) => kind === 'worker.killed'),
    stops: count(({ kind }) => kind === 'worker.stopped'),
    finished: count(
      (line) =>
        line.kind === 'op.ended' && line.outcome.type === 'resolved' && line.outcome.finishReason === 'stop',
    ),
    succeeded: ended(undefined),
    busy: ended('LOUSHO_SESSION_BUSY'),
    shutDown: ended('LOUSHO_SHUTDOWN'),
    decidedBefore: ended('LOUSHO_APPROVAL_DECIDED'),
    saves: count(({ kind }) => kind === 'save.acknowledged'),
    calls: starts.length,
    callsAgain: starts.length - new Set(starts.map(({ session, callId }) => `${session} ${callId}`)).size,
    takenFromStopped: lostLeases(log),
  };
}

export interface TortureSummary {
  readonly kills: number;
  readonly stops: number;
  /** Operations that brought a run to its end, or found it there. */
  readonly finished: number;
  readonly succeeded: number;
  readonly busy: number;
  readonly shutDown: number;
  readonly decidedBefore: number;
  readonly saves: number;
  readonly calls: number;
  readonly callsAgain: number;
  /** Operations that lost their lease while their process lived. */
  readonly takenFromStopped: number;
}

function lostLeases(log: readonly LogLine[]): number {
  const highest = new Map<string, number>();
  let count = 0;
  for (const line of log) {
    if (line.kind === 'lease.taken') highest.set(line.session, line.fence);
    if (line.kind !== 'op.ended' || line.outcome.type !== 'rejected') continue;
    if (line.fence !== undefined && line.fence < (highest.get(line.session) ?? 0)) count += 1;
  }
  return count;
}
