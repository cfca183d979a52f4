/** Three processes count in files and in SQLite at once while they are killed and stopped: no number twice, none lost. */
import { fork, type ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { findCountErrors, type CountLine } from '../src/count-log.ts';
import { seededRandom, type Random } from '../src/random.ts';
import { readStepLog } from '../src/step-log.ts';
import { openStore, type StoreFault, type StoreKind } from '../workers/open-store.mjs';
import { temporaryFolder } from './support/temporary-folder.ts';

const KINDS: readonly StoreKind[] = ['file', 'sqlite'];
const PROCESSES = 3;
/** Whoever stands still for twice as long loses the counter. */
const TTL_MS = 400;
const STRIKE_EVERY_MS = 150;

it('counts every number once, whoever is killed or stopped', async () => {
  const random = seededRandom('counter');
  const rig = await count({ durationMs: 60_000, random });
  for (const kind of KINDS) {
    const lines = ofCounter(rig.lines, kind);
    expect(findCountErrors(lines, await rig.final(kind))).toEqual([]);
    // It was a struggle: many got it, and some lost it while they stood still.
    const owners = new Set(lines.filter(({ kind }) => kind === 'acknowledged').map(({ owner }) => owner));
    const refused = lines.filter(({ kind }) => kind === 'refused').length;
    const counted = lines.filter(({ kind }) => kind === 'acknowledged').length;
    console.log(`counter (${kind}): ${counted} counted by ${owners.size} owners, ${refused} refused`);
    expect(owners.size).toBeGreaterThan(20);
    expect(refused).toBeGreaterThan(0);
  }
  console.log(`counter: ${rig.kills} kills, ${rig.stops} stops`);
  expect(Math.min(rig.kills, rig.stops)).toBeGreaterThan(20);
});

it('catches a store that saves without a look at the fence', async () => {
  const random = seededRandom('counter without a fence');
  const isCaught = (lines: readonly CountLine[]): boolean =>
    KINDS.every((kind) => findCountErrors(ofCounter(lines, kind), Infinity).length > 0);
  const rig = await count({ durationMs: 45_000, random, fault: 'no-fence', isEnough: isCaught });
  for (const kind of KINDS)
    expect(findCountErrors(ofCounter(rig.lines, kind), Infinity).join('\n')).toContain('were both told');
});

interface CountOptions {
  readonly durationMs: number;
  readonly random: Random;
  readonly fault?: StoreFault;
  /** Asked now and then: the rest of the time is not needed. */
  readonly isEnough?: (lines: readonly CountLine[]) => boolean;
}

interface Counted {
  readonly lines: readonly CountLine[];
  readonly kills: number;
  readonly stops: number;
  final(kind: StoreKind): Promise<number>;
}

async function count({ durationMs, random, fault, isEnough = () => false }: CountOptions): Promise<Counted> {
  const folder = temporaryFolder();
  const logPath = path.join(folder, 'log.jsonl');
  fs.writeFileSync(logPath, '');
  const counters = KINDS.map((kind) => ({ kind, folder, fault }));
  const stage = new Stage({ logPath, ttlMs: TTL_MS, counters }, random);
  const endMs = performance.now() + durationMs;
  for (let strikes = 1; performance.now() < endMs; strikes += 1) {
    await sleep(STRIKE_EVERY_MS);
    await stage.strike(lastOwner(logPath));
    if (strikes % 20 === 0 && isEnough(readStepLog(logPath))) break;
  }
  await stage.clear();
  return {
    lines: readStepLog<CountLine>(logPath),
    kills: stage.kills,
    stops: stage.stops,
    async final(kind) {
      const store = openStore({ kind, folder });
      const stored = await store.checkpoints.load('counter');
      await store.close();
      return stored?.stepIndex ?? 0;
    },
  };
}

function ofCounter(lines: readonly CountLine[], kind: StoreKind): readonly CountLine[] {
  return lines.filter(({ counter }) => counter === kind);
}

/** Who counted last, and so has a counter now, as far as the end of the log tells. */
function lastOwner(logPath: string): string | undefined {
  const bytes = Buffer.alloc(512);
  const fd = fs.openSync(logPath, 'r');
  const { size } = fs.fstatSync(fd);
  const length = fs.readSync(fd, bytes, 0, bytes.length, Math.max(0, size - bytes.length));
  fs.closeSync(fd);
  return [...bytes.toString('latin1', 0, length).matchAll(/"owner":"(w\d+)-/g)].at(-1)?.[1];
}

const workerFile = fileURLToPath(new URL('../workers/counter-worker.mjs', import.meta.url));

interface Contestant {
  readonly name: string;
  readonly child: ChildProcess;
}

class Stage {
  readonly #job: object;
  readonly #random: Random;
  readonly #contestants: Contestant[] = [];
  /** One at a time: the others have to be awake to take over. */
  #stopped: Contestant | undefined;
  #startCount = 0;
  kills = 0;
  stops = 0;

  /** Inside a test. */
  constructor(job: object, random: Random) {
    this.#job = job;
    this.#random = random;
    onTestFinished(() => this.clear());
    while (this.#contestants.length < PROCESSES) this.#enter();
  }

  /** Kills one, or stops one for a moment or for longer than its lease; most often the one that counts. */
  async strike(owner: string | undefined): Promise<void> {
    const holder = this.#contestants.find(({ name }) => name === owner);
    const victim = (this.#random.next() < 0.7 ? holder : undefined) ?? this.#random.pick(this.#contestants);
    if (this.#random.next() < 0.2) {
      this.kills += 1;
      await this.#kill(victim);
      this.#enter();
    } else if (this.#stopped === undefined) {
      this.stops += 1;
      this.#stop(victim, this.#random.next() < 0.5 ? 3.2 * TTL_MS : 20 + this.#random.below(TTL_MS));
    }
  }

  async clear(): Promise<void> {
    await Promise.all([...this.#contestants].map((contestant) => this.#kill(contestant)));
  }

  #enter(): void {
    const env = { ...process.env };
    delete env['NODE_OPTIONS'];
    const name = `w${(this.#startCount += 1)}`;
    const child = fork(workerFile, [JSON.stringify({ ...this.#job, worker: name })], { execArgv: [], env });
    this.#contestants.push({ name, child });
  }

  #stop(victim: Contestant, durationMs: number): void {
    this.#stopped = victim;
    victim.child.kill('SIGSTOP');
    setTimeout(() => {
      if (this.#stopped === victim) this.#stopped = undefined;
      victim.child.kill('SIGCONT');
    }, durationMs);
  }

  /** @throws when it had ended by itself */
  async #kill(contestant: Contestant): Promise<void> {
    const { name, child } = contestant;
    this.#contestants.splice(this.#contestants.indexOf(contestant), 1);
    if (this.#stopped === contestant) this.#stopped = undefined;
    if (child.exitCode !== null) throw new Error(`${name} ended by itself with ${child.exitCode}`);
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  }
}

function sleep(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}
