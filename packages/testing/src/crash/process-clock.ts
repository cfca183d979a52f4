/** The clock of one process on a machine: its timers die with it. */
import type { Clock } from '@lousho/contract';

export interface ProcessClock extends Clock {
  /** Cancels every timer and takes no more. */
  stop(): void;
}

export function processClock(machine: Clock): ProcessClock {
  const cancels = new Set<() => void>();
  let isStopped = false;
  return {
    wallMs: () => machine.wallMs(),
    monotonicMs: () => machine.monotonicMs(),
    setTimer(callback, delayMs, options) {
      if (isStopped) return () => undefined;
      const cancelTimer = machine.setTimer(
        () => {
          cancels.delete(cancel);
          callback();
        },
        delayMs,
        options,
      );
      const cancel = (): void => {
        cancels.delete(cancel);
        cancelTimer();
      };
      cancels.add(cancel);
      return cancel;
    },
    stop() {
      isStopped = true;
      for (const cancel of [...cancels]) cancel();
    },
  };
}
