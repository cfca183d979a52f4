/** The checkpoint part: each method checks its id, and leaves the work to the file that owns it. */
import {
  assertCheckpointId,
  frozenCopy,
  type Checkpoint,
  type CheckpointHeaderEntry,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
  type DeleteOptions,
  type HistoryOptions,
  type Lease,
  type ListOptions,
} from '@lousho/contract';
import type { CheckpointWrites } from './checkpoint-writes.ts';
import type { KVHistory } from './kv-history.ts';
import type { KVLeases } from './kv-leases.ts';
import type { KVLists } from './kv-lists.ts';
import type { LastSaves } from './last-saves.ts';
import type { Operations } from './operations.ts';
import type { Holder, RunQueue } from './run-queue.ts';
import type { TranscriptRecords } from './transcript-records.ts';

export interface CheckpointsDeps {
  readonly operations: Operations;
  readonly records: TranscriptRecords<Checkpoint>;
  readonly queue: RunQueue;
  readonly writes: CheckpointWrites;
  readonly history: KVHistory;
  readonly leases: KVLeases;
  readonly lastSaves: LastSaves;
  readonly lists: KVLists;
}

export class KVCheckpoints {
  readonly #deps: CheckpointsDeps;

  constructor(deps: CheckpointsDeps) {
    this.#deps = deps;
  }

  save(id: string, checkpoint: Checkpoint): Promise<boolean> {
    return this.#save('save', id, checkpoint, undefined);
  }

  saveIfLeased(id: string, checkpoint: Checkpoint, holder: Holder): Promise<boolean> {
    return this.#save('saveIfLeased', id, checkpoint, holder);
  }

  load(id: string): Promise<Checkpoint | null> {
    return this.#read('load', id, async () => {
      const loaded = await this.#deps.records.load(id);
      if (loaded === undefined) return null;
      const { value, number } = loaded;
      this.#deps.lastSaves.assertNewest(id, value.runId, number);
      return value;
    });
  }

  delete(id: string, { keepHistory = false }: DeleteOptions = {}): Promise<void> {
    const { queue, writes } = this.#deps;
    return this.#write('delete', id, () => queue.task(id, () => writes.remove(id, keepHistory)));
  }

  history(id: string, { limit = Infinity }: HistoryOptions = {}): Promise<CheckpointHistoryEntry[]> {
    return this.#read('history', id, () => this.#deps.history.read(id, limit));
  }

  list(options: ListOptions = {}): Promise<CheckpointListEntry[]> {
    return this.#deps.operations.perform({ name: 'list', kind: 'read' }, () =>
      this.#deps.lists.list(options),
    );
  }

  listHeaders(options: ListOptions = {}): Promise<CheckpointHeaderEntry[]> {
    return this.#deps.operations.perform({ name: 'listHeaders', kind: 'read' }, () =>
      this.#deps.lists.headers(options),
    );
  }

  acquireLease(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    return this.#write('acquireLease', id, () => this.#deps.leases.acquire(id, owner, ttlMs));
  }

  renewLease(id: string, owner: string, ttlMs: number, fence?: number): Promise<boolean> {
    return this.#write('renewLease', id, () => this.#deps.leases.renew(id, owner, ttlMs, fence));
  }

  releaseLease(id: string, owner: string, fence?: number): Promise<void> {
    return this.#write('releaseLease', id, () => this.#deps.leases.release(id, owner, fence));
  }

  #save(name: string, id: string, checkpoint: Checkpoint, holder: Holder | undefined): Promise<boolean> {
    return this.#write(name, id, () => {
      // Copied unless it is frozen, before anything is awaited.
      const save = { checkpoint: frozenCopy(checkpoint), holder };
      return this.#deps.queue.save(id, save);
    });
  }

  #read<Value>(name: string, id: string, task: () => Promise<Value>): Promise<Value> {
    return this.#perform({ name, id, kind: 'read' }, task);
  }

  #write<Value>(name: string, id: string, task: () => Promise<Value>): Promise<Value> {
    return this.#perform({ name, id, kind: 'write' }, task);
  }

  #perform<Value>(
    operation: { readonly name: string; readonly id: string; readonly kind: 'read' | 'write' },
    task: () => Promise<Value>,
  ): Promise<Value> {
    return this.#deps.operations.perform(operation, async () => {
      assertCheckpointId(operation.id);
      return task();
    });
  }
}
