/** What users open: a Workers KV namespace with checkpoints, approvals and sessions. */
import {
  CONTRACT_VERSION,
  type AgentStore,
  type ApprovalStore,
  type Checkpoint,
  type CheckpointHeaderEntry,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
  type CheckpointStore,
  type DeleteOptions,
  type HistoryOptions,
  type Lease,
  type ListOptions,
  type PruneOptions,
  type PruneResult,
  type SessionStore,
  type StoreClaims,
} from '@lousho/contract';
import type { KVNamespaceLike } from './kv-namespace.ts';
import { resolveKVOptions, type KVStoreOptions } from './kv-options.ts';
import { storeParts, type StoreParts } from './store-parts.ts';

/** So that a `KVStore` and its checkpoint part are one handle. */
const partsOf = new WeakMap<KVCheckpointStore, StoreParts>();

/**
 * The checkpoint part of `KVStore` alone. Claims: best-effort leases, history, `list` where the binding has one, power, eventual.
 * @throws synchronously LOUSHO_CONFIG_INVALID
 */
export class KVCheckpointStore implements CheckpointStore {
  readonly claims: StoreClaims;
  /** Only where the binding has `list`. */
  declare readonly list?: (options?: ListOptions) => Promise<readonly CheckpointListEntry[]>;
  /** Only where the binding has `list`. No get a key, unless a header has more than a kilobyte. */
  declare readonly listHeaders?: (options?: ListOptions) => Promise<readonly CheckpointHeaderEntry[]>;
  /** Only where the binding has `list`. */
  declare readonly prune?: (options: PruneOptions) => Promise<PruneResult>;
  readonly #parts: StoreParts;

  constructor(kv: KVNamespaceLike, options: KVStoreOptions = {}) {
    const parts = storeParts(kv, resolveKVOptions(kv, options));
    this.#parts = parts;
    partsOf.set(this, parts);
    this.claims = Object.freeze({
      ...{ leases: 'best-effort', history: true, list: parts.prune !== undefined },
      ...{ durable: 'power', consistency: 'eventual' },
    } as const);
    if (parts.prune === undefined) return;
    this.list = (listOptions) => parts.checkpoints.list(listOptions);
    this.listHeaders = (listOptions) => parts.checkpoints.listHeaders(listOptions);
    this.prune = parts.prune;
  }

  /** Saves that come together are put together. A key that KV refuses for a second is tried again for half a minute. */
  async save(id: string, checkpoint: Checkpoint): Promise<void> {
    await this.#parts.checkpoints.save(id, checkpoint);
  }

  async load(id: string): Promise<Checkpoint | null> {
    return this.#parts.checkpoints.load(id);
  }

  async delete(id: string, options?: DeleteOptions): Promise<void> {
    await this.#parts.checkpoints.delete(id, options);
  }

  async history(id: string, options?: HistoryOptions): Promise<readonly CheckpointHistoryEntry[]> {
    return this.#parts.checkpoints.history(id, options);
  }

  /** Best effort: takers at two locations may both win for a minute (N9). */
  async acquireLease(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    return this.#parts.checkpoints.acquireLease(id, owner, ttlMs);
  }

  async renewLease(id: string, owner: string, ttlMs: number, fence?: number): Promise<boolean> {
    return this.#parts.checkpoints.renewLease(id, owner, ttlMs, fence);
  }

  async releaseLease(id: string, owner: string, fence?: number): Promise<void> {
    await this.#parts.checkpoints.releaseLease(id, owner, fence);
  }

  /** Refuses once a take-over is visible here (W2): the lease is read before the write, and again behind it. */
  async saveIfLeased(id: string, checkpoint: Checkpoint, owner: string, fence?: number): Promise<boolean> {
    return this.#parts.checkpoints.saveIfLeased(id, checkpoint, { owner, fence });
  }

  /** Waits for what is under way. Twice is fine; later calls reject with LOUSHO_STORE_CLOSED. */
  async close(): Promise<void> {
    await this.#parts.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.close();
  }
}

/**
 * Runs, approvals and sessions in one namespace. `SessionStore.saveIfRevision` and `ApprovalStore.delete` are best effort too. In a
 * Worker open one in each request: a promise of one request cannot be awaited in another.
 * @throws synchronously LOUSHO_CONFIG_INVALID
 */
export class KVStore implements AgentStore {
  readonly contractVersion = CONTRACT_VERSION;
  readonly checkpoints: KVCheckpointStore;
  readonly approvals: ApprovalStore;
  readonly sessions: SessionStore;
  /** Only where the binding has `list`. */
  declare readonly prune?: (options: PruneOptions) => Promise<PruneResult>;

  constructor(kv: KVNamespaceLike, options: KVStoreOptions = {}) {
    this.checkpoints = new KVCheckpointStore(kv, options);
    const parts = partsOf.get(this.checkpoints);
    if (parts === undefined)
      throw new Error('Invariant: a checkpoint store notes its parts when it is made.');
    this.approvals = parts.approvals;
    this.sessions = parts.sessions;
    if (parts.prune !== undefined) this.prune = parts.prune;
  }

  /** Waits for what is under way. Twice is fine; later calls reject with LOUSHO_STORE_CLOSED. */
  async close(): Promise<void> {
    await this.checkpoints.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.checkpoints.close();
  }
}
