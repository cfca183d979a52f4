/** What the store asks of the operating system, in the thread pool. Tests let any of these calls fail. */
import fs from 'node:fs';
import { platformClock } from '@lousho/contract';
import type { Answer } from './answer.ts';

export interface FileStat {
  readonly size: number;
  /** Tells this file from every other one. */
  readonly identity: string;
  readonly isFolder: boolean;
  /** Since it was last written. */
  readonly ageMs: number;
  /** When it was last written, by the clock of the file system. */
  readonly writtenAtMs: number;
}

/** `read` and `append` want a file that exists; `update` writes where it is told; `new` makes one and appends to it. */
export type OpenMode = 'read' | 'append' | 'update' | 'new';

export interface FileSystem {
  open(path: string, mode: OpenMode): Promise<number>;
  close(fd: number): Promise<void>;
  /** How many bytes there were. */
  read(fd: number, into: Uint8Array, position: number): Promise<number>;
  /** `position` is ignored where the file is open for appending. How many bytes were written. */
  write(fd: number, bytes: Uint8Array, position: number): Answer<number>;
  truncate(fd: number, size: number): Promise<void>;
  /** Content, and what is needed to find it. */
  syncData(fd: number): Answer<void>;
  sync(fd: number): Promise<void>;
  stat(file: number | string): Answer<FileStat>;
  list(folder: string): Promise<string[]>;
  /** With every folder above it. The first one that it had to make. */
  makeFolders(folder: string): Promise<string | undefined>;
  makeFolder(folder: string): Promise<void>;
  link(from: string, to: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  removeFolder(folder: string): Promise<void>;
  pause(ms: number): Promise<void>;
}

const { O_RDONLY, O_RDWR, O_APPEND, O_CREAT, O_EXCL } = fs.constants;
const FLAGS: { readonly [mode in OpenMode]: number } = {
  read: O_RDONLY,
  append: O_RDWR | O_APPEND,
  update: O_RDWR,
  new: O_RDWR | O_APPEND | O_CREAT | O_EXCL,
};
/** Transcripts are nobody else's business. */
const PRIVATE = 0o600;

export const nodeFileSystem: FileSystem = {
  open: (path, mode) => call((done) => fs.open(path, FLAGS[mode], PRIVATE, done)),
  close: (fd) => run((done) => fs.close(fd, done)),
  read: (fd, into, position) => call((done) => fs.read(fd, into, 0, into.byteLength, position, done)),
  write: (fd, bytes, position) => call((done) => fs.write(fd, bytes, 0, bytes.byteLength, position, done)),
  truncate: (fd, size) => run((done) => fs.ftruncate(fd, size, done)),
  syncData: (fd) => run((done) => fs.fdatasync(fd, done)),
  sync: (fd) => run((done) => fs.fsync(fd, done)),
  async stat(file) {
    const stats = await call<fs.Stats>((done) => {
      if (typeof file === 'number') fs.fstat(file, done);
      else fs.stat(file, done);
    });
    return fileStatOf(stats);
  },
  list: (folder) => call((done) => fs.readdir(folder, done)),
  makeFolders: (folder) => call((done) => fs.mkdir(folder, { recursive: true }, done)),
  makeFolder: (folder) => run((done) => fs.mkdir(folder, done)),
  link: (from, to) => run((done) => fs.link(from, to, done)),
  rename: (from, to) => run((done) => fs.rename(from, to, done)),
  unlink: (path) => run((done) => fs.unlink(path, done)),
  removeFolder: (folder) => run((done) => fs.rmdir(folder, done)),
  pause: (ms) =>
    new Promise((resolve) => {
      platformClock.setTimer(resolve, ms);
    }),
};

export function fileStatOf(stats: fs.Stats): FileStat {
  return {
    size: stats.size,
    identity: `${stats.dev}:${stats.ino}`,
    writtenAtMs: stats.mtimeMs,
    isFolder: stats.isDirectory(),
    ageMs: platformClock.wallMs() - stats.mtimeMs,
  };
}

type Done<Value> = (error: NodeJS.ErrnoException | null, value: Value) => void;

/** Callbacks cost half of what `fs.promises` does, and every save waits for some. */
function call<Value>(begin: (done: Done<Value>) => void): Promise<Value> {
  return new Promise((resolve, reject) => {
    begin((error, value) => {
      if (error) reject(error);
      else resolve(value);
    });
  });
}

function run(begin: (done: (error: NodeJS.ErrnoException | null) => void) => void): Promise<void> {
  return call<void>((done) => begin((error) => done(error, undefined)));
}
