/** Copies one run: its saves in their order, under the leases of both stores, read back and compared. */
import {
  SDKError,
  storedError,
  type Checkpoint,
  type CheckpointStore,
  type Clock,
  type SessionStore,
  type StoredError,
} from '@lousho/contract';
import { conversationOf, fitsConversation } from './fits-conversation.ts';
import { countCopied, isCopied } from './missing-saves.ts';
import { readBack } from './read-back.ts';
import { readRecord } from './read-record.ts';
import { checkpointComparison, type SameCheckpoint } from './same-record.ts';
import { savesOf } from './saves-of.ts';

/** Why a record was left alone. What belongs to a run that was left, its sub-agents and approvals, has the reason of the run. */
export type LeftReason =
  /** Somebody holds its lease in the source, or a turn of its conversation. */
  | 'executing'
  /** Somebody holds its lease in the target, or deleted it there while it was being copied. */
  | 'executing-in-target'
  /** The target has a record of this id with another content, or has gone on with its conversation. */
  | 'differs'
  /** It was saved, deleted or taken over in the source while it was being copied. */
  | 'changed'
  /** It cannot be read from the source: `error` says why. */
  | 'unreadable'
  /** The target has a record of this id that cannot be read. */
  | 'unreadable-in-target'
  /** It is too large for the target. */
  | 'refused';

export type CopyOutcome =
  | { readonly kind: 'copied'; readonly saves: number }
  | { readonly kind: 'equal' }
  /** Deleted since the list was made. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'left'; readonly reason: LeftReason; readonly error?: StoredError };

export interface CopyRunDeps {
  readonly from: CheckpointStore;
  readonly to: CheckpointStore;
  /** Of the target. */
  readonly conversations: SessionStore | undefined;
  readonly owner: string;
  readonly clock: Clock;
}

/** Long enough for any save, short enough that a copy that dies blocks a run for a minute or two. */
const LEASE_MS = 60_000;
/** Leases are renewed in between. */
const SAVES_A_RENEWAL = 20;

export async function copyRun(id: string, isFinished: boolean, deps: CopyRunDeps): Promise<CopyOutcome> {
  const same = checkpointComparison();
  // Nobody executes what is finished; where it was copied before, nothing is written, not even a lease.
  if (isFinished && (await isThere(id, deps, same))) return { kind: 'equal' };
  const source = await takeLease(deps.from, id, deps.owner);
  if (source === undefined) return left('executing');
  try {
    const target = await takeLease(deps.to, id, deps.owner);
    if (target === undefined) return left('executing-in-target');
    try {
      return await copyLeased(id, deps, { source, target }, same);
    } finally {
      await target.release();
    }
  } finally {
    await source.release();
  }
}

async function isThere(id: string, { from, to }: CopyRunDeps, same: SameCheckpoint): Promise<boolean> {
  const [source, target] = [await savesOf(from, id), await savesOf(to, id)];
  return (
    Array.isArray(source) &&
    Array.isArray(target) &&
    source.length > 0 &&
    target.length > 0 &&
    missingSaves(source, target, to, same)?.length === 0
  );
}

async function copyLeased(
  id: string,
  { from, to, conversations, clock }: CopyRunDeps,
  leases: { readonly source: CopyLease; readonly target: CopyLease },
  same: SameCheckpoint,
): Promise<CopyOutcome> {
  const source = await savesOf(from, id);
  if ('error' in source) return left('unreadable', source.error);
  if (source.length === 0) return { kind: 'gone' };
  const target = await savesOf(to, id);
  if ('error' in target) return left('unreadable-in-target', target.error);
  const missing = missingSaves(source, target, to, same);
  if (missing === undefined) return left('differs');
  if (missing.length === 0) return { kind: 'equal' };
  const misfit = target.length > 0 ? undefined : await misfitTurn(id, source, conversations);
  if (misfit !== undefined) return misfit;
  // 1. The saves, oldest first. Crash here: the target holds an earlier state of the run; the next copy finds the place and goes on.
  for (const [index, save] of missing.entries()) {
    if (index % SAVES_A_RENEWAL === SAVES_A_RENEWAL - 1) {
      if (!(await leases.source.renew())) return left('changed');
      if (!(await leases.target.renew())) return left('executing-in-target');
    }
    const outcome = await writeSave(id, save, to, leases.target);
    if (outcome !== undefined) return outcome;
  }
  // 2. Read back. Crash here: the next copy compares it.
  await readBack(to.claims, clock, id, async () => holdsSaves(await savesOf(to, id), source, same));
  // Without leases nobody kept others from saving meanwhile.
  const now = await from.load(id);
  return now && same(now, source.at(-1) as Checkpoint)
    ? { kind: 'copied', saves: missing.length }
    : left('changed');
}

/** The target's conversation is past this turn, is another one, or cannot be read. */
async function misfitTurn(
  id: string,
  source: readonly Checkpoint[],
  conversations: SessionStore | undefined,
): Promise<CopyOutcome | undefined> {
  const conversation = conversationOf(id);
  if (conversation === undefined || conversations === undefined) return undefined;
  const found = await readRecord(() => conversations.load(conversation.id));
  if ('error' in found) return left('unreadable-in-target', found.error);
  const isFit =
    !found.record || fitsConversation(conversation.turn, source.at(-1) as Checkpoint, found.record);
  return isFit ? undefined : left('differs');
}

async function writeSave(
  id: string,
  save: Checkpoint,
  to: CheckpointStore,
  lease: CopyLease,
): Promise<CopyOutcome | undefined> {
  try {
    if (await lease.save(save)) return undefined;
    return left('executing-in-target');
  } catch (error) {
    if (error instanceof SDKError && error.code === 'LOUSHO_CHECKPOINT_TOO_LARGE')
      return left('refused', storedError(error));
    throw error;
  }
}

/** `undefined`: the target holds something else. A store without history needs the newest alone. */
function missingSaves(
  source: readonly Checkpoint[],
  target: readonly Checkpoint[],
  to: CheckpointStore,
  same: SameCheckpoint,
): readonly Checkpoint[] | undefined {
  const copied = countCopied(source, target, same);
  if (copied === undefined) return undefined;
  const missing = source.slice(copied);
  return to.history === undefined ? missing.slice(-1) : missing;
}

function holdsSaves(
  target: readonly Checkpoint[] | { readonly error: StoredError },
  source: readonly Checkpoint[],
  same: SameCheckpoint,
): boolean {
  return !('error' in target) && target.length > 0 && isCopied(source, target, same);
}

export function left(reason: LeftReason, error?: StoredError): CopyOutcome {
  return { kind: 'left', reason, ...(error && { error }) };
}

interface CopyLease {
  save(checkpoint: Checkpoint): Promise<boolean>;
  renew(): Promise<boolean>;
  release(): Promise<void>;
}

/** `undefined`: somebody else holds it. A store without leases gives one that holds nobody off. */
async function takeLease(store: CheckpointStore, id: string, owner: string): Promise<CopyLease | undefined> {
  const lease = (await store.acquireLease?.(id, owner, LEASE_MS)) ?? true;
  if (lease === false) return undefined;
  const fence = typeof lease === 'object' ? lease.fence : undefined;
  return {
    async save(checkpoint) {
      if (store.acquireLease !== undefined && store.saveIfLeased !== undefined)
        return store.saveIfLeased(id, checkpoint, owner, fence);
      await store.save(id, checkpoint);
      return true;
    },
    renew: async () => (await store.renewLease?.(id, owner, LEASE_MS, fence)) ?? true,
    release: async () => store.releaseLease?.(id, owner, fence),
  };
}
