/** The saves of one run that a store keeps. */
import { storedError, type Checkpoint, type CheckpointStore, type StoredError } from '@lousho/contract';
import { isOfRecord } from './of-record.ts';
import { checkpointComparison } from './same-record.ts';

/** Oldest first; the last is the checkpoint. Empty: there is none. What only the record is to blame for is a value. */
export async function savesOf(
  store: CheckpointStore,
  id: string,
): Promise<readonly Checkpoint[] | { readonly error: StoredError }> {
  try {
    const checkpoint = await store.load(id);
    const entries = (await store.history?.(id)) ?? [];
    const saves = entries.map((entry) => entry.checkpoint).reverse();
    if (!checkpoint) return [];
    const newest = saves.at(-1);
    // A history that keeps no entries, or a save between the two calls.
    return newest !== undefined && checkpointComparison()(newest, checkpoint)
      ? saves
      : [...saves, checkpoint];
  } catch (error) {
    if (isOfRecord(error)) return { error: storedError(error) };
    throw error;
  }
}
