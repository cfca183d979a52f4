/** What was written is read again: at once, or until it is visible where a store says that this may take a while. */
import { SDKError, type Clock, type StoreClaims } from '@lousho/contract';

/** Workers KV shows a write everywhere after 60 seconds or more. */
const VISIBLE_WITHIN_MS = 180_000;
const ASK_EVERY_MS = 1_000;

/** @throws LOUSHO_STORE_WRITE_FAILED when the store gives back something else than it was given */
export async function readBack(
  claims: StoreClaims | undefined,
  clock: Clock,
  id: string,
  isRight: () => Promise<boolean>,
): Promise<void> {
  const untilMs = clock.monotonicMs() + (claims?.consistency === 'eventual' ? VISIBLE_WITHIN_MS : 0);
  while (!(await isRight())) {
    if (clock.monotonicMs() >= untilMs) {
      throw new SDKError(
        'LOUSHO_STORE_WRITE_FAILED',
        { operation: 'copyStore', id },
        { message: `The target does not give back "${id}" as it was written.`, retryable: false },
      );
    }
    await new Promise<void>((resolve) => clock.setTimer(resolve, ASK_EVERY_MS));
  }
}
