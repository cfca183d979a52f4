/** The file behind the store before SQLite touches it: its path, its folders, and whether it is ours to open. */
import fs from 'node:fs';
import path from 'node:path';
import { ConfigurationError, SDKError } from '@lousho/contract';

export const MEMORY_PATH = ':memory:';

/** `Lous` in ASCII: marks the file as ours (SQLite's application id). */
export const APPLICATION_ID = 0x4c6f7573;

/** What the first page of the file says about its owner. */
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

/**
 * What stands in the file's own first bytes, read without SQLite: opening another program's database with it could already change
 * that. `undefined` for a new file, and while the newest state may still lie in the write-ahead log beside it.
 * @throws LOUSHO_CONFIG_INVALID for what is no database, LOUSHO_STORE_READ_FAILED for one that was cut off
 */
export function readOwner(absolute: string): FileOwner | undefined {
  const bytes = firstBytes(absolute);
  if (bytes.length === 0) return undefined;
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC.subarray(0, bytes.length)))
    throw invalidPath(absolute, 'the path of a Lousho database; this file is something else');
  if (bytes.length < HEADER_LENGTH)
    throw new SDKError(
      'LOUSHO_STORE_READ_FAILED',
      { operation: 'open' },
      {
        message: `The SQLite store "${absolute}" could not be opened: the file is cut off after ${bytes.length} bytes.`,
      },
    );
  if (sizeOf(`${absolute}-wal`) > 0) return undefined;
  return {
    applicationId: bytes.readUInt32BE(68),
    userVersion: bytes.readUInt32BE(60),
    isEmpty: bytes.readUInt16BE(103) === 0,
  };
}

/** @throws LOUSHO_CONFIG_INVALID, LOUSHO_STORE_VERSION_UNSUPPORTED */
export function assertOurs(owner: FileOwner, absolute: string, supported: number): void {
  const isNew = owner.isEmpty && owner.applicationId === 0 && owner.userVersion === 0;
  if (!isNew && owner.applicationId !== APPLICATION_ID)
    throw invalidPath(absolute, 'the path of a Lousho database; this one belongs to another program');
  if (owner.userVersion > supported)
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', { found: owner.userVersion, supported });
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

const MAGIC = Buffer.from('SQLite format 3\0', 'latin1');
/** SQLite's file header, and the head of the schema's page behind it. */
const HEADER_LENGTH = 108;

function firstBytes(absolute: string): Buffer {
  let file: number;
  try {
    file = fs.openSync(absolute, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
  try {
    const bytes = Buffer.alloc(HEADER_LENGTH);
    return bytes.subarray(0, fs.readSync(file, bytes, 0, HEADER_LENGTH, 0));
  } finally {
    fs.closeSync(file);
  }
}

function sizeOf(absolute: string): number {
  return fs.statSync(absolute, { throwIfNoEntry: false })?.size ?? 0;
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
