/** Checkpoints in a SQLite file: what each method of the contract does with logs and leases. */
import {
  assertCheckpointId,
  frozenCopy,
  parseCheckpoint,
  type Checkpoint,
  type CheckpointHeaderEntry,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
  type DeleteOptions,
  type FullCheckpointStore,
  type HistoryOptions,
  type Lease,
  type LeaseRecord,
  type ListOptions,
  type PruneOptions,
  type PruneResult,
  type StoreClaims,
} from '@lousho/contract';
import type { CommitQueue } from './commit-queue.ts';
import type { DatabaseReader } from './database-reader.ts';
import type { EventLogs } from './event-logs.ts';
import type { LogKind } from './log-reader.ts';
import type { LogMark } from './log-tables.ts';
import { readHistory } from './sqlite-history.ts';
import type { SqliteLeases } from './sqlite-leases.ts';
import type { CheckpointLists } from './sqlite-lists.ts';

export interface CheckpointsDeps {
  readonly claims: StoreClaims;
  readonly historyLimit: number;
  readonly historyMaxBytes: number;
  readonly queue: CommitQueue;
  readonly reader: DatabaseReader;
  readonly logs: EventLogs;
  readonly leases: SqliteLeases;
  readonly lists: CheckpointLists;
  /** Of the whole store. */
  readonly prune: (options: PruneOptions) => Promise<PruneResult>;
  readonly close: () => Promise<void>;
}

export class SqliteCheckpoints implements FullCheckpointStore {
  readonly claims: StoreClaims;
  readonly #deps: CheckpointsDeps;
  readonly #kind: LogKind;

  constructor(deps: CheckpointsDeps) {
    this.claims = deps.claims;
    this.#deps = deps;
    this.#kind = {
      record: 'checkpoint',
      keptEntries: Math.max(1, deps.historyLimit),
      keptBytes: deps.historyMaxBytes,
      parse: parseCheckpoint,
    };
  }

  async save(id: string, checkpoint: Checkpoint): Promise<void> {
    assertCheckpointId(id);
    const next = frozenCopy(checkpoint);
    await this.#deps.queue.add({
      operation: 'save',
      id,
      level: 'synced',
      apply: () => this.#append(id, next),
    });
  }

  async saveIfLeased(id: string, checkpoint: Checkpoint, owner: string, fence?: number): Promise<boolean> {
    assertCheckpointId(id);
    const next = frozenCopy(checkpoint);
    return this.#deps.queue.add({
      operation: 'saveIfLeased',
      id,
      level: 'synced',
      apply: () => {
        const { leases, logs } = this.#deps;
        const check = leases.checkForSave(id, owner, fence, logs.knownKey(id));
        if (check.isHeld) this.#append(id, next, check.logMark);
        return check.isHeld;
      },
    });
  }

  async load(id: string): Promise<Checkpoint | null> {
    assertCheckpointId(id);
    const { reader, logs } = this.#deps;
    return reader.read({
      operation: 'load',
      target: { record: 'checkpoint', id },
      read: () => {
        const row = logs.tables.rowById(id);
        return row === undefined || row.status === 'deleted' ? null : logs.load(row, this.#kind);
      },
    });
  }

  async delete(id: string, { keepHistory = false }: DeleteOptions = {}): Promise<void> {
    assertCheckpointId(id);
    const { queue, logs, leases } = this.#deps;
    await queue.add({
      operation: 'delete',
      id,
      level: 'synced',
      apply: () => {
        leases.endWithRun(id);
        const row = logs.tables.rowById(id);
        if (row !== undefined) logs.remove(row, { keepHistory });
      },
    });
  }

  async history(id: string, options: HistoryOptions = {}): Promise<readonly CheckpointHistoryEntry[]> {
    assertCheckpointId(id);
    const { historyLimit, reader, logs } = this.#deps;
    if (historyLimit === 0 || options.limit === 0) {
      this.#deps.queue.database.assertOpen('history');
      return [];
    }
    return reader.read({
      operation: 'history',
      target: { record: 'history', id },
      read: () => readHistory(logs, id, this.#kind, options),
    });
  }

  async list(options: ListOptions = {}): Promise<readonly CheckpointListEntry[]> {
    this.#deps.leases.watchDelays();
    return this.#deps.lists.list(options, this.#kind);
  }

  async listHeaders(options: ListOptions = {}): Promise<readonly CheckpointHeaderEntry[]> {
    this.#deps.leases.watchDelays();
    return this.#deps.lists.listHeaders(options);
  }

  async acquireLease(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    assertCheckpointId(id);
    return this.#deps.leases.acquire(id, owner, ttlMs);
  }

  async renewLease(id: string, owner: string, ttlMs: number, fence?: number): Promise<boolean> {
    assertCheckpointId(id);
    return this.#deps.leases.renew(id, owner, ttlMs, fence);
  }

  async releaseLease(id: string, owner: string, fence?: number): Promise<void> {
    assertCheckpointId(id);
    await this.#deps.leases.release(id, owner, fence);
  }

  async heldLeases(): Promise<readonly LeaseRecord[]> {
    return this.#deps.leases.held();
  }

  async prune(options: PruneOptions): Promise<PruneResult> {
    return this.#deps.prune(options);
  }

  async close(): Promise<void> {
    await this.#deps.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #append(id: string, next: Checkpoint, storedMark?: LogMark): void {
    // A checkpoint from before there was a status is an unfinished one.
    const status = (next as Partial<Checkpoint>).status ?? 'in-progress';
    this.#deps.logs.append(id, next, status, this.#kind, storedMark);
  }
}
