/** What a store of checkpoints promises, method by method, and what an agent takes as its store. */
import type { ApprovalStore } from './approval.ts';
import type {
  Checkpoint,
  CheckpointHeaderEntry,
  CheckpointHistoryEntry,
  CheckpointListEntry,
  CheckpointStatus,
} from './checkpoint.ts';
import type { LeaseRecord } from './lease.ts';
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
/**
 * What a store guarantees, so that each promise below is asked of those that make it.
 * Z1: Claims and methods agree: what is claimed is there, and what is not claimed is absent.
 */
export interface StoreClaims {
  /**
   * `best-effort`: two takers that do not see each other's writes yet may both win.
   * W1: With `best-effort` leases, an owner that asks after another's lease became visible is refused.
   * W2: With `best-effort` leases, `saveIfLeased` refuses an owner once the take-over became visible.
   */
  readonly leases: 'atomic' | 'best-effort' | 'none';
  readonly history: boolean;
  readonly list: boolean;
  /** What an acknowledged save survives: a power cut, the death of the process, or neither. */
  readonly durable: 'power' | 'process' | 'memory';
  /** W3: With `eventual` consistency, each write becomes visible to every handle in the end, and writes of one id in their order. */
  readonly consistency: 'strong' | 'eventual';
}
export interface Lease {
  /** Grows with each take-over of this id; never used again, not even after a release or a delete. */
  readonly fence: number;
}
/**
 * Where checkpoints live. `save`, `load` and `delete` are enough; the rest is optional and detected. A handle is one opened store:
 * several on the same storage, in one process or in many, are one store. `docs/contract.md` explains the promises, by their numbers.
 *
 * C1: An id of 1-300 characters of `A-Za-z0-9_.-` without a dot at an end is stored; any other is `LOUSHO_SESSION_ID_INVALID`, and nothing happens.
 * C2: Ids are apart: one that differs in a letter's case, or that another begins with, is another checkpoint with its own history and lease.
 * C3: Only `LOUSHO_CHECKPOINT_CORRUPT`, `LOUSHO_CHECKPOINT_TOO_LARGE`, `LOUSHO_SESSION_ID_INVALID`, `LOUSHO_STORE_*` and, for wrong options, `LOUSHO_CONFIG_INVALID` are thrown.
 */
export interface CheckpointStore {
  /** Absent: `consistency: 'strong'`, and what the methods suggest otherwise. */
  readonly claims?: StoreClaims;
  /**
   * C4: After `save` resolves, every handle on the same storage loads this checkpoint.
   * C5: `save` replaces the checkpoint whole: no field of an earlier one is left.
   * C6: Of saves at one moment one stands, whole; nobody ever loads a mixture.
   * C7: A save that resolved survives what `claims.durable` names.
   * C8: A save that a crash cuts off leaves the state before it or the state after it.
   * C9: A save that rejects leaves the state before it.
   * C10: A checkpoint of 1 MB is stored; one that is too large for the store is `LOUSHO_CHECKPOINT_TOO_LARGE`.
   */
  save(id: string, checkpoint: Checkpoint): Promise<void>;
  /**
   * C11: An id that was never saved, or was deleted, gives `null` or `undefined`.
   * C12: What was saved comes back equal as JSON, with fields that this release does not know, at every level, and with keys like `__proto__`.
   * C13: Nothing that is given or returned is shared while anybody can still change it.
   * C14: A damaged record is `LOUSHO_CHECKPOINT_CORRUPT`, never an absent checkpoint and never an earlier state.
   * C15: A record of an older format comes back in today's shape; one of a newer format is `LOUSHO_STORE_VERSION_UNSUPPORTED` and stays as it was.
   */
  load(id: string): Promise<Checkpoint | null | undefined>;
  /**
   * C16: After `delete` resolves, the id has no checkpoint and no history on any handle; with `keepHistory` its history stays.
   * C17: `delete` works on a damaged record too, and an unknown id is fine.
   * C18: `delete` ends the lease: the holder's next renewal and save are refused.
   */
  delete(id: string, options?: DeleteOptions): Promise<void>;

