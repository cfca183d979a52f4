/** Files that are there whole or not at all, and stay after a power cut: what the store does with a file system, step by step. */
import path from 'node:path';
import type { Ids } from '@lousho/contract';
import { whenAnswered, type Answer } from './answer.ts';
import { CLAIM_SUFFIX, publishByClaim } from './claimed-name.ts';
import { codeOf, isMissing, isOutOfDescriptors, isTransient } from './file-errors.ts';
import type { FileStat, FileSystem, OpenMode } from './file-system.ts';

const TEMP_PREFIX = '.tmp-';
/** A write takes milliseconds; what is older belongs to a process that died. */
const TEMP_LIFE_MS = 60 * 60_000;
/** Together about 1.3 seconds, as long as scanners hold a file. */
const RETRY_DELAYS_MS = [10, 20, 40, 80, 160, 320, 640];

export type Published =
  | 'made'
  /** Somebody else made it. */
  | 'taken'
  /** The folder, or the file to publish, is not there any more. */
  | 'gone';

export class Disk {
  /** Closes descriptors that nobody uses right now. */
  freeDescriptors: () => Promise<void> = async () => undefined;

  constructor(
    readonly fs: FileSystem,
    /** Whether what is acknowledged must survive a power cut. */
    readonly isSynced: boolean,
    readonly ids: Ids,
  ) {}

  async open(file: string, mode: OpenMode): Promise<number> {
    try {
      return await this.fs.open(file, mode);
    } catch (error) {
      if (!isOutOfDescriptors(error)) throw error;
      await this.freeDescriptors();
      return this.fs.open(file, mode);
    }
  }

  async use<Value>(file: string, mode: OpenMode, task: (fd: number) => Promise<Value>): Promise<Value> {
    const fd = await this.open(file, mode);
    try {
      return await task(fd);
    } finally {
      await this.fs.close(fd);
    }
  }

  /** The same; `undefined` when there is no such file. */
  async useIfThere<Value>(
    file: string,
    mode: OpenMode,
    task: (fd: number) => Promise<Value>,
  ): Promise<Value | undefined> {
    let fd: number;
    try {
      fd = await this.open(file, mode);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
    try {
      return await task(fd);
    } finally {
      await this.fs.close(fd);
    }
  }

  async readIfThere(file: string): Promise<Buffer | undefined> {
    return this.useIfThere(file, 'read', async (fd) => this.readRange(fd, 0, (await this.fs.stat(fd)).size));
  }

  /** What there is of these bytes. */
  async readRange(fd: number, from: number, to: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(Math.max(0, to - from));
    let length = 0;
    while (length < bytes.length) {
      const count = await this.fs.read(fd, bytes.subarray(length), from + length);
      if (count === 0) break;
      length += count;
    }
    return bytes.subarray(0, length);
  }

  /** `progress` tells how far it came when it fails. `undefined`: it is written already. */
  writeAll(fd: number, bytes: Uint8Array, progress = { written: 0 }): Promise<void> | undefined {
    while (progress.written < bytes.byteLength) {
      const count = this.fs.write(fd, bytes.subarray(progress.written), progress.written);
      if (count instanceof Promise) return this.#writeRest(fd, bytes, progress, count);
      progress.written += count;
    }
    return undefined;
  }

  async #writeRest(
    fd: number,
    bytes: Uint8Array,
    progress: { written: number },
    writing: Promise<number>,
  ): Promise<void> {
    progress.written += await writing;
    await this.writeAll(fd, bytes, progress);
  }

  /** A new file that nobody knows yet, in the folder where it will get its name. */
  async writeTemp(folder: string, bytes: Uint8Array, { sync }: { readonly sync: boolean }): Promise<string> {
    const temp = this.tempName(folder);
    await this.writeNew(temp, bytes, { sync });
    return temp;
  }

  async writeNew(file: string, bytes: Uint8Array, { sync }: { readonly sync: boolean }): Promise<void> {
    const fd = await this.open(file, 'new');
    try {
      await this.writeAll(fd, bytes);
      if (sync && this.isSynced) await this.fs.sync(fd);
    } catch (error) {
      await this.fs.close(fd);
      await this.removeQuietly(file);
      throw error;
    }
    await this.fs.close(fd);
  }

  tempName(folder: string): string {
    return path.join(folder, `${TEMP_PREFIX}${this.ids.random()}`);
  }

  /** Gives the file its name unless the name is taken. The temporary name is gone afterwards. */
  async publish(temp: string, target: string): Promise<Published> {
    try {
      await this.fs.link(temp, target);
    } catch (error) {
      if (!isWithoutLinks(error)) {
        await this.removeQuietly(temp);
        if (codeOf(error) === 'EEXIST') return 'taken';
        if (isMissing(error)) return 'gone';
        throw error;
      }
      return publishByClaim(this, temp, target);
    }
    await this.removeQuietly(temp);
    return 'made';
  }

