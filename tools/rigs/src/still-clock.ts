/** Time that stands still, so that what is stored is the same on every store, however long its medium takes. */
import type { Clock, Ports } from '@lousho/contract';

/** What a store waits for when it reads back what it wrote. Heartbeats are further apart, and never come. */
const LONGEST_PAUSE_MS = 1_000;

export interface StillClock extends Clock {
  moveTo(wallMs: number): void;
}

export function stillClock(startMs: number): StillClock {
  let wallMs = startMs;
  return {
    wallMs: () => wallMs,
    monotonicMs: () => wallMs,
    setTimer(callback, delayMs) {
      if (delayMs > LONGEST_PAUSE_MS) return () => undefined;
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    },
    moveTo(ms) {
      wallMs = ms;
    },
  };
}

/** A process whose ids are counted: a second one with the same name gives out the same. */
export function stillPorts(clock: Clock, name: string): Ports {
  let idCount = 0;
  return {
    clock,
    // Different in the first 8 characters: keys made from an id hold no more of it.
    ids: { random: () => `${name}${(idCount += 1).toString(36).padStart(4, '0')}` },
    processes: { own: () => ({ instanceId: name }), isGone: () => false },
  };
}
