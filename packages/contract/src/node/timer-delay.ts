/**
 * How late this process's own timers were. A process that was stopped, or slept with its machine, sees leases that expired meanwhile; their
 * holders may have slept just as long and get one more period to show that they live.
 */
import type { Clock } from '../ports.ts';

const PERIOD_MS = 1_000;
/** A busy event loop is that late every now and then. */
const IGNORED_MS = 100;
/** Watching ends when nobody has asked for leases for so long; a recovery loop asks every 30 seconds. */
const WATCH_FOR_MS = 120_000;

interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export class TimerDelay {
  #expected: Moment | undefined;
  #watchUntilMs = 0;
  #cancelTimer: () => void = ignore;
  #delayMs = 0;
  #noticedAtMs = -Infinity;

  constructor(readonly clock: Clock) {}

  /** Keeps watching for a while from now on. */
  watch(): void {
    this.#watchUntilMs = this.clock.monotonicMs() + WATCH_FOR_MS;
    if (this.#expected === undefined) this.#startPeriod();
  }

  /** The longest delay that was noticed within the last `periodMs`. */
  withinMs(periodMs: number): number {
    // The timer itself may be as late as the one who asks.
    if (this.#notice()) {
      this.#cancelTimer();
      this.#startPeriod();
    }
    return this.clock.monotonicMs() - this.#noticedAtMs < periodMs ? this.#delayMs : 0;
  }

  stop(): void {
    this.#cancelTimer();
    this.#expected = undefined;
  }

  #startPeriod(): void {
    this.#expected = {
      wallMs: this.clock.wallMs() + PERIOD_MS,
      monotonicMs: this.clock.monotonicMs() + PERIOD_MS,
    };
    this.#cancelTimer = this.clock.setTimer(() => this.#endPeriod(), PERIOD_MS, { keepAlive: false });
  }

  #endPeriod(): void {
    this.#notice();
    this.#expected = undefined;
    if (this.clock.monotonicMs() < this.#watchUntilMs) this.#startPeriod();
  }

  #notice(): boolean {
    if (this.#expected === undefined) return false;
    const nowMs = this.clock.monotonicMs();
    // By both clocks: in a suspend the monotonic one stands still on Linux, and a stopped process may have its wall clock set back.
    const lateMs = Math.max(this.clock.wallMs() - this.#expected.wallMs, nowMs - this.#expected.monotonicMs);
    if (lateMs < IGNORED_MS) return false;
    this.#delayMs = lateMs;
    this.#noticedAtMs = nowMs;
    return true;
  }
}

function ignore(): void {
  return undefined;
}
