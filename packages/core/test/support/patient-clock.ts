/** Time that waits for a store on a disk, which takes real time for what it is asked: between two timers each of its calls ends. */
import type { FullAgentStore } from '@lousho/contract';
import { manualClock, type ManualClock } from '@lousho/testing';
import { until } from './wait.ts';

export interface PatientClock extends ManualClock {
  /** The same store; its calls hold the clock up. */
  watch(store: FullAgentStore): FullAgentStore;
}

export function patientClock(): PatientClock {
  const clock = manualClock();
  const timers = new Set<{ readonly dueMs: number }>();
  let callsUnderWay = 0;

  function counted<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get(_, key) {
        const member: unknown = Reflect.get(part, key);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]): unknown => {
          const outcome: unknown = Reflect.apply(member, part, args);
          if (outcome instanceof Promise) {
            callsUnderWay += 1;
            const end = (): void => {
              callsUnderWay -= 1;
            };
            outcome.then(end, end);
          }
          return outcome;
        };
      },
    });
  }
  async function letCallsEnd(): Promise<void> {
    do {
      await until(() => callsUnderWay === 0);
      // What waited for them goes on, and may call again.
      await clock.advance(0);
    } while (callsUnderWay > 0);
  }

  return {
    ...clock,
    watch: (store) => ({
      ...store,
      checkpoints: counted(store.checkpoints),
      approvals: counted(store.approvals),
      sessions: counted(store.sessions),
    }),
    setTimer(callback, delayMs, options) {
      const timer = { dueMs: clock.monotonicMs() + Math.max(0, delayMs) };
      timers.add(timer);
      const run = (): void => {
        timers.delete(timer);
        callback();
      };
      const cancel = clock.setTimer(run, delayMs, options);
      return () => {
        timers.delete(timer);
        cancel();
      };
    },
    async advance(ms) {
      const targetMs = clock.monotonicMs() + ms;
      await letCallsEnd();
      while (clock.monotonicMs() < targetMs) {
        const nextMs = Math.min(targetMs, ...[...timers].map(({ dueMs }) => dueMs));
        await clock.advance(nextMs - clock.monotonicMs());
        await letCallsEnd();
      }
    },
  };
}
