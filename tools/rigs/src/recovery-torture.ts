/** Processes that all run `recover()`: runs are sent to them and nobody resumes one by hand, while a nemesis kills and stops them. */
import type { Checkpoint } from '@lousho/contract';
import type { Evidence, Look } from './checker.ts';
import { LineCounter, type LogLine } from './effect-log.ts';
import type { Random } from './random.ts';
import type { Rig } from './rig.ts';
import { call, type Script } from './torture.ts';
import { WorkerCrew } from './worker-crew.ts';
import type { WorkerProcess } from './worker-process.ts';

const WORKERS = 3;
/** Runs under way at a time. */
const LOOPS = 5;
const LEASE_TTL_MS = 600;
const RECOVER_EVERY_MS = 100;
/** Each process has its clock further ahead than the one before it: what has to wait is over for the next one. */
const CLOCK_STEP_MS = 600_000;
const HOUR_MS = 3_600_000;
/** More than ten starts of each run need. */
const MOST_HOURS = 30;
/** How long each of the last processes has, on a busy machine. */
const LOOK_FOR_MS = 3_000;

/** Four responses a run: parallel calls, calls that must not be repeated, and the end. */
const script: Script = [
  [call('work', 20), call('work', 5), call('work', 35)],
  [call('careful', 15), call('work', 25)],
  [call('work', 10)],
  [],
];
/** Whoever gets to its second response dies of it. */
const poisonScript: Script = [[call('work', 5)], [call('poison', 0)], []];
export const POISON = 'poison';

export interface RecoveryTortureOptions {
  readonly durationMs: number;
  readonly random: Random;
}

export async function recoveryTorture(rig: Rig, options: RecoveryTortureOptions): Promise<Evidence> {
  const { random, durationMs } = options;
  const crowd = new Crowd(rig, random);
  await crowd.fill();
  const endMs = performance.now() + durationMs;
  while (performance.now() < endMs) {
    await crowd.strike();
    await crowd.look();
    await sleep(60 + random.below(120));
  }
  await crowd.end();
  const finals = new Map<string, Awaited<ReturnType<Rig['load']>>>();
  for (const session of crowd.sessions) finals.set(session, await rig.load(session));
  return { log: rig.log(), looks: crowd.looks, finals, leaseTtlMs: LEASE_TTL_MS };
}

class Crowd {
  readonly #rig: Rig;
  readonly #random: Random;
  readonly #lines: LineCounter;
  readonly crew: WorkerCrew;
  readonly #loops: Promise<void>[] = [];
  readonly sessions: string[] = [];
  readonly looks: Look[] = [];
  #clockMs = 0;
  #isOver = false;

  constructor(rig: Rig, random: Random) {
    this.#rig = rig;
    this.#random = random;
    this.#lines = new LineCounter(rig.logPath);
    this.crew = new WorkerCrew(random, {
      size: WORKERS,
      leaseTtlMs: LEASE_TTL_MS,
      chances: { kill: 0.25, end: 0.32, stall: 0.45, pause: 0.6 },
      start: () => this.#start(),
      mayDie: true,
    });
  }

  async fill(): Promise<void> {
    await this.crew.fill();
    this.#loops.push(this.#sendUntilStored(POISON));
    for (let loop = 0; loop < LOOPS; loop += 1) this.#loops.push(this.#sendAll());
  }

  /** Kills one, lets one shut down, or stops one for a moment or for longer than its lease. Who died of the poison is replaced. */
  async strike(): Promise<void> {
    await this.crew.replaceDead();
    await this.crew.strike();
  }

  /** What another handle sees now: all that was acknowledged before it looked. */
  async look(): Promise<void> {
    const session = this.sessions.at(-1 - this.#random.below(20));
    if (session === undefined) return;
    const logLength = this.#lines.count();
    const checkpoint = await this.#rig.load(session);
    if (checkpoint !== null) this.looks.push({ session, logLength, checkpoint });
  }

  /** The last processes go the way of the others. What is left is finished by one after the other, an hour apart, with `recover()` alone. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.crew.killAll();
    await Promise.all(this.#loops);
    await this.crew.enter();
    for (const session of this.sessions) await this.#sendUntilStored(session);
    for (let hour = 1; !(await this.#isAllAtRest()); hour += 1) {
      if (hour > MOST_HOURS) throw new Error('There are runs that nobody finishes.');
      this.#clockMs += HOUR_MS;
      await this.crew.renewSpare();
      await this.crew.endAll();
      await this.crew.enter();
      const giveUpAtMs = performance.now() + LOOK_FOR_MS;
      while (performance.now() < giveUpAtMs && this.crew.workers.every(({ isAlive }) => isAlive)) {
        if (await this.#isAllAtRest()) break;
        await sleep(20);
      }
    }
    await this.crew.endAll();
    await this.crew.killSpare();
  }

  async #isAllAtRest(): Promise<boolean> {
    const runs = await Promise.all([...this.sessions, POISON].map((session) => this.#rig.load(session)));
    return runs.every(isAtRest);
  }

  /** One run after the other, each sent once. What becomes of it is not its sender's business. */
  async #sendAll(): Promise<void> {
    while (!this.#isOver) {
      const session = `run-${this.sessions.length + 1}`;
      this.sessions.push(session);
      await this.#sendUntilStored(session);
    }
  }

