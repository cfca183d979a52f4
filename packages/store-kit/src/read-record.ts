/** One record, or why it cannot be read. What only the record is to blame for is a value. */
import { storedError, type StoredError } from '@lousho/contract';
import { isOfRecord } from './of-record.ts';

export async function readRecord<Record>(
  load: () => Promise<Record | null | undefined>,
): Promise<{ readonly record: Record | null | undefined } | { readonly error: StoredError }> {
  try {
    return { record: await load() };
  } catch (error) {
    if (isOfRecord(error)) return { error: storedError(error) };
    throw error;
  }
}
