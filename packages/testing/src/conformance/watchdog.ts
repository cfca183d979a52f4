/** Notices that a rule hangs: a store is given a bounded real time for each answer. */
import { platformClock } from '@lousho/contract';

export interface Watchdog {
  /** Something came back: the time begins anew. */
  progress(): void;
  /** What the promise gives, or `hung` when nothing has come back for too long. Rejects with what the promise rejects with. */
  guard<Value>(promise: Promise<Value>): Promise<Value | typeof hung>;
}

export const hung: unique symbol = Symbol('hung');

/** @param patienceMs real time, whatever clock the store has */
export function watchdog(patienceMs: number): Watchdog {
  let lastProgressMs = platformClock.monotonicMs();
  return {
    progress() {
      lastProgressMs = platformClock.monotonicMs();
    },
    guard(promise) {
      lastProgressMs = platformClock.monotonicMs();
      let cancel = (): void => undefined;
      const timeout = new Promise<typeof hung>((resolve) => {
        const wait = (leftMs: number): void => {
          cancel = platformClock.setTimer(look, leftMs);
        };
        const look = (): void => {
          const leftMs = lastProgressMs + patienceMs - platformClock.monotonicMs();
          if (leftMs > 0) wait(leftMs);
          else resolve(hung);
        };
        wait(patienceMs);
      });
      return Promise.race([promise, timeout]).finally(() => cancel());
    },
  };
}
