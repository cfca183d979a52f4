/** The processes that are at work now, what happens to them, and who takes their place. */
import type { Random } from './random.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Up to which number between 0 and 1 what happens; above the last one nothing does. */
interface StrikeChances {
  readonly kill: number;
  /** It is told to end, and shuts down. */
  readonly end: number;
  /** It stands still for longer than its lease. */
  readonly stall: number;
  /** It stands still for a moment. */
  readonly pause: number;
}

export interface CrewOptions {
  readonly size: number;
  readonly leaseTtlMs: number;
  readonly chances: StrikeChances;
  /** The next process: it loads its code while the others work. */
  start(this: void): WorkerProcess;
  /** Called when it has begun. */
  begun?(this: void, worker: WorkerProcess): void;
  /** Whether one may die by itself before it says that it is ready. */
  readonly mayDie?: boolean;
}

export class WorkerCrew {
  readonly workers: WorkerProcess[] = [];
  readonly #random: Random;
  readonly #options: CrewOptions;
  readonly #stopped = new Map<WorkerProcess, NodeJS.Timeout>();
  #spare: WorkerProcess;

  constructor(random: Random, options: CrewOptions) {
    this.#random = random;
    this.#options = options;
    this.#spare = options.start();
  }

  async fill(): Promise<void> {
    while (this.workers.length < this.#options.size) await this.enter();
  }

  /** Kills one, lets one shut down, or stops one for a moment or for longer than its lease. */
  async strike(): Promise<void> {
    const { chances, leaseTtlMs } = this.#options;
    const victim = this.#random.pick(this.workers);
    const chance = this.#random.next();
    if (chance < chances.kill) {
      await victim.kill();
      await this.replace(victim);
    } else if (this.#stopped.has(victim)) {
      return;
    } else if (chance < chances.end) {
      await victim.end();
      await this.replace(victim);
    } else if (chance < chances.pause) {
      this.#stop(victim, chance < chances.stall ? 2.5 * leaseTtlMs : 30 + this.#random.below(300));
    }
  }

  async enter(): Promise<void> {
    const worker = this.#spare;
    this.#spare = this.#options.start();
    const ready = worker.ready();
    worker.begin();
    if (this.#options.mayDie === true) {
      ready.catch(() => undefined);
      await Promise.race([ready, worker.exited]);
    } else {
      await ready;
    }
    this.workers.push(worker);
    this.#options.begun?.(worker);
  }

  async replace(worker: WorkerProcess): Promise<void> {
    this.workers.splice(this.workers.indexOf(worker), 1);
    clearTimeout(this.#stopped.get(worker));
    this.#stopped.delete(worker);
    await this.enter();
  }

  async replaceDead(): Promise<void> {
    for (const worker of [...this.workers]) if (!worker.isAlive) await this.replace(worker);
  }

  /** The process that waits makes room for one that is started now. */
  async renewSpare(): Promise<void> {
    const spare = this.#spare;
    this.#spare = this.#options.start();
    await spare.kill();
  }

  async killAll(): Promise<void> {
    for (const timer of this.#stopped.values()) clearTimeout(timer);
    await Promise.all(this.workers.splice(0).map((worker) => worker.kill()));
  }

  async endAll(): Promise<void> {
    await Promise.all(this.workers.splice(0).map((worker) => worker.end()));
  }

  killSpare(): Promise<void> {
    return this.#spare.kill();
  }

  #stop(worker: WorkerProcess, durationMs: number): void {
    worker.stop();
    const goOn = (): void => {
      this.#stopped.delete(worker);
      worker.continue();
    };
    this.#stopped.set(worker, setTimeout(goOn, durationMs));
  }
}
