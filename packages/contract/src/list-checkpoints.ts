/** What stores with `list` and `history` share: the filter, the order, and the reading of an optional history. */
import type { CheckpointHistoryEntry, CheckpointListEntry, CheckpointStatus } from './checkpoint.ts';
import type { CheckpointStore, HistoryOptions, ListOptions } from './store.ts';

/** `undefined` for a store that keeps no history. */
export async function getCheckpointHistory(
  store: CheckpointStore,
  sessionId: string,
  options?: HistoryOptions,
): Promise<readonly CheckpointHistoryEntry[] | undefined> {
  return store.history?.(sessionId, options);
}

/** Filters and orders for a custom `list`: oldest save first, then by id; a missing status counts as `in-progress`. */
export function listCheckpoints(
  entries: Iterable<CheckpointListEntry>,
  options: ListOptions = {},
): CheckpointListEntry[] {
  return [...entries]
    .map((entry) => ({ ...entry, status: (entry.status as CheckpointStatus | undefined) ?? 'in-progress' }))
    .filter((entry) => matchesStatus(entry.status, options))
    .sort((a, b) => compareSaves(savedAtOf(a), a.sessionId, savedAtOf(b), b.sessionId));
}

export function matchesStatus(status: CheckpointStatus, { status: wanted }: ListOptions): boolean {
  if (wanted === undefined) return true;
  return typeof wanted === 'string' ? status === wanted : wanted.includes(status);
}

/** Oldest save first; a record without a readable time comes last; equal times by id. */
export function compareSaves(
  savedAtA: string | undefined,
  idA: string,
  savedAtB: string | undefined,
  idB: string,
): number {
  if (savedAtA !== savedAtB) {
    if (savedAtA === undefined) return 1;
    if (savedAtB === undefined) return -1;
    return savedAtA < savedAtB ? -1 : 1;
  }
  return idA < idB ? -1 : idA > idB ? 1 : 0;
}

function savedAtOf(entry: CheckpointListEntry): string | undefined {
  return entry.checkpoint?.savedAt;
}
