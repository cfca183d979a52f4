/** What a store holds of a run, if it is for us to read. */
import { isSDKError, type Checkpoint, type CheckpointStore } from '@lousho/contract';
import { refuseSealed } from './refuse-sealed.ts';

/** @throws LOUSHO_STORE_KEY_UNKNOWN for a run that an encrypted store has sealed, when the store is opened without it */
export async function loadCheckpoint(store: CheckpointStore, id: string): Promise<Checkpoint | null> {
  const stored = (await store.load(id)) ?? null;
  refuseSealed(stored, { id, record: 'checkpoint' });
  return stored;
}

/** The same for whoever removes it, which needs no sound record. */
export async function loadOrDamaged(
  store: CheckpointStore,
  id: string,
): Promise<Checkpoint | 'damaged' | null> {
  try {
    return await loadCheckpoint(store, id);
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT')) return 'damaged';
    throw error;
  }
}
