/** Waits for what another process does: it can only be looked at again and again. */

const LOOK_EVERY_MS = 10;
const GIVE_UP_AFTER_MS = 20_000;

/** @throws when it does not come true within a minute */
export async function until(condition: () => boolean): Promise<void> {
  const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS;
  while (!condition()) {
    if (performance.now() > giveUpAtMs) throw new Error(`It never came true: ${String(condition)}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
