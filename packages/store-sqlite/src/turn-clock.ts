/** The end of the current turn of the event loop: when the writes that came in it are committed together. */

/** Runs `callback` when everything that is ready now has run. Keeps the process alive until then. */
export function atEndOfTurn(callback: () => void): void {
  setImmediate(callback);
}

/** Lets everything else that is ready run, so that long reads do not hold up heartbeats. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Holds the thread. Only for the constructor, which cannot wait in any other way when several processes open one new file.
 */
export function holdThread(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}
