/** What a rule about processes works with: fresh storage that child processes open, real time, sample runs. */
import { platformClock, type Checkpoint, type CheckpointStore, type StoreClaims } from '@lousho/contract';
import { NotApplicable } from '../conformance/failure.ts';
import type { ConformanceRule, Need } from '../conformance/rule.ts';
import { growingRun } from '../conformance/sample-runs.ts';
import { seededRandom, type SeededRandom } from '../conformance/seeded-random.ts';
import type { StorageUnderTest, StoreSubject } from '../conformance/subject.ts';
import type { Watchdog } from '../conformance/watchdog.ts';
import { StoreProcess } from './store-process.ts';

export interface ProcessRule extends ConformanceRule, Need {
  run(world: ProcessWorld): Promise<void>;
}

export class ProcessWorld {
  readonly random: SeededRandom = seededRandom(1);
  readonly #started: StoreProcess[] = [];

  constructor(
    readonly subject: StoreSubject,
    readonly storage: StorageUnderTest,
    readonly dog: Watchdog,
  ) {}

  get claims(): StoreClaims {
    return this.subject.claims;
  }

  /** A handle in a process of its own. @throws NotApplicable when the subject says nothing about child processes */
  async start(): Promise<StoreProcess> {
    const { childProcess } = this.storage;
    if (childProcess === undefined) throw new NotApplicable('the subject has no childProcess');
    const started = await StoreProcess.start(childProcess, () => this.dog.progress());
    this.#started.push(started);
    return started;
  }

  async startSome(count: number): Promise<readonly StoreProcess[]> {
    return Promise.all(Array.from({ length: count }, () => this.start()));
  }

  /** Nothing of this rule runs any more. A stopped process is continued by the signal that ends it. */
  async end(): Promise<void> {
    await Promise.all(this.#started.filter(({ isAlive }) => isAlive).map((started) => started.kill()));
    await this.storage.destroy();
  }

  now(): string {
    return new Date(platformClock.wallMs()).toISOString();
  }

  nowMs(): number {
    return platformClock.monotonicMs();
  }

  async elapse(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      platformClock.setTimer(resolve, ms);
    });
    this.dog.progress();
  }

  /** Asks again and again, until the answer is right or the time is over; gives the last answer. */
  async poll<Value>(
    ask: () => Promise<Value>,
    isRight: (value: Value) => boolean,
    withinMs: number,
  ): Promise<Value> {
    const deadlineMs = this.nowMs() + withinMs;
    let value = await ask();
    while (!isRight(value) && this.nowMs() < deadlineMs) {
      await this.elapse(20);
      value = await ask();
    }
    return value;
  }
}

export function checkpointsOf({ store }: StoreProcess): CheckpointStore {
  if (store.checkpoints === undefined) throw new NotApplicable('the store has no checkpoints');
  return store.checkpoints;
}

/** A run whose saves are of very different sizes: a large one is longer under way, so a kill is more likely to hit it. */
export function runOfManySizes(savedAt: string): readonly Checkpoint[] {
  return growingRun(savedAt, 12).map((state, index) => {
    return index % 3 === 1 ? { ...state, businessState: { ballast: 'x'.repeat(200_000) } } : state;
  });
}
