/** What the errors of SQLite and of its driver mean to those who call the store. */
import { ConfigurationError, SDKError, isSDKError } from '@lousho/contract';

/** Another connection is in the way: the same statement works a little later. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(?:BUSY|LOCKED|PROTOCOL)/.test(codeOf(error));
}

/** The file does not hold what SQLite once wrote there. */
export function isDamage(error: unknown): boolean {
  return /^SQLITE_(?:CORRUPT|NOTADB|IOERR_CORRUPTFS|IOERR_SHORT_READ)/.test(codeOf(error));
}

export function isNoDatabase(error: unknown): boolean {
  return codeOf(error) === 'SQLITE_NOTADB';
}

/** A read-only connection cannot see the database as it is. */
export function needsWriter(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_READONLY');
}

export function isSqliteError(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_');
}

export function readError(error: unknown, operation: string, id?: string): SDKError {
  if (error instanceof SDKError) return error;
  return new SDKError('LOUSHO_STORE_READ_FAILED', detailsOf(operation, id), { cause: error });
}

export function writeError(error: unknown, operation: string, id?: string): SDKError {
  if (error instanceof SDKError) return error;
  return new SDKError('LOUSHO_STORE_WRITE_FAILED', detailsOf(operation, id), { cause: error });
}

export function closedError(operation: string): SDKError {
  return new SDKError('LOUSHO_STORE_CLOSED', { operation });
}

export type DamagedRecord = 'checkpoint' | 'history' | 'session' | 'approval';

/** What reading a stored record threw, as damage of that record. Other errors of ours, such as a newer version, stay what they are. */
export function damageError(error: unknown, record: DamagedRecord, id: string): SDKError {
  if (error instanceof SDKError && !isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT')) return error;
  if (isSDKError(error, 'LOUSHO_CHECKPOINT_CORRUPT') && error.details.record === record) return error;
  return new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record }, { cause: error });
}

/** Why the file could not be opened. */
export function openError(error: unknown, path: string): SDKError {
  if (error instanceof SDKError) return error;
  if (isMissingBinding(error)) return missingBinding(error);
  // `SQLITE_ERROR`: our statements do not fit the tables, so somebody changed these.
  const isUnreadable = isDamage(error) || codeOf(error) === 'SQLITE_ERROR';
  const what = isUnreadable ? 'LOUSHO_STORE_READ_FAILED' : 'LOUSHO_STORE_WRITE_FAILED';
  const reason = error instanceof Error ? error.message : String(error);
  return new SDKError(
    what,
    { operation: 'open' },
    {
      message: `The SQLite store "${path}" could not be opened: ${reason}.`,
      cause: error,
    },
  );
}

/** better-sqlite3 is compiled when it is installed; package managers that block install scripts leave it without its binary. */
function isMissingBinding(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return code === 'ERR_DLOPEN_FAILED' || /bindings file|NODE_MODULE_VERSION/i.test(String(message));
}

function missingBinding(cause: unknown): SDKError {
  return new ConfigurationError(
    'LOUSHO_CONFIG_INVALID',
    { option: 'better-sqlite3', want: 'installed with its native binary, for this version of Node' },
    {
      message:
        'The native binary of better-sqlite3 could not be loaded. Build it with `npm rebuild better-sqlite3`; ' +
        'where npm blocks install scripts, allow it first with `npm install-scripts approve better-sqlite3`.',
      cause,
    },
  );
}

function detailsOf(operation: string, id: string | undefined): { operation: string; id?: string } {
  return id === undefined ? { operation } : { operation, id };
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
}
