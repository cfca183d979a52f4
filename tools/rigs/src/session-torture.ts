/** Processes that talk in a few conversations, while a nemesis kills and stops them: turns of every kind, forks, and now and then a clear. */
import type { SessionRecord } from '@lousho/contract';
import type { SessionEvidence } from './checker.ts';
import type { LogLine } from './effect-log.ts';
import type { Random } from './random.ts';
import type { Rig } from './rig.ts';
import { call, type Script } from './torture.ts';
import { WorkerCrew } from './worker-crew.ts';
import type { Action, Ending, WorkerProcess } from './worker-process.ts';

const WORKERS = 3;
const LEASE_TTL_MS = 600;
/** A lease of a conversation that ends is waited for, at the end. */
const MOST_TRIES = 2_000;
const MOST_FORKS = 6;
/** Three kinds of turns: parallel calls, one that a person decides beside one that must not be repeated, and words alone. */
const script: Script = [
  [call('work', 20), call('work', 5)],
  [],
  [call('refund', 15), call('careful', 10)],
  [call('work', 10)],
  [],
  [],
];

/** What is particular about a conversation. In each there is one who retries what it says until it has its answer. */
interface Place {
  readonly id: string;
  readonly policies: readonly ('wait' | 'queue' | 'steer')[];
  readonly isCleared: boolean;
}
const places: readonly Place[] = [
  { id: 'plain', policies: ['wait'], isCleared: false },
  { id: 'joined', policies: ['wait', 'queue'], isCleared: false },
  { id: 'steered', policies: ['queue', 'steer'], isCleared: false },
  { id: 'cleared', policies: ['wait'], isCleared: true },
];

export interface SessionTortureOptions {
  readonly durationMs: number;
  readonly random: Random;
}

export async function sessionTorture(rig: Rig, options: SessionTortureOptions): Promise<SessionEvidence> {
  const { random, durationMs } = options;
  const talk = new Talk(rig, random);
  await talk.begin();
  const endMs = performance.now() + durationMs;
  while (performance.now() < endMs) {
    await talk.crew.strike();
    await sleep(60 + random.below(120));
  }
  await talk.end();
  const sessions = new Map<string, SessionRecord>();
  for (const id of (await rig.store.sessions.list?.()) ?? []) {
    const record = await rig.store.sessions.load(id);
    if (record) sessions.set(id, record);
  }
  const leftovers = (await rig.store.checkpoints.list()).map(({ sessionId }) => sessionId);
  const steered = new Set(
    [...sessions.keys()].filter((id) => id.startsWith('steered') || id.includes('-fork')),
  );
  return {
    log: rig.log(),
    looks: [],
    finals: new Map(),
    leaseTtlMs: LEASE_TTL_MS,
    sessions,
    leftovers,
    steered,
  };
}

class Talk {
  readonly #random: Random;
  readonly crew: WorkerCrew;
  readonly #loops: Promise<void>[] = [];
  readonly #forks: string[] = [];
  #inputCount = 0;
  #isOver = false;

  constructor(rig: Rig, random: Random) {
    this.#random = random;
    const agent = { script, modelMs: 3, lease: { ttlMs: LEASE_TTL_MS, heartbeatMs: LEASE_TTL_MS / 4 } };
    this.crew = new WorkerCrew(random, {
      size: WORKERS,
      leaseTtlMs: LEASE_TTL_MS,
      chances: { kill: 0.2, end: 0.25, stall: 0.45, pause: 0.65 },
      start: () => rig.start(random.next() < 0.5 ? { agent } : { agent, recover: { intervalMs: 100 } }),
    });
  }

  async begin(): Promise<void> {
    await this.crew.fill();
    for (const place of places) {
      this.#loops.push(this.#insist(place.id), this.#chat(place), this.#decide(place.id));
      if (place.isCleared) this.#loops.push(this.#clear(place.id));
    }
    this.#loops.push(this.#fork());
  }

