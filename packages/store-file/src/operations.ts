/**
 * The door of the store: what comes in is counted, so that closing can wait for it, what goes wrong gets its code, and no write is
 * acknowledged that went into a folder which is not at its path any more.
 */
import { closedError, operationError, type Operation } from './file-errors.ts';
import type { StorePlace } from './store-place.ts';

export class Operations {
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(readonly place: StorePlace) {}

  /** Whether no more than one operation is under way. */
  get isAlone(): boolean {
    return this.#running.size <= 1;
  }

  /** @throws LOUSHO_STORE_CLOSED, and what the task throws, with a code */
  async perform<Value>(operation: Operation, task: () => Promise<Value>): Promise<Value> {
    if (this.#isClosed) throw closedError(operation.name);
    const outcome = operation.kind === 'write' ? this.#write(task) : task();
    this.#running.add(outcome);
    try {
      return await outcome;
    } catch (error) {
      throw operationError(error, operation);
    } finally {
      this.#running.delete(outcome);
    }
  }

  async #write<Value>(task: () => Promise<Value>): Promise<Value> {
    let value: Value;
    try {
      value = await task();
    } catch (error) {
      throw await this.place.explain(error);
    }
    // Also for a refusal: in an empty folder nobody has a lease.
    const looking = this.place.assertSame();
    if (looking !== undefined) await looking;
    return value;
  }

  /** Refuses what comes from now on, and resolves when everything before has its outcome. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}