  /** A run that its process took along before it was stored has done nothing: its caller sends it again. */
  async #sendUntilStored(session: string): Promise<void> {
    while ((await this.#rig.load(session)) === null) {
      const worker = this.#random.pick(this.crew.workers);
      if (worker?.isAlive) await worker.perform(session, { type: 'send', inputId: session });
      else if (this.#isOver && this.crew.workers.length === 0) return;
      await sleep(5);
    }
  }

  #start(): WorkerProcess {
    this.#clockMs += CLOCK_STEP_MS;
    return this.#rig.start({
      agent: {
        script,
        scripts: { [`Input ${POISON}`]: poisonScript },
        modelMs: 3,
        lease: { ttlMs: LEASE_TTL_MS, heartbeatMs: LEASE_TTL_MS / 4 },
      },
      recover: { intervalMs: RECOVER_EVERY_MS },
      clockAheadMs: this.#clockMs,
      mayKillItself: true,
    });
  }
}

/** Over, or given up. */
function isAtRest(checkpoint: Checkpoint | null): boolean {
  if (checkpoint === null) return false;
  return (
    checkpoint.status === 'finished' ||
    (checkpoint.status === 'in-progress' && checkpoint.parkedAt !== undefined)
  );
}

function sleep(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

export interface RecoverySummary {
  readonly kills: number;
  readonly stops: number;
  readonly runs: number;
  /** By `recover()`, not by the one that was sent it. */
  readonly recovered: number;
  readonly callsAgain: number;
  readonly poisonStarts: number;
  readonly parked: number;
  /** Runs that came to their end between the first and the last death by poison. */
  readonly finishedBesidePoison: number;
  /** From the cut of a run to the moment when somebody had its lease, half of them and the longest. */
  readonly waitedMs: { readonly median: number; readonly most: number };
}

export function summarizeRecovery({ log }: Evidence): RecoverySummary {
  const starts = log.filter((line) => line.kind === 'tool.started');
  const poison = starts.filter(({ toolName }) => toolName === 'poison');
  const ended = log.filter(
    (line) =>
      line.kind === 'op.ended' && line.outcome.type === 'resolved' && line.outcome.finishReason === 'stop',
  );
  const count = (kind: LogLine['kind']): number => log.filter((line) => line.kind === kind).length;
  const waits = waitsForRecovery(log).sort((a, b) => a - b);
  const calls = new Set(starts.map(({ session, callId }) => `${session} ${callId}`));
  return {
    kills: count('worker.killed'),
    stops: count('worker.stopped'),
    runs: new Set(ended.flatMap((line) => ('session' in line ? [line.session] : []))).size,
    recovered: ended.filter((line) => 'op' in line && line.op.includes('-r')).length,
    callsAgain: starts.length - calls.size - Math.max(0, poison.length - 1),
    poisonStarts: poison.length,
    parked: count('run.parked'),
    finishedBesidePoison: ended.filter(({ at }) => at > (poison[0]?.at ?? 0) && at < (poison.at(-1)?.at ?? 0))
      .length,
    waitedMs: {
      median: Math.round(waits[Math.floor(waits.length / 2)] ?? 0),
      most: Math.round(waits.at(-1) ?? 0),
    },
  };
}

/** Of runs whose holder was killed under their lease: until the next one had it. */
function waitsForRecovery(log: readonly LogLine[]): number[] {
  const killedAt = new Map(
    log.flatMap((line) => (line.kind === 'worker.killed' ? [[line.worker, line.at]] : [])),
  );
  const holders = new Map<string, Extract<LogLine, { kind: 'lease.taken' }>>();
  const released = new Set(log.flatMap((line) => (line.kind === 'lease.releasing' ? [line.op] : [])));
  const waits: number[] = [];
  for (const line of log) {
    if (line.kind !== 'lease.taken') continue;
    const before = holders.get(line.session);
    holders.set(line.session, line);
    const killed = before === undefined || released.has(before.op) ? undefined : killedAt.get(before.worker);
    if (killed !== undefined && killed < line.at && line.session !== POISON) waits.push(line.at - killed);
  }
  return waits;
}
