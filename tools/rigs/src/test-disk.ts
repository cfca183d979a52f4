/** File systems of a test's own, gone with it: in a file behind a loop device, so that its power can be cut, or in memory. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { run, runQuietly } from './fault-tools.ts';

export type LoopKind = 'ext4' | 'xfs' | 'ntfs';

interface LoopFileSystem {
  /** The least that its mkfs accepts. */
  readonly sizeMb: number;
  readonly make: (image: string) => void;
  readonly mount: (image: string, folder: string) => void;
}

const fileSystems: { readonly [Kind in LoopKind]: LoopFileSystem } = {
  ext4: {
    sizeMb: 64,
    make: (image) => run('mkfs.ext4', ['-q', '-F', image]),
    mount: (image, folder) => run('mount', ['-o', 'loop', image, folder]),
  },
  xfs: {
    sizeMb: 320,
    make: (image) => run('mkfs.xfs', ['-q', '-f', image]),
    mount: (image, folder) => run('mount', ['-o', 'loop', image, folder]),
  },
  // Names that differ in case alone are one name.
  ntfs: {
    sizeMb: 32,
    make: (image) => run('mkfs.ntfs', ['-q', '-F', image]),
    mount: (image, folder) => run('lowntfs-3g', ['-o', 'ignore_case', image, folder]),
  },
};

export class LoopDisk {
  readonly folder: string;
  readonly #image: string;
  readonly #kind: LoopKind;

  /** Inside a test. */
  constructor(kind: LoopKind) {
    const { sizeMb, make } = fileSystems[kind];
    const base = fs.mkdtempSync(path.join(os.tmpdir(), `lousho-${kind}-`));
    this.#kind = kind;
    this.#image = path.join(base, 'image');
    this.folder = path.join(base, 'disk');
    fs.mkdirSync(this.folder);
    fs.closeSync(fs.openSync(this.#image, 'w'));
    fs.truncateSync(this.#image, sizeMb * 1024 * 1024);
    onTestFinished(() => {
      // Lazily: a process that is being killed may still have a file open.
      runQuietly('umount', ['-l', this.folder]);
      fs.rmSync(base, { recursive: true, force: true });
    });
    make(this.#image);
    this.#mount();
  }

  /** What is not on the device from now on never gets there: not what is in memory, not what is in the log of the file system. */
  cutPower(): void {
    run('xfs_io', ['-x', '-c', 'shutdown', this.folder]);
  }

  /** After a cut, when nobody has a file open any more. */
  restorePower(): void {
    run('umount', [this.folder]);
    this.#mount();
  }

  #mount(): void {
    fileSystems[this.#kind].mount(this.#image, this.folder);
  }
}

/** A disk in memory. Inside a test. @param options of mount, for example `size=1m` */
export function mountMemoryDisk(options: string): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-memory-'));
  onTestFinished(() => {
    runQuietly('umount', ['-l', folder]);
    fs.rmSync(folder, { recursive: true, force: true });
  });
  run('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]);
  return folder;
}