  /** What nobody has an answer for is said again, to one process that lives. Then each conversation has a last turn. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.crew.killAll();
    await this.crew.enter();
    await Promise.all(this.#loops);
    for (const id of [...places.map((place) => place.id), ...this.#forks]) await this.#sayUntilAnswered(id);
    await this.crew.endAll();
    await this.crew.killSpare();
  }

  async #insist(id: string): Promise<void> {
    while (!this.#isOver) {
      await this.#sayUntilAnswered(id);
      await sleep(this.#random.below(60));
    }
  }

  async #sayUntilAnswered(id: string): Promise<void> {
    const inputId = this.#nextInput(id);
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const said = await this.#perform(id, { type: 'say', inputId, isRetried: true, turnPolicy: 'wait' });
      if (said?.type === 'resolved' && said.finishReason === 'stop') return;
      if (this.#isOver) await this.#perform(id, { type: 'decide', approved: true });
      await sleep(10 + this.#random.below(30));
    }
    throw new Error(`Nobody answers ${inputId}.`);
  }

  /** Says each thing once, whatever becomes of it. */
  async #chat({ id, policies }: Place): Promise<void> {
    while (!this.#isOver) {
      const turnPolicy = this.#random.pick(policies);
      const inputId = this.#nextInput(id);
      await this.#perform(id, { type: 'say', inputId, isRetried: false, turnPolicy });
      await sleep(this.#random.below(150));
    }
  }

  async #decide(id: string): Promise<void> {
    while (!this.#isOver) {
      const approved = this.#random.next() < 0.75;
      await this.#perform(id, { type: 'decide', approved, index: this.#random.below(2) });
      await sleep(this.#random.below(60));
    }
  }

  async #clear(id: string): Promise<void> {
    while (!this.#isOver) {
      await this.#perform(id, { type: 'clear' });
      await sleep(this.#random.below(1_000));
    }
  }

  async #fork(): Promise<void> {
    while (!this.#isOver && this.#forks.length < MOST_FORKS) {
      const { id } = this.#random.pick(places);
      const newSessionId = `${id}-fork-${this.#forks.length + 1}`;
      const fromStep = this.#random.below(12);
      const forked = await this.#perform(id, { type: 'fork', fromStep, newSessionId });
      if (forked?.type === 'resolved') this.#forks.push(newSessionId);
      await sleep(500 + this.#random.below(1_000));
    }
  }

  #nextInput(id: string): string {
    return `${id}-${(this.#inputCount += 1)}`;
  }

  /** `undefined`: there is nobody. */
  async #perform(id: string, action: Action): Promise<Ending | undefined> {
    const alive = this.crew.workers.filter((worker: WorkerProcess) => worker.isAlive);
    return alive.length === 0 ? undefined : this.#random.pick(alive).perform(id, action);
  }
}

function sleep(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

/** One line of numbers: whether the torture was one. */
export function summarizeSessions({ log, sessions }: SessionEvidence) {
  const ended = new Map(log.flatMap((line) => (line.kind === 'op.ended' ? [[line.op, line.outcome]] : [])));
  const count = (kind: LogLine['kind']): number => log.filter((line) => line.kind === kind).length;
  const resolved = (fits: (line: Extract<LogLine, { kind: 'op.began' }>) => boolean): number =>
    log.filter((line) => line.kind === 'op.began' && fits(line) && ended.get(line.op)?.type === 'resolved')
      .length;
  return {
    kills: count('worker.killed'),
    stops: count('worker.stopped'),
    said: resolved(({ action }) => action === 'say'),
    cleared: resolved(({ action }) => action === 'clear'),
    forked: resolved(({ action }) => action === 'fork'),
    decided: log.filter((line) => line.kind === 'op.decided' && ended.get(line.op)?.type === 'resolved')
      .length,
    turns: [...sessions.values()].reduce((sum, { turn }) => sum + turn, 0),
  };
}