  /**
   * H1: Each save is one entry of `history`, the newest first, in the order of the saves whatever the clocks said; two saves of one step are two entries.
   * H2: An entry of `history` holds the whole checkpoint as it was saved, and its own `step`, `savedAt` and `status` are that checkpoint's.
   * H3: At most `historyLimit` entries and about `historyMaxBytes` bytes are kept for an id, the newest ones, and the newest always; 0 keeps none.
   * H4: `history` with `limit` gives the newest so many, with 0 none, and for an unknown id `[]`.
   * H5: The newest entry is what `load` gives, unless the checkpoint was deleted.
   * H6: A save after `delete` with `keepHistory` continues the history that was kept.
   */
  history?(id: string, options?: HistoryOptions): Promise<readonly CheckpointHistoryEntry[]>;
  /**
   * Q1: `list` has one entry for each id that has a checkpoint, with its latest checkpoint, and nothing else.
   * Q2: `list` with `status` keeps the entries whose latest status is the one, or one of those, that it names.
   * Q3: `list` puts the oldest save first, equal times in the order of their ids.
   * Q4: A damaged record is one entry of `list` with `error`, `checkpoint: null` and the status `in-progress`; the others are listed as ever.
   * Q5: While others save and delete, each entry of `list` is a state that was saved, and what is deleted meanwhile may be left out.
   */
  list?(options?: ListOptions): Promise<readonly CheckpointListEntry[]>;
  /**
   * `list` without reading transcripts. `pending()` and `recover()` use it and fall back to `list`.
   * Q6: `listHeaders` gives the entries of `list` in the same order, each with the header of its checkpoint.
   */
  listHeaders?(options?: ListOptions): Promise<readonly CheckpointHeaderEntry[]>;

  /**
   * L1: Of owners that ask at one moment for a free lease, exactly one gets it.
   * L2: While an owner holds a lease that has not expired, every other owner gets `false` on every handle, the proof of L5 aside.
   * L3: A lease that is not renewed goes to another owner that asks a whole lease period after its expiry, or later.
   * L4: A store that several machines may use waits that period before it gives a lease away: their clocks may disagree by as much.
   * L5: A lease is given away earlier only with proof: its holder is gone, or it stood still for two periods of the taker's own clock. What is unclear is no proof.
   * L6: The owner of a lease may ask for it again: it is renewed, under the same fence.
   * L7: Each take-over has a higher fence than every lease of the id before it, also after a release, a delete and a restart.
   */
  acquireLease?(id: string, owner: string, ttlMs: number): Promise<Lease | boolean>;
  /**
   * L8: `renewLease` renews a lease that `owner` (and `fence`) still holds, expired or not, and gives `true`.
   * L9: `renewLease` gives `false` and changes nothing once the lease was taken over, released or ended by a delete; it never takes a lease.
   * L10: `renewLease` never moves an expiry back, whatever the clock does.
   */
  renewLease?(id: string, owner: string, ttlMs: number, fence?: number): Promise<boolean>;
  /**
   * L11: A released lease is free at once.
   * L12: `releaseLease` changes nothing when `owner` (and `fence`) does not hold the lease.
   */
  releaseLease?(id: string, owner: string, fence?: number): Promise<void>;
  /**
   * For operators, who ask what executes and where; nothing in a run needs it.
   * L13: `heldLeases` gives the record of each lease that was taken and has not ended, expired ones too, in the order of their ids, and changes nothing.
   */
  heldLeases?(): Promise<readonly LeaseRecord[]>;
  /**
   * F1: `saveIfLeased` saves as `save` does, and gives `true`, while `owner` (and `fence`) holds the lease, expired or not.
   * F2: `saveIfLeased` of any other owner gives `false` and leaves no trace: not in the checkpoint, not in the history, not in the list.
   * F3: `saveIfLeased` checks and writes in one atomic step: once a take-over has resolved, no save of the former holder becomes visible, also none that had begun.
   * F4: The same owner under another fence is another owner to `saveIfLeased`.
   */
  saveIfLeased?(id: string, checkpoint: Checkpoint, owner: string, fence?: number): Promise<boolean>;

  /**
   * Z2: `prune` removes and counts the checkpoints of the given statuses whose last save is older than `olderThanMs`, with their history, those of their sub-agents, and leftovers that no run needs.
   * Z3: `prune` never removes what an undecided approval or a live lease needs.
   * Z4: `prune` with `dryRun` gives the same counts and removes nothing.
   */
  prune?(options: PruneOptions): Promise<PruneResult>;
  /**
   * Z5: After `close` resolves, what was acknowledged is stored, and closing twice is fine.
   * Z6: Every call of a handle after its `close` rejects with `LOUSHO_STORE_CLOSED`; other handles on the storage go on.
   */
  close?(): Promise<void>;
  /** Z7: `Symbol.asyncDispose` is `close`. */
  [Symbol.asyncDispose]?(): Promise<void>;
}

/** What `createAgent({ store })` takes. */
export interface AgentStore {
  /** Z8: `contractVersion` is the number of the contract that the store keeps; absent counts as 1, and a newer one than the agent knows is refused. */
  readonly contractVersion?: typeof CONTRACT_VERSION;
  readonly checkpoints?: CheckpointStore;
  readonly approvals?: ApprovalStore;
  readonly sessions?: SessionStore;
  prune?(options: PruneOptions): Promise<PruneResult>;
  close?(): Promise<void>;
  [Symbol.asyncDispose]?(): Promise<void>;
}
/** A checkpoint store with every optional part; `heldLeases` is there in stores that a command line can reach. */
export interface FullCheckpointStore
  extends Required<Omit<CheckpointStore, 'heldLeases'>>, Pick<CheckpointStore, 'heldLeases'> {
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
