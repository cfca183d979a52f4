/** What an encrypted store has sealed, met by an agent whose own store is opened without one: it is not for us to read. */
import { SDKError, type ErrorDetails } from '@lousho/contract';

/** `encryptedStore` of `@lousho/store-kit` writes this in front of each value that it seals. */
const SEALED = /^lousho-sealed-\d+\.([A-Za-z0-9_-]{1,64})\./;

type RecordName = Omit<ErrorDetails['LOUSHO_STORE_KEY_UNKNOWN'], 'keyId'>;

/** @throws LOUSHO_STORE_KEY_UNKNOWN: the sealed text would go to the model or to a person, and the next save would lie over it */
export function refuseSealed(stored: object | null | undefined, of: RecordName): void {
  const keyId = sealingKeyOf(stored);
  if (keyId !== undefined) throw new SDKError('LOUSHO_STORE_KEY_UNKNOWN', { ...of, keyId });
}

/** The id of the key that sealed a run, a conversation or an approval; `undefined` for one in clear. */
export function sealingKeyOf(stored: object | null | undefined): string | undefined {
  const { sealed } = (stored ?? {}) as { readonly sealed?: unknown };
  return typeof sealed === 'string' ? SEALED.exec(sealed)?.[1] : undefined;
}
