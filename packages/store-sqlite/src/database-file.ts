/** The file behind the store before SQLite touches it: its path, its folders, and whether it is ours to open. */
import fs from 'node:fs';
import path from 'node:path';
import { ConfigurationError, SDKError } from '@lousho/contract';

export const MEMORY_PATH = ':memory:';

/** `Lous` in ASCII: marks the file as ours (SQLite's application id). */
export const APPLICATION_ID = 0x4c6f7573;

/** What a database says about its owner. */
export interface FileOwner {
  readonly applicationId: number;
  readonly userVersion: number;
  readonly isEmpty: boolean;
}

/** The absolute path, its folders made. A file that is there is only looked at. @throws LOUSHO_CONFIG_INVALID, LOUSHO_STORE_* */
export function prepareFile(given: string): string {
  if (given === MEMORY_PATH) return given;
  if (typeof given !== 'string' || given === '' || given !== given.trim())
    throw invalidPath(String(given), 'the path of a file, without spaces around it');
  const absolute = path.resolve(given);
  const stats = fs.statSync(absolute, { throwIfNoEntry: false });
  if (stats === undefined) makeFolder(path.dirname(absolute));
  else if (!stats.isFile()) throw invalidPath(absolute, 'the path of a file; this is a folder or a device');
  return absolute;
}

/** The header of a database. SQLite takes a file of one byte for an empty one, and would write over it. */
export const SMALLEST_DATABASE_BYTES = 100;

/**
 * What a file is that cannot be a database. Only then may it be read without SQLite: closing a file drops all locks that this process has on
 * it, also those of a connection that uses it.
 */
export function noDatabaseError(absolute: string, cause?: unknown): SDKError {
  const bytes = firstBytes(absolute);
  if (!bytes.equals(MAGIC.subarray(0, bytes.length)))
    return invalidPath(absolute, 'the path of a Lousho database; this file is something else');
  const message = `The SQLite store "${absolute}" could not be opened: the file is cut off.`;
  return new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'open' }, { message, cause });
}

/** @throws LOUSHO_CONFIG_INVALID, LOUSHO_STORE_VERSION_UNSUPPORTED */
export function assertOurs(owner: FileOwner, absolute: string, supported: number): void {
  const isNew = owner.isEmpty && owner.applicationId === 0 && owner.userVersion === 0;
  if (!isNew && owner.applicationId !== APPLICATION_ID)
    throw invalidPath(absolute, 'the path of a Lousho database; this one belongs to another program');
  if (owner.userVersion > supported)
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', { found: owner.userVersion, supported });
}

/** 0 when there is none. */
export function sizeOf(absolute: string): number {
  return fs.statSync(absolute, { throwIfNoEntry: false })?.size ?? 0;
}

/** Tells one file from every other one at the same path; `undefined` when there is none. */
export function fileIdentity(absolute: string): string | undefined {
  const stats = fs.statSync(absolute, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`;
}

/** Asks before every transaction, so without the wide numbers of `fileIdentity`: two files that only they tell apart pass for one. */
export class FileWatch {
  readonly #path: string;
  readonly #device: number;
  readonly #inode: number;

  constructor(path: string) {
    const stats = fs.statSync(path);
    this.#path = path;
    this.#device = stats.dev;
    this.#inode = stats.ino;
  }

  isSameFile(): boolean {
    const stats = fs.statSync(this.#path, noThrow);
    return stats !== undefined && stats.ino === this.#inode && stats.dev === this.#device;
  }
}

const noThrow = { throwIfNoEntry: false } as const;

function invalidPath(got: string, want: string): ConfigurationError {
  const message = `The option "path" must be ${want}; got "${got}".`;
  return new ConfigurationError('LOUSHO_CONFIG_INVALID', { option: 'path', got, want }, { message });
}

/** What every SQLite database begins with. */
const MAGIC = Buffer.from('SQLite format 3\0', 'latin1');

function firstBytes(absolute: string): Buffer {
  const file = fs.openSync(absolute, 'r');
  try {
    const bytes = Buffer.alloc(MAGIC.length);
    return bytes.subarray(0, fs.readSync(file, bytes, 0, bytes.length, 0));
  } finally {
    fs.closeSync(file);
  }
}

/** SQLite makes its file durable in its folder; the entries of new folders above are ours to sync. */
function makeFolder(folder: string): void {
  const first = fs.mkdirSync(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; ; made = path.dirname(made)) {
    syncFolder(path.dirname(made));
    if (made === first || made === path.dirname(made)) return;
  }
}

function syncFolder(folder: string): void {
  // Windows has no handle on a folder to sync; its own journal keeps the entries.
  if (process.platform === 'win32') return;
  const handle = fs.openSync(folder, 'r');
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}
