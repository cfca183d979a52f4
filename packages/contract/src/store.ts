/** What a store of checkpoints promises, method by method, and what an agent takes as its store. */
import type { ApprovalStore } from './approval.ts';
import type {
  Checkpoint,
  CheckpointHeaderEntry,
  CheckpointHistoryEntry,
  CheckpointListEntry,
  CheckpointStatus,
} from './checkpoint.ts';
import type { Ports } from './ports.ts';
import type { SessionStore } from './session.ts';

/** Contract of the store interfaces below. `createAgent` refuses a store with a newer one. */
export const CONTRACT_VERSION = 1;

export interface DeleteOptions {
  /** Deletes the checkpoint only. Default: its history goes too. */
  readonly keepHistory?: boolean | undefined;
}
export interface HistoryOptions {
  /** The newest so many. `0` gives `[]`. Default: all kept. */
  readonly limit?: number | undefined;
}
export interface ListOptions {
  readonly status?: CheckpointStatus | readonly CheckpointStatus[] | undefined;
}
export interface PruneOptions {
  /** Age of the last save. */
  readonly olderThanMs: number;
  /** Default `['finished']`. */
  readonly statuses?: readonly CheckpointStatus[] | undefined;
  /** Counts, removes nothing. */
  readonly dryRun?: boolean | undefined;
}
export interface PruneResult {
  readonly checkpoints: number;
  readonly historyEntries: number;
  readonly approvals: number;
  readonly sessions: number;
}
/** What a store guarantees. The conformance suite checks that claims and methods agree. */
export interface StoreClaims {
  /** `best-effort`: two takers that do not see each other's writes yet may both win. */
  readonly leases: 'atomic' | 'best-effort' | 'none';
  readonly history: boolean;
  readonly list: boolean;
  /** What an acknowledged save survives: a power cut, the death of the process, or neither. */
  readonly durable: 'power' | 'process' | 'memory';
  readonly consistency: 'strong' | 'eventual';
}
export interface Lease {
  /** Grows with each take-over of this id; never used again, not even after a release or a delete. */
  readonly fence: number;
}
/**
 * Where checkpoints live. `save`, `load` and `delete` are enough; the rest is optional and detected.
 * `id` is a checkpoint id: at most 300 characters of `A-Za-z0-9_.-`, case matters. Values given are frozen; values returned are
 * the caller's own or frozen. A store throws only `LOUSHO_CHECKPOINT_CORRUPT`, `LOUSHO_CHECKPOINT_TOO_LARGE`,
 * `LOUSHO_SESSION_ID_INVALID`, `LOUSHO_STORE_*` and, from its constructor, `LOUSHO_CONFIG_INVALID`.
 */
export interface CheckpointStore {
  /** Absent: `consistency: 'strong'`, and what the methods suggest otherwise. */
  readonly claims?: StoreClaims;
  /** Replaces the checkpoint whole. After it resolves, every handle on the same data loads it. */
  save(id: string, checkpoint: Checkpoint): Promise<void>;
  /** `null` or `undefined` when there is none. Fields the store does not know come back. */
  load(id: string): Promise<Checkpoint | null | undefined>;
  /** Ends a lease on `id` too (its next fence is higher). An unknown id is fine. */
  delete(id: string, options?: DeleteOptions): Promise<void>;

  /** Newest first. An unknown id gives `[]`. */
  history?(id: string, options?: HistoryOptions): Promise<readonly CheckpointHistoryEntry[]>;
  /** The latest checkpoint of every id. One damaged record is one entry with `error`. */
  list?(options?: ListOptions): Promise<readonly CheckpointListEntry[]>;
  /** `list` without reading transcripts. `pending()` and `recover()` use it and fall back to `list`. */
  listHeaders?(options?: ListOptions): Promise<readonly CheckpointHeaderEntry[]>;

  /** Takes the lease, or renews the owner's own, unless another owner holds an unexpired one: one atomic step. `true` = taken. */
  acquireLease?(id: string, owner: string, ttlMs: number): Promise<Lease | boolean>;
  /** Renews only a lease that `owner` still holds (expired is fine, taken over is not). `false` = lost. */
  renewLease?(id: string, owner: string, ttlMs: number, fence?: number): Promise<boolean>;
  /** Changes nothing when `owner` does not hold it. */
  releaseLease?(id: string, owner: string, fence?: number): Promise<void>;
  /** Saves only while `owner` (and `fence`) hold the lease: check and write are one atomic step. `false` = nothing written. */
  saveIfLeased?(id: string, checkpoint: Checkpoint, owner: string, fence?: number): Promise<boolean>;

  /** Never removes what an undecided approval or a live lease needs. */
  prune?(options: PruneOptions): Promise<PruneResult>;
  /** Twice is fine. Later calls reject with `LOUSHO_STORE_CLOSED`. */
  close?(): Promise<void>;
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** What `createAgent({ store })` takes. */
export interface AgentStore {
  /** Absent counts as 1. */
  readonly contractVersion?: typeof CONTRACT_VERSION;
  readonly checkpoints?: CheckpointStore;
  readonly approvals?: ApprovalStore;
  readonly sessions?: SessionStore;
  prune?(options: PruneOptions): Promise<PruneResult>;
  close?(): Promise<void>;
  [Symbol.asyncDispose]?(): Promise<void>;
}
/** A checkpoint store with every optional part. */
export interface FullCheckpointStore extends Required<CheckpointStore> {
  load(id: string): Promise<Checkpoint | null>;
  acquireLease(id: string, owner: string, ttlMs: number): Promise<Lease | false>;
}
/** What the bundled stores are. */
export interface FullAgentStore extends Required<AgentStore> {
  readonly checkpoints: FullCheckpointStore;
}
/** Options of every bundled store. */
export interface StoreOptions {
  /** Saves kept per run, default 50; 0 keeps none. @throws synchronously LOUSHO_CONFIG_INVALID when negative or fractional. */
  readonly historyLimit?: number | undefined;
  /** Bytes of history kept per run, default 64 MB; the newest entry always stays. */
  readonly historyMaxBytes?: number | undefined;
  /** Finished runs older than this are pruned as the store is used. Default: kept. */
  readonly retentionMs?: number | undefined;
  readonly ports?: Partial<Ports> | undefined;
}

/** Of stores on a disk. What an acknowledged save survives. `'process'` leaves out the syncs. Default `'power'`. */
export interface DurabilityOptions {
  readonly durability?: 'power' | 'process' | undefined;
}
