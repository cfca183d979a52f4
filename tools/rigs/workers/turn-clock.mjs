// Knows since when the current turn of the event loop runs. Whatever the engine decides from its clock, it decides not before that: an
// effect that is late because its process was stopped in the middle of a turn is told apart from one that was begun too late.
import { platformClock } from '@lousho/contract';

let turnStartedMs;

/** Milliseconds that all processes of a machine count alike. */
export function nowMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** When the turn began in which this is called. */
export function turnStartMs() {
  enterTurn();
  return turnStartedMs;
}

/** The platform's clock; each look at it shows that a turn is running. */
export const turnClock = {
  wallMs() {
    enterTurn();
    return platformClock.wallMs();
  },
  monotonicMs() {
    enterTurn();
    return platformClock.monotonicMs();
  },
  setTimer: platformClock.setTimer,
};

function enterTurn() {
  if (turnStartedMs !== undefined) return;
  turnStartedMs = nowMs();
  setImmediate(() => {
    turnStartedMs = undefined;
  });
}
