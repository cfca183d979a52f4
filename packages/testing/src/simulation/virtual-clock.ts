/** The clock of one virtual machine: ahead or behind, too fast or too slow, and asleep when the machine is. */
import type { Clock } from '@lousho/contract';
import type { TrueTime } from './true-time.ts';

export interface ClockFacts {
  /** How far its wall clock is ahead of the true time at the start; negative: behind. */
  readonly aheadMs: number;
  /** Its milliseconds a true millisecond: 1.001 is too fast by a thousandth. */
  readonly rate: number;
}

export const trueClock: ClockFacts = { aheadMs: 0, rate: 1 };

const START_MS = Date.UTC(2026, 0, 1);
/** Neither 0 nor near a wall time: code that mixes the two up shows. */
const MONOTONIC_START_MS = 5_000;
/** Sums of fractions: a timer that is this early is due. */
const GRAIN_MS = 0.001;

export class VirtualClock {
  readonly #time: TrueTime;
  readonly #facts: ClockFacts;
  #jumpedMs = 0;
  #sleptMs = 0;

  constructor(time: TrueTime, facts: ClockFacts) {
    this.#time = time;
    this.#facts = facts;
  }

  /** The wall clock alone is set, forward or back. */
  jump(byMs: number): void {
    this.#jumpedMs += byMs;
  }

  /** Behind a suspend: the wall clock went on, the monotonic one stood still. */
  wake(sleptMs: number): void {
    this.#sleptMs += sleptMs;
  }

  /** As a process sees it; its timers run through `deliver`. */
  of(deliver: (run: () => void) => void): Clock {
    return {
      wallMs: () => Math.floor(START_MS + this.#facts.aheadMs + this.#jumpedMs + this.#elapsedMs()),
      monotonicMs: () => this.#monotonicMs(),
      setTimer: (callback, delayMs) => this.#setTimer(callback, delayMs, deliver),
    };
  }

  #elapsedMs(): number {
    return this.#time.nowMs * this.#facts.rate;
  }

  #monotonicMs(): number {
    return MONOTONIC_START_MS + this.#elapsedMs() - this.#sleptMs * this.#facts.rate;
  }

  #setTimer(callback: () => void, delayMs: number, deliver: (run: () => void) => void): () => void {
    // At least one, as the platform has it: a timer never runs at the moment at which it is set.
    const dueMs = this.#monotonicMs() + Math.max(1, delayMs);
    let isCancelled = false;
    let cancelNext = (): void => undefined;
    const wait = (): void => {
      const leftMs = dueMs - this.#monotonicMs();
      cancelNext = this.#time.in(leftMs / this.#facts.rate, () => deliver(fire));
    };
    const fire = (): void => {
      if (isCancelled) return;
      if (dueMs - this.#monotonicMs() > GRAIN_MS) wait();
      else callback();
    };
    wait();
    return () => {
      isCancelled = true;
      cancelNext();
    };
  }
}
