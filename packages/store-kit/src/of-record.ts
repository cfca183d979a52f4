/** Which errors blame one record: the others are read, listed and copied as ever. */
import { SDKError } from '@lousho/contract';

const OF_RECORD = /^LOUSHO_(?:CHECKPOINT_CORRUPT|STORE_(?:KEY_UNKNOWN|NOT_SEALED|VERSION_UNSUPPORTED))$/;

/** The record cannot be read, and the next one may be. */
export function isOfRecord(error: unknown): error is SDKError {
  return error instanceof SDKError && OF_RECORD.test(error.code);
}
