// The world outside: every effect of a process is one line of a file that all processes append to. A line is one write to a file opened
// for appending, so lines are whole, and their order is the order in which things happened.
import { AsyncLocalStorage } from 'node:async_hooks';
import fs from 'node:fs';
import { nowMs } from './turn-clock.mjs';

/** On whose behalf code runs: `{ op, session, fence }`. */
export const currentOperation = new AsyncLocalStorage();

/**
 * What nobody asked for is an operation, too: it begins when the store is asked for the lease, in the middle of the engine, and lasts for
 * everything that comes of that. `opOf(session)` is the last one.
 */
export function recoveries(worker) {
  const ops = new Map();
  let count = 0;
  return {
    opOf: (session) => ops.get(session),
    enter(session) {
      const current = currentOperation.getStore();
      if (current !== undefined && !current.isRecovery) return;
      const op = `${worker}-r${(count += 1)}`;
      ops.set(session, op);
      currentOperation.enterWith({ op, session, isRecovery: true });
    },
  };
}

/** `onLine` hears of each line once it is in the file. */
export function openEffectLog(path, worker, onLine = () => undefined) {
  const file = fs.openSync(path, 'a');
  const write = (entry) => {
    const { op, session, fence } = currentOperation.getStore() ?? {};
    const line = { at: nowMs(), worker, op, session, fence, ...entry };
    fs.writeSync(file, `${JSON.stringify(line)}\n`);
    onLine(line);
  };
  return {
    write,
    writeAndSync(entry) {
      write(entry);
      fs.fsyncSync(file);
    },
  };
}
