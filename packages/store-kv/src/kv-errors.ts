/** What the errors of KV mean to those who call the store. */
import { isSDKError, SDKError } from '@lousho/contract';

/** A call of the namespace that failed; the cause is what it threw. */
export class KVCallError extends Error {
  constructor(
    readonly kind: 'read' | 'write',
    cause: unknown,
  ) {
    super('a call of the KV namespace failed', { cause });
  }
}

/** KV takes one write a second for each key, and refuses the others with 429. */
export function isThrottled(error: unknown): boolean {
  const cause = error instanceof KVCallError ? error.cause : error;
  return /\b429\b/.test(messageOf(cause)) && !isOverQuota(cause);
}

/** The account's share of today is used up: a second more does not help. */
function isOverQuota(error: unknown): boolean {
  return /for the day|daily|quota/i.test(messageOf(error));
}

export interface Operation {
  readonly name: string;
  readonly id?: string | undefined;
  readonly kind: 'read' | 'write';
}

/** The error that callers see: one of ours as it is, any other as the failure of this operation. */
export function operationError(error: unknown, operation: Operation): SDKError {
  if (error instanceof SDKError) return error;
  const { name, id } = operation;
  const { kind, cause } = error instanceof KVCallError ? error : { kind: operation.kind, cause: error };
  const code = kind === 'read' ? 'LOUSHO_STORE_READ_FAILED' : 'LOUSHO_STORE_WRITE_FAILED';
  const message = isOverQuota(cause)
    ? `The daily limit of Workers KV is used up (${name}${id === undefined ? '' : ` of "${id}"`}); it is renewed at 00:00 UTC.`
    : undefined;
  return new SDKError(code, { operation: name, ...(id === undefined ? {} : { id }) }, { cause, message });
}

export type DamagedRecord = 'checkpoint' | 'history' | 'session' | 'approval';

/** @param what names the value that is damaged, where it is not the record's own */
export function damageError(cause: unknown, record: DamagedRecord, id: string, what?: string): SDKError {
  const message = what === undefined ? undefined : `The stored ${record} "${id}" is damaged: ${what}.`;
  return new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record }, { cause, message });
}

export function isDamage(error: unknown): boolean {
  return isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT');
}

function messageOf(error: unknown): string {
  const { message, status } = (error ?? {}) as { readonly message?: unknown; readonly status?: unknown };
  return `${typeof message === 'string' ? message : String(error)} ${typeof status === 'number' ? status : ''}`;
}