  /** Gives a whole new folder its name unless the name is taken. */
  async publishFolder(temp: string, target: string): Promise<Published> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await this.fs.rename(temp, target);
        return 'made';
      } catch (error) {
        if (['EEXIST', 'ENOTEMPTY'].includes(codeOf(error))) return 'taken';
        if (isMissing(error)) return 'gone';
        if (!isTransient(error)) throw error;
        // Windows says so also where a folder is in the way.
        const inTheWay = await this.listIfThere(target);
        if (inTheWay !== undefined && inTheWay.length > 0) return 'taken';
        if (inTheWay !== undefined) await this.removeFolder(target);
        await this.#pauseBeforeRetry(attempt, error);
      }
    }
  }

  /** The file takes the place of the one that had the name. */
  async replace(temp: string, target: string): Promise<void> {
    try {
      await this.#retrying(() => this.fs.rename(temp, target));
    } catch (error) {
      await this.removeQuietly(temp);
      throw error;
    }
  }

  /** `false` when it was not there: of several callers one gets `true`. */
  async remove(file: string): Promise<boolean> {
    try {
      await this.#retrying(() => this.fs.unlink(file));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** For what is only in the way: the failure that led here is the one to report. */
  async removeQuietly(file: string): Promise<void> {
    try {
      await this.fs.unlink(file);
    } catch {
      // Left over then. `removeOldTemps` takes it away later.
      return undefined;
    }
  }

  /** Only when it is empty. */
  async removeFolder(folder: string): Promise<boolean> {
    try {
      await this.#retrying(() => this.fs.removeFolder(folder));
      return true;
    } catch (error) {
      if (isMissing(error) || ['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) return false;
      throw error;
    }
  }

  async listIfThere(folder: string): Promise<string[] | undefined> {
    try {
      return await this.fs.list(folder);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  statIfThere(file: string): Answer<FileStat | undefined> {
    return whenAnswered(() => this.fs.stat(file), asItIs, undefinedIfMissing);
  }

  /** Makes the folder and those above it; their entries survive a power cut. */
  async makeFolders(folder: string): Promise<void> {
    const first = await this.fs.makeFolders(folder);
    if (first === undefined) return;
    for (let made = path.resolve(folder); ; made = path.dirname(made)) {
      await this.syncFolder(path.dirname(made));
      if (made === path.resolve(first) || made === path.dirname(made)) return;
    }
  }

  /** Names that were made or removed in it survive a power cut from now on. */
  async syncFolder(folder: string): Promise<void> {
    if (!this.isSynced) return;
    let fd: number;
    try {
      fd = await this.open(folder, 'read');
    } catch (error) {
      // Windows opens no folder; its own journal keeps the names. And one that was removed has none.
      if (['EISDIR', 'EPERM'].includes(codeOf(error)) || isMissing(error)) return;
      throw error;
    }
    try {
      await this.fs.sync(fd);
    } catch (error) {
      if (!['EINVAL', 'EISDIR', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(codeOf(error))) throw error;
    } finally {
      await this.fs.close(fd);
    }
  }

  async syncFile(file: string): Promise<void> {
    if (this.isSynced) await this.use(file, 'append', async (fd) => this.fs.syncData(fd));
  }

  /** Takes away what processes that died in the middle of a write have left in the folder. */
  async removeOldTemps(folder: string): Promise<void> {
    const names = (await this.listIfThere(folder)) ?? [];
    for (const temp of names.filter(isTemp).map((name) => path.join(folder, name))) {
      const stat = await this.statIfThere(temp);
      if (stat === undefined || stat.ageMs < TEMP_LIFE_MS) continue;
      const inside = await this.#listIfFolder(temp);
      for (const name of inside ?? []) await this.removeQuietly(path.join(temp, name));
      if (inside === undefined) await this.removeQuietly(temp);
      else await this.removeFolder(temp);
    }
  }

  async #listIfFolder(name: string): Promise<string[] | undefined> {
    try {
      return await this.fs.list(name);
    } catch (error) {
      if (codeOf(error) === 'ENOTDIR' || isMissing(error)) return undefined;
      throw error;
    }
  }

  async #retrying(task: () => Promise<void>): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await task();
      } catch (error) {
        if (!isTransient(error)) throw error;
        await this.#pauseBeforeRetry(attempt, error);
      }
    }
  }

  async #pauseBeforeRetry(attempt: number, error: unknown): Promise<void> {
    const delayMs = RETRY_DELAYS_MS[attempt];
    if (delayMs === undefined) throw error;
    await this.fs.pause(delayMs);
  }
}

function asItIs(stat: FileStat): FileStat | undefined {
  return stat;
}

function undefinedIfMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined;
  throw error;
}

/** A file on its way to its name; no id begins with a dot. */
export function isTemp(name: string): boolean {
  return name.startsWith(TEMP_PREFIX) || name.endsWith(CLAIM_SUFFIX);
}

/** What `link` says where the file system has none. */
function isWithoutLinks(error: unknown): boolean {
  return ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(codeOf(error));
}
