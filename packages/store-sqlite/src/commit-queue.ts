/** Group commit: the writes of one turn of the event loop share a transaction and a sync, and each keeps its own outcome. */
import { SDKError, type Clock } from '@lousho/contract';
import type { CommitLevel, SqliteDatabase } from './sqlite-database.ts';
import { closedError, isBusy, writeError } from './sqlite-errors.ts';
import { atEndOfTurn } from './turn-clock.ts';

/** One change of the database, made inside a transaction that it shares with others. It may be made again after a rollback. */
export interface QueuedWrite<Result> {
  /** Named by errors. */
  readonly operation: string;
  readonly id?: string;
  readonly level: CommitLevel;
  /** Heartbeats overtake the writes of other ids, so that a burst of saves costs nobody a lease. */
  readonly goesFirst?: boolean;
  apply(): Result;
}

/** What keeps a memory of the database, and so must hear whether what it wrote became true. */
export interface TransactionObserver {
  committed(): void;
  rolledBack(): void;
}

interface Entry {
  readonly write: QueuedWrite<unknown>;
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
  /** Since when another connection has been in the way; monotonic. */
  busySinceMs: number | undefined;
}

/** Most writes that one transaction takes: what comes after gets a turn of its own, so that the event loop is never held for long. */
const MAX_BATCH = 256;
/** How long a write waits for another connection that does not let go. */
const GIVE_UP_AFTER_MS = 10_000;
const FIRST_RETRY_MS = 1;
const LONGEST_RETRY_MS = 50;

const none: readonly Entry[] = [];

export class CommitQueue {
  #entries: Entry[] = [];
  #isScheduled = false;
  #isClosed = false;
  #retryMs = FIRST_RETRY_MS;
  #busyError: unknown;
  #whenIdle: (() => void)[] = [];

  /** Runs before each batch is taken; what it adds belongs to the batch. */
  beforeBatch: () => void = nothing;

  constructor(
    readonly database: SqliteDatabase,
    readonly clock: Clock,
    readonly observer: TransactionObserver,
  ) {}

  /** Resolves with what `apply` returned once that is durable at the write's level. @throws what `apply` throws, LOUSHO_STORE_* */
  add<Result>(write: QueuedWrite<Result>): Promise<Result> {
    if (this.#isClosed) return Promise.reject(closedError(write.operation));
    return new Promise<Result>((resolve, reject) => {
      this.#entries.push({ write, resolve, reject, busySinceMs: undefined });
      this.#schedule();
    });
  }

  /** Refuses what comes from now on, and resolves when everything accepted before has its outcome. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#entries.length > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    atEndOfTurn(this.#flush);
  }

  readonly #flush = (): void => {
    this.beforeBatch();
    this.#isScheduled = false;
    const busy = this.#commit(this.#takeBatch());
    if (busy.length > 0) this.#waitForOthers(busy);
    else this.#retryMs = FIRST_RETRY_MS;
    if (this.#entries.length > 0) this.#schedule();
    else for (const resolve of this.#whenIdle.splice(0)) resolve();
  };

  #takeBatch(): readonly Entry[] {
    const ordered = heartbeatsFirst(this.#entries);
    this.#entries = ordered.slice(MAX_BATCH);
    return ordered.length > MAX_BATCH ? ordered.slice(0, MAX_BATCH) : ordered;
  }

  /** The entries that another connection kept from being written; all others have their outcome. */
  #commit(batch: readonly Entry[]): readonly Entry[] {
    const results: unknown[] = [];
    try {
      this.database.beginWrite(levelOf(batch));
      for (const { write } of batch) results.push(write.apply());
      this.database.commit();
    } catch (error) {
      this.database.rollback();
      this.observer.rolledBack();
      if (isBusy(error)) {
        this.#busyError = error;
        return batch;
      }
      if (batch.length > 1 && !concernsAll(error)) return this.#commitEach(batch);
      for (const { write, reject } of batch) reject(writeError(error, write.operation, write.id));
      return none;
    }
    this.observer.committed();
    for (let index = 0; index < batch.length; index += 1) batch[index]?.resolve(results[index] as never);
    return none;
  }

  /** After a failure nobody knows which write it belongs to: each gets a transaction of its own, and only the culprit's fails. */
  #commitEach(batch: readonly Entry[]): readonly Entry[] {
    for (const [index, entry] of batch.entries()) {
      if (this.#commit([entry]).length > 0) return batch.slice(index);
    }
    return none;
  }

  /** Puts them back in front, and tries again later: the thread is free meanwhile. */
  #waitForOthers(busy: readonly Entry[]): void {
    const nowMs = this.clock.monotonicMs();
    const waiting = busy.filter((entry) => {
      entry.busySinceMs ??= nowMs;
      if (nowMs - entry.busySinceMs < GIVE_UP_AFTER_MS) return true;
      entry.reject(writeError(this.#busyError, entry.write.operation, entry.write.id));
      return false;
    });
    this.#entries.unshift(...waiting);
    if (waiting.length === 0) return;
    this.#isScheduled = true;
    this.clock.setTimer(this.#flush, this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }
}

/** The file is gone: no single write is the culprit. */
function concernsAll(error: unknown): boolean {
  return error instanceof SDKError && error.code === 'LOUSHO_STORE_REPLACED';
}

/** One save that must be durable makes the whole transaction so. */
function levelOf(batch: readonly Entry[]): CommitLevel {
  for (const { write } of batch) if (write.level === 'synced') return 'synced';
  return 'visible';
}

function heartbeatsFirst(entries: readonly Entry[]): readonly Entry[] {
  if (entries.length === 1 || !entries.some(({ write }) => write.goesFirst === true)) return entries;
  const first: Entry[] = [];
  const rest: Entry[] = [];
  const idsBefore = new Set<string | undefined>();
  for (const entry of entries) {
    // Not past a write of its own run: whoever deletes and then renews must find nothing to renew.
    const overtakes = entry.write.goesFirst === true && !idsBefore.has(entry.write.id);
    (overtakes ? first : rest).push(entry);
    idsBefore.add(entry.write.id);
  }
  return [...first, ...rest];
}

function nothing(): void {
  return undefined;
}
