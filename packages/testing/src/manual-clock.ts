/** Time that moves by hand, so that a rule of 60 seconds is tested in a millisecond and never by luck. */
import { ConfigurationError, type Clock } from '@lousho/contract';
import { settle } from './settle-clock.ts';

/** Time that moves by hand. Timers that are due run in order during `advance`. */
export interface ManualClock extends Clock {
  /**
   * Moves both clocks by `ms`, 0 or more, and runs the timers that fall due at their own times. Before the first timer, between two and
   * after the last one everything else gets some turns of the event loop, so what was under way has set its timers, and what a timer
   * began has got as far as it can. Work on a real disk or network may need longer: await it yourself. Calls wait for each other.
   * Rejects with what a timer throws. @throws synchronously LOUSHO_CONFIG_INVALID
   */
  advance(ms: number): Promise<void>;
  /** Changes the wall clock alone, by `ms`, also back. No timer runs. */
  jumpWall(ms: number): void;
}

interface Timer {
  readonly callback: () => void;
  readonly dueMs: number;
}

const DEFAULT_START_MS = Date.UTC(2026, 0, 1);
/** Neither 0 nor near a wall time: code that mixes the two up, or takes 0 for "never", shows. */
const MONOTONIC_START_MS = 5_000;

/** @param startMs wall time at the start, epoch milliseconds. Default 2026-01-01T00:00Z. */
export function manualClock(startMs: number = DEFAULT_START_MS): ManualClock {
  let monotonicMs = MONOTONIC_START_MS;
  let wallOffsetMs = startMs - MONOTONIC_START_MS;
  const timers = new Set<Timer>();
  let advances: Promise<void> = Promise.resolve();

  async function advanceTo(byMs: number): Promise<void> {
    await settle();
    const targetMs = monotonicMs + byMs;
    for (let timer = nextDue(timers, targetMs); timer !== undefined; timer = nextDue(timers, targetMs)) {
      timers.delete(timer);
      monotonicMs = Math.max(monotonicMs, timer.dueMs);
      timer.callback();
      await settle();
    }
    monotonicMs = targetMs;
    await settle();
  }

  return {
    wallMs: () => monotonicMs + wallOffsetMs,
    monotonicMs: () => monotonicMs,
    setTimer(callback, delayMs) {
      const timer: Timer = { callback, dueMs: monotonicMs + (delayMs > 0 ? delayMs : 0) };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(ms) {
      if (!(ms >= 0 && ms < Infinity)) {
        throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
          option: 'advance(ms)',
          got: ms,
          want: '0 or more',
        });
      }
      const advanced = advances.then(() => advanceTo(ms));
      advances = advanced.catch(ignoreHere);
      return advanced;
    },
    jumpWall(ms) {
      wallOffsetMs += ms;
    },
  };
}

/** The earliest timer that is due by then; of several at one time the one that was set first. */
function nextDue(timers: ReadonlySet<Timer>, byMs: number): Timer | undefined {
  let next: Timer | undefined;
  for (const timer of timers) {
    if (timer.dueMs <= byMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
  }
  return next;
}

/** The caller of that `advance` has the rejection; the next one only waits for its end. */
function ignoreHere(): void {
  return undefined;
}
