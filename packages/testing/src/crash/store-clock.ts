/** The clock of the store on a machine: tells whether one of its calls waits for time to pass, or for its disk. */
import type { Clock } from '@lousho/contract';

export interface StoreClock extends Clock {
  /** Whether a timer runs that a call waits for; one with `keepAlive: false` is nobody's. */
  readonly isWaitedFor: boolean;
}

export function storeClock(machine: Clock): StoreClock {
  const timers = new Set<object>();
  return {
    get isWaitedFor() {
      return timers.size > 0;
    },
    wallMs: () => machine.wallMs(),
    monotonicMs: () => machine.monotonicMs(),
    setTimer(callback, delayMs, options) {
      const timer = {};
      if (options?.keepAlive !== false) timers.add(timer);
      const cancel = machine.setTimer(
        () => {
          timers.delete(timer);
          callback();
        },
        delayMs,
        options,
      );
      return () => {
        timers.delete(timer);
        cancel();
      };
    },
  };
}
