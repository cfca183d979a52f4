/** Checkpoints in files: what each method of the contract does with logs and leases. */
import {
  assertCheckpointId,
  frozenCopy,
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
import type { EventLogs, WriteOptions } from './event-logs.ts';
import { readHistory } from './file-history.ts';
import type { FileLeases } from './file-leases.ts';
import type { CheckpointLists } from './file-lists.ts';
import type { Generations } from './generations.ts';
import type { KeyedQueue } from './keyed-queue.ts';
import type { Operations } from './operations.ts';
import type { RunRemoval } from './run-removal.ts';
import type { StoreFormat } from './store-format.ts';

export interface CheckpointsDeps {
  readonly claims: StoreClaims;
  readonly historyLimit: number;
  readonly operations: Operations;
  readonly format: StoreFormat;
  readonly logs: EventLogs;
  readonly generations: Generations;
  readonly leases: FileLeases;
  readonly logQueue: KeyedQueue;
  readonly leaseQueue: KeyedQueue;
  readonly removal: RunRemoval;
  readonly lists: CheckpointLists;
  /** Tells this handle's saves from those of others. */
  readonly writer: string;
  /** Called after each save; `undefined` when nothing is left to do then. */
  readonly afterSave: (() => Promise<void>) | undefined;
  /** Of the whole store. */
  readonly prune: (options: PruneOptions) => Promise<PruneResult>;
  readonly close: () => Promise<void>;
}

export class FileCheckpoints implements FullCheckpointStore {
  readonly claims: StoreClaims;
  readonly #deps: CheckpointsDeps;

  constructor(deps: CheckpointsDeps) {
    this.claims = deps.claims;
    this.#deps = deps;
  }

  async save(id: string, checkpoint: Checkpoint): Promise<void> {
    await this.#write('save', id, checkpoint, () => ({
      limit: async () => Infinity,
      knownLimit: Infinity,
      replaces: () => true,
      writer: this.#deps.writer,
    }));
  }

  saveIfLeased(id: string, checkpoint: Checkpoint, owner: string, fence?: number): Promise<boolean> {
    const { leases } = this.#deps;
    return this.#write('saveIfLeased', id, checkpoint, () => ({
      limit: (folder, listing) => leases.limit(folder, listing, { id, owner, fence }),
      knownLimit: leases.knownLimit(id, owner, fence),
      replaces: () => true,
      writer: undefined,
    }));
  }

  async load(id: string): Promise<Checkpoint | null> {
    const { logs, logQueue } = this.#deps;
    return this.#read('load', id, () => logQueue.run(id, () => logs.load(id)));
  }

  async delete(id: string, { keepHistory = false }: DeleteOptions = {}): Promise<void> {
    await this.#touch('delete', id, () => this.#deps.removal.remove(id, { keepHistory }));
  }

  async history(id: string, options: HistoryOptions = {}): Promise<readonly CheckpointHistoryEntry[]> {
    const { historyLimit, generations, logs } = this.#deps;
    return this.#read('history', id, async () => {
      if (historyLimit === 0 || options.limit === 0) return [];
      return readHistory(logs, generations, id, options);
    });
  }

  async list(options: ListOptions = {}): Promise<readonly CheckpointListEntry[]> {
    this.#deps.leases.watchDelays();
    return this.#read('list', undefined, () => this.#deps.lists.list(options));
  }

  async listHeaders(options: ListOptions = {}): Promise<readonly CheckpointHeaderEntry[]> {
    this.#deps.leases.watchDelays();
    return this.#read('listHeaders', undefined, () => this.#deps.lists.listHeaders(options));
  }

  async acquireLease(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    return this.#touch('acquireLease', id, async () => {
      await this.#deps.format.assertWritable();
      return this.#deps.leases.acquire(id, owner, ttlMs);
    });
  }

  async renewLease(id: string, owner: string, ttlMs: number, fence?: number): Promise<boolean> {
    return this.#touch('renewLease', id, () => this.#deps.leases.renew(id, owner, ttlMs, fence));
  }

  async releaseLease(id: string, owner: string, fence?: number): Promise<void> {
    await this.#touch('releaseLease', id, () => this.#deps.leases.release(id, owner, fence));
  }

  async heldLeases(): Promise<readonly LeaseRecord[]> {
    return this.#read('heldLeases', undefined, () => this.#deps.lists.heldLeases());
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

  async #write(
    name: string,
    id: string,
    checkpoint: Checkpoint,
    options: () => WriteOptions,
  ): Promise<boolean> {
    assertCheckpointId(id);
    const { operations, format, logs, logQueue, leaseQueue, afterSave } = this.#deps;
    return operations.perform({ name, id, kind: 'write' }, async () => {
      // Before anything is waited for: the caller may go on changing what it gave.
      const next = frozenCopy(checkpoint);
      await format.assertWritable();
      const hadEnded = logs.known(id)?.checkpoint?.status === 'finished';
      const isSaved = await logQueue.run(id, () => logs.write(id, next, options()));
      if (!isSaved) return false;
      const hasEnded = !hadEnded && next.status === 'finished';
      if (logs.wantsCompaction(id, { hasEnded }))
        await leaseQueue.run(id, () => logQueue.run(id, () => compactQuietly(logs, id)));
      if (afterSave !== undefined) await afterSave();
      return true;
    });
  }

  async #read<Value>(name: string, id: string | undefined, task: () => Promise<Value>): Promise<Value> {
    if (id !== undefined) assertCheckpointId(id);
    const { operations, format } = this.#deps;
    return operations.perform({ name, id, kind: 'read' }, async () => {
      await format.assertReadable();
      return task();
    });
  }

  /** Writes, where something is stored. */
  async #touch<Value>(name: string, id: string, task: () => Promise<Value>): Promise<Value> {
    assertCheckpointId(id);
    const { operations, format } = this.#deps;
    return operations.perform({ name, id, kind: 'write' }, async () => {
      await format.assertReadable();
      return task();
    });
  }
}

async function compactQuietly(logs: EventLogs, id: string): Promise<void> {
  try {
    await logs.compact(id, 'worth-it');
  } catch {
    // The save is stored. The log is only longer than it need be, until the next one that asks for it.
    return undefined;
  }
}
