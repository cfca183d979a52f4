/** Ports of a store whose pauses pass by themselves: nobody in the conformance suite moves the clock while a call is under way. */
import type { Clock, Ports } from '@lousho/contract';
import { testPorts, type ManualClock } from '@lousho/testing';

/** A timer that the store sets lets so much time pass. Nothing is skipped: timers of others that are due then run too. */
export function waitingPorts(clock: ManualClock): Pick<Ports, 'clock' | 'ids'> {
  const waiting: Clock = {
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    setTimer(callback, delayMs) {
      const cancel = clock.setTimer(callback, delayMs);
      void clock.advance(delayMs);
      return cancel;
    },
  };
  return { clock: waiting, ids: testPorts(clock).ids };
}
