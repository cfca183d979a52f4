/** The files of logs in use stay open, a limited number of them: opening costs as much as appending. */
import type { Disk } from './disk.ts';
import { isMissing } from './file-errors.ts';

/** One file, whatever has its name later. */
export interface FileOnDisk {
  readonly path: string;
  readonly identity: string;
}

/** Far below the 256 that macOS gives a process. */
const MAX_OPEN = 64;

interface OpenFile {
  /** `undefined`: the name belongs to another file by now, or to none. */
  readonly fd: Promise<number | undefined>;
  /** The same, once it is open. */
  opened?: number | undefined;
  userCount: number;
}

export class Descriptors {
  /** The one used last is last. */
  readonly #open = new Map<string, OpenFile>();

  constructor(readonly disk: Disk) {
    disk.freeDescriptors = () => this.#closeIdle(0);
  }

  /** Runs the task with the file open for appending. `undefined` when it is not there any more. */
  async use<Value>(file: FileOnDisk, task: (fd: number) => Promise<Value>): Promise<Value | undefined> {
    const key = keyOf(file);
    const entry = this.#open.get(key) ?? { fd: this.#openSame(file), userCount: 0 };
    this.#open.delete(key);
    this.#open.set(key, entry);
    entry.userCount += 1;
    try {
      const fd = entry.opened ?? (entry.opened = await entry.fd);
      return fd === undefined ? undefined : await task(fd);
    } catch (error) {
      // Also when it could not be opened: the next one tries again.
      if (this.#open.get(key) === entry) this.#open.delete(key);
      await this.#closeFailed(entry);
      throw error;
    } finally {
      entry.userCount -= 1;
      if (this.#open.size > MAX_OPEN) await this.#closeIdle(MAX_OPEN);
    }
  }

  /** The file is not needed soon. */
  async close(file: FileOnDisk): Promise<void> {
    await this.#close(keyOf(file));
  }

  async closeAll(): Promise<void> {
    await this.#closeIdle(0);
  }

  async #openSame({ path, identity }: FileOnDisk): Promise<number | undefined> {
    let fd: number;
    try {
      fd = await this.disk.open(path, 'append');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
    if ((await this.disk.fs.stat(fd)).identity === identity) return fd;
    await this.disk.fs.close(fd);
    return undefined;
  }

  async #close(key: string): Promise<void> {
    const entry = this.#open.get(key);
    if (entry === undefined || entry.userCount > 0) return;
    this.#open.delete(key);
    const fd = await entry.fd;
    if (fd !== undefined) await this.disk.fs.close(fd);
  }

  async #closeFailed({ fd }: OpenFile): Promise<void> {
    try {
      const opened = await fd;
      if (opened !== undefined) await this.disk.fs.close(opened);
    } catch {
      // It was never open, or cannot be closed: the failure before is the one to report.
      return undefined;
    }
  }

  async #closeIdle(keptCount: number): Promise<void> {
    for (const [key, { userCount }] of this.#open) {
      if (this.#open.size <= keptCount) return;
      if (userCount === 0) await this.#close(key);
    }
  }
}

function keyOf({ path, identity }: FileOnDisk): string {
  return `${identity}\n${path}`;
}
