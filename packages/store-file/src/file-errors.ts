/** What the errors of the file system mean to those who call the store. */
import { SDKError, isSDKError } from '@lousho/contract';

/** `ENOENT` and its like; empty for what is no error of the operating system. */
export function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
}

/** No such file, or no such folder on the way to it. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT';
}

/** Too many open files, here or on the machine. */
export function isOutOfDescriptors(error: unknown): boolean {
  return codeOf(error) === 'EMFILE' || codeOf(error) === 'ENFILE';
}

/** Windows refuses for a moment what a virus scanner or an indexer looks at. */
export function isTransient(error: unknown): boolean {
  return ['EPERM', 'EACCES', 'EBUSY'].includes(codeOf(error));
}

export interface Operation {
  readonly name: string;
  readonly id?: string | undefined;
  readonly kind: 'read' | 'write';
}

/** The error that callers see: one of ours as it is, any other as the failure of this operation. */
export function operationError(error: unknown, { name, id, kind }: Operation): SDKError {
  if (error instanceof SDKError) return error;
  const code = kind === 'read' ? 'LOUSHO_STORE_READ_FAILED' : 'LOUSHO_STORE_WRITE_FAILED';
  return new SDKError(code, { operation: name, ...(id === undefined ? {} : { id }) }, { cause: error });
}

export function closedError(operation: string): SDKError {
  return new SDKError('LOUSHO_STORE_CLOSED', { operation });
}

export type DamagedRecord = 'checkpoint' | 'history' | 'session' | 'approval';

export function damageError(cause: unknown, record: DamagedRecord, id: string): SDKError {
  return new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record }, { cause });
}

export function isDamage(error: unknown): error is SDKError<'LOUSHO_CHECKPOINT_CORRUPT'> {
  return isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT');
}
