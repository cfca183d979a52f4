/** One process of a simulated world: everything that it waits for comes to it as an event, and only while it lives and is not stalled. */
import type { Ports } from '@lousho/contract';
import type { TrueTime } from './true-time.ts';
import type { VirtualClock } from './virtual-clock.ts';

export class VirtualProcess {
  readonly ports: Ports;
  /** It said goodbye, and nothing of it may go on. */
  hasLeft = false;
  readonly #time: TrueTime;
  readonly #clock: VirtualClock;
  #isAlive = true;
  #stalledUntilMs = 0;
  readonly #whenDead: (() => void)[] = [];

  /** @param name unlike that of any other process of the world, also of one that ran on this machine before */
  constructor(
    readonly name: string,
    readonly machine: string,
    time: TrueTime,
    clock: VirtualClock,
  ) {
    this.#time = time;
    this.#clock = clock;
    let idCount = 0;
    this.ports = {
      clock: clock.of((run) => this.deliver(run)),
      // Different in the first 8 characters: keys made from an id hold no more of it.
      ids: { random: () => `${name}${base36((idCount += 1))}` },
      processes: { own: () => ({ instanceId: name }), isGone: () => false },
    };
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isStalled(): boolean {
    return this.#time.nowMs < this.#stalledUntilMs;
  }

  /** Runs now, when it stalls no more, or never. */
  deliver(run: () => void): void {
    if (!this.#isAlive) return;
    const waitMs = this.#stalledUntilMs - this.#time.nowMs;
    if (waitMs > 0) this.#time.in(waitMs, () => this.deliver(run));
    else run();
  }

  /** Something outside takes so long, then the process goes on. */
  wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#time.in(delayMs, () => this.deliver(resolve)));
  }

  /** Nothing of it goes on any more, nothing that it waits for comes back. */
  kill(): void {
    this.#isAlive = false;
    for (const tell of this.#whenDead.splice(0)) tell();
  }

  onDeath(tell: () => void): void {
    if (this.#isAlive) this.#whenDead.push(tell);
    else tell();
  }

  /** Stopped: its clocks go on, it does not. */
  stall(forMs: number): void {
    this.#stalledUntilMs = Math.max(this.#stalledUntilMs, this.#time.nowMs + forMs);
  }

  /** A machine that sleeps: its timers stand still, too. */
  suspend(forMs: number): void {
    this.stall(forMs);
    this.#time.in(forMs, () => this.#clock.wake(forMs));
  }
}

function base36(count: number): string {
  return count.toString(36).padStart(6, '0');
}
