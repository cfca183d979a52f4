/** Lets everything that is under way run as far as it gets without time passing. The one place of the kit that uses real turns of the event loop. */

// Taken when the module loads, so that a test runner's fake timers do not stop it.
const { setTimeout: setPlatformTimeout } = globalThis;
const setPlatformImmediate: ((callback: () => void) => unknown) | undefined = globalThis.setImmediate;

/** Deep enough for a chain such as: timer, lease renewal, fenced save, event, next model call, each a few macrotasks. */
const TURNS_TO_SETTLE = 10;

/**
 * Waits a fixed number of turns of the event loop; in each of them all microtasks run, however many. Real input and output (a disk,
 * a network) may need longer: what waits for it must be awaited by itself.
 */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS_TO_SETTLE; turn += 1) await nextTurn();
}

/** One turn of the event loop. Where there is no `setImmediate` a timer does the same, only slower. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (setPlatformImmediate === undefined) setPlatformTimeout(resolve, 0);
    else setPlatformImmediate(resolve);
  });
}
