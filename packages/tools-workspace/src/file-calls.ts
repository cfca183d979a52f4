/** The calls to the file system that this package makes, in one object: a test lets them fail or stand still. */
import { constants, existsSync } from 'node:fs';
import {
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  unlink,
  utimes,
} from 'node:fs/promises';

export interface FileCalls {
  readonly open: typeof open;
  readonly lstat: typeof lstat;
  readonly mkdir: typeof mkdir;
  readonly chmod: typeof chmod;
  readonly readdir: typeof readdir;
  readonly readlink: typeof readlink;
  readonly rename: typeof rename;
  readonly rmdir: typeof rmdir;
  readonly unlink: typeof unlink;
  readonly utimes: typeof utimes;
}

export const nodeFiles: FileCalls = {
  open,
  lstat,
  mkdir,
  chmod,
  readdir,
  readlink,
  rename,
  rmdir,
  unlink,
  utimes,
};

/**
 * Linux opens a name relative to a folder that is open already (`/proc/self/fd/<n>/<name>`): nobody can exchange that folder for a link
 * in between. Elsewhere the folders are compared before and after each step.
 */
export const hasDescriptorPaths = process.platform === 'linux' && existsSync('/proc/self/fd');

// Windows knows neither of the two: there the look before and after the open does the work.
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL } = constants;
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;
/** A named pipe that nobody writes to would hold the open for ever. */
const O_NONBLOCK = constants.O_NONBLOCK ?? 0;

export const flags = {
  folder: O_RDONLY | constants.O_DIRECTORY | O_NOFOLLOW,
  read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  create: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
} as const;
