/** Which runs the current code executes inside of: a tool or hook that sends to its own run would wait for itself for ever. */
import { builtinModule } from './builtin-module.ts';

interface ContextStorage {
  run<Value>(runs: readonly object[], work: () => Value): Value;
  getStore(): readonly object[] | undefined;
}

/** `undefined` on a runtime without it: such a call then waits, and only the abort of the run ends it. */
const storage = makeStorage();

function makeStorage(): ContextStorage | undefined {
  const hooks = builtinModule<{ readonly AsyncLocalStorage: new () => ContextStorage }>('node:async_hooks');
  return hooks === undefined ? undefined : new hooks.AsyncLocalStorage();
}

/** Runs `work` as code of the run that `key` stands for. */
export function insideRun<Value>(key: object, work: () => Value): Value {
  return storage === undefined ? work() : storage.run([...(storage.getStore() ?? []), key], work);
}

/** Runs `work` as code of no run: nobody inside waits for what it begins. */
export function outsideRuns<Value>(work: () => Value): Value {
  return storage === undefined ? work() : storage.run([], work);
}

export function isInsideRun(key: object): boolean {
  return storage?.getStore()?.includes(key) ?? false;
}
