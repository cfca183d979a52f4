/** Reads: each sees one moment of the database, and waits for another connection without holding the thread. */
import type { Clock } from '@lousho/contract';
import type { SqliteDatabase } from './sqlite-database.ts';
import { damageError, isBusy, isDamage, readError, type DamagedRecord } from './sqlite-errors.ts';

export interface ReadRequest<Result> {
  readonly operation: string;
  /** The record that is asked for; damage that SQLite finds is damage of this record. */
  readonly target?: { readonly record: DamagedRecord; readonly id: string };
  read(): Result;
}

const GIVE_UP_AFTER_MS = 10_000;
const LONGEST_RETRY_MS = 50;

export class DatabaseReader {
  constructor(
    readonly database: SqliteDatabase,
    readonly clock: Clock,
  ) {}

  /** @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_READ_FAILED, LOUSHO_STORE_CLOSED */
  async read<Result>(request: ReadRequest<Result>): Promise<Result> {
    const startedMs = this.clock.monotonicMs();
    for (let retryMs = 1; ; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
      this.database.assertOpen(request.operation);
      try {
        return this.database.inReadTransaction(() => request.read());
      } catch (error) {
        const isWorthWaiting = isBusy(error) && this.clock.monotonicMs() - startedMs < GIVE_UP_AFTER_MS;
        if (!isWorthWaiting) throw asReadError(error, request);
      }
      await this.#wait(retryMs);
    }
  }

  #wait(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.setTimer(resolve, durationMs);
    });
  }
}

function asReadError<Result>(error: unknown, { operation, target }: ReadRequest<Result>): Error {
  if (target !== undefined && isDamage(error)) return damageError(error, target.record, target.id);
  return readError(error, operation, target?.id);
}
