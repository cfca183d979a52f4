/** Waiting for what a test names, in turns of the event loop: hashing and disks take real time, however little. */
import type { ManualClock } from '@lousho/testing';

/** Far more than a loaded machine needs for what a test waits for. */
const GIVE_UP_AFTER_MS = 4_000;

/** Resolves when the condition holds, without moving the clock of the test. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAtMs) throw new Error(`It never came true: ${String(condition)}`);
    await nextTurn();
  }
}

/** What the promise gives, with the clock moving on for as long as that takes. */
export async function letPass<Value>(clock: ManualClock, promise: Promise<Value>): Promise<Value> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  promise.then(settle, settle);
  const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS;
  while (!isSettled) {
    if (performance.now() > giveUpAtMs) throw new Error('It never settled, however much time passed.');
    await clock.advance(50);
  }
  return promise;
}

/** Lets time pass in steps until the condition holds: what each step begins may take real time, too. */
export async function passUntil(
  clock: ManualClock,
  stepMs: number,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAtMs) throw new Error(`It never came true: ${String(condition)}`);
    await clock.advance(stepMs);
  }
}

/** Whether a promise is still open after everything that could settle it has had its turn. */
export async function isOpen(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  promise.then(settle, settle);
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
  return !isSettled;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A promise whose rejection the test looks at later. */
export function later<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined);
  return promise;
}
