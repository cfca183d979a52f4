/** What a store holds of a run, if it is for us to read. */
import { SDKError, isSDKError, type Checkpoint, type CheckpointStore } from '@lousho/contract';

/** `encryptedStore` of `@lousho/store-kit` writes this in front of each value that it seals. */
const SEALED = /^lousho-sealed-\d+\.([A-Za-z0-9_-]{1,64})\./;

/**
 * @throws LOUSHO_STORE_KEY_UNKNOWN for a run that an encrypted store has sealed, when the store is opened without it: its sealed text would
 * go to the model, and the next save would lie over it
 */
export async function loadCheckpoint(store: CheckpointStore, id: string): Promise<Checkpoint | null> {
  const stored = (await store.load(id)) ?? null;
  const { sealed } = (stored ?? {}) as { readonly sealed?: unknown };
  const [, keyId] = (typeof sealed === 'string' && SEALED.exec(sealed)) || [];
  if (keyId !== undefined)
    throw new SDKError('LOUSHO_STORE_KEY_UNKNOWN', { id, record: 'checkpoint', keyId });
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
