/** The door of the store: what comes in is counted, so that closing can wait for it, and what goes wrong gets its code. */
import { SDKError } from '@lousho/contract';
import { operationError, type Operation } from './kv-errors.ts';

export class Operations {
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  /** @throws LOUSHO_STORE_CLOSED, and what the task throws, with a code */
  async perform<Value>(operation: Operation, task: () => Promise<Value>): Promise<Value> {
    if (this.#isClosed) throw new SDKError('LOUSHO_STORE_CLOSED', { operation: operation.name });
    const outcome = task();
    this.#running.add(outcome);
    try {
      return await outcome;
    } catch (error) {
      throw operationError(error, operation);
    } finally {
      this.#running.delete(outcome);
    }
  }

  /** Refuses what comes from now on, and resolves when everything before has its outcome. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}
