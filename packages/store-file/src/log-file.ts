/** One log file: what is read of it, and the two things that are ever added, a save and the seal behind the last one. */
import { SDKError, type LogEvent } from '@lousho/contract';
import type { Descriptors, FileOnDisk } from './descriptors.ts';
import type { Disk } from './disk.ts';
import { encodeForcedSeal, encodeSave, encodeSeal, type EncodedLine } from './log-lines.ts';
import { LogScan, type ScannedSave } from './log-scan.ts';

export type Appended =
  | {
      readonly kind: 'saved';
      readonly length: number;
      /** Nobody has added anything behind it. */
      readonly isNewest: boolean;
    }
  /** Another writer was first, the log is sealed, or it is gone: nothing was saved, and the log has to be read again. */
  | { readonly kind: 'refused' };

/** Reads longer than that a Buffer cannot hold on every supported Node. */
const MAX_LOG_LENGTH = 2 ** 31 - 1;

export class LogFile implements FileOnDisk {
  readonly scan = new LogScan();
  /** When what was seen of it was written. */
  #writtenAtMs: number;

  private constructor(
    readonly disk: Disk,
    readonly path: string,
    readonly identity: string,
    writtenAtMs: number,
  ) {
    this.#writtenAtMs = writtenAtMs;
  }

  /** The file as it is now, with its saves. `undefined` when there is none. */
  static async read(
    disk: Disk,
    path: string,
  ): Promise<{ readonly file: LogFile; readonly saves: ScannedSave[] } | undefined> {
    return disk.useIfThere(path, 'read', async (fd) => {
      const { identity, size, writtenAtMs } = await disk.fs.stat(fd);
      const file = new LogFile(disk, path, identity, writtenAtMs);
      return { file, saves: file.scan.feed(await disk.readRange(fd, 0, size)) };
    });
  }

  /** Whether nobody has touched it since: neither a writer of ours nor anybody else. */
  async isUntouched(): Promise<boolean> {
    const stat = await this.disk.statIfThere(this.path);
    return (
      stat?.identity === this.identity &&
      stat.size === this.scan.size &&
      stat.writtenAtMs === this.#writtenAtMs
    );
  }

  /**
   * Adds a save behind the last one that was seen. Resolves with `saved` when it counts, and is then on the disk.
   * @throws LOUSHO_CHECKPOINT_TOO_LARGE, LOUSHO_STORE_REPLACED, the file system's errors; the log is then as it was
   */
  async append(
    descriptors: Descriptors,
    event: LogEvent,
    { id, writer }: { readonly id: string; readonly writer: string | undefined },
  ): Promise<Appended> {
    const { scan } = this;
    if (scan.isSealed) return { kind: 'refused' };
    const lead = scan.hasTornEnd ? 1 : 0;
    const line = encodeSave(event, scan, { id, at: scan.size + lead, writer });
    const length = line.bytes.length + lead;
    if (scan.size + length > MAX_LOG_LENGTH)
      throw new SDKError('LOUSHO_CHECKPOINT_TOO_LARGE', {
        id,
        bytes: scan.size + length,
        maxBytes: MAX_LOG_LENGTH,
      });
    const appended = await descriptors.use(this, async (fd): Promise<Appended> => {
      if (await this.#add(fd, line, lead, { sync: true })) {
        scan.noteSave({ count: scan.count + 1, sum: line.sum, factsAt: line.factsAt }, length);
        return { kind: 'saved', length, isNewest: true };
      }
      // Somebody else wrote since we last looked. The order in the file decides.
      const counts = (await this.#readOn(fd)).some(({ sum }) => sum === line.sum);
      if (!counts) return { kind: 'refused' };
      return { kind: 'saved', length, isNewest: scan.sum === line.sum && !scan.hasTornEnd };
    });
    return appended ?? { kind: 'refused' };
  }

  /** From now on no save is added: what counts is final. Gives the saves that were added since the log was read. */
  async seal(descriptors: Descriptors): Promise<ScannedSave[]> {
    const added: ScannedSave[] = [];
    const { scan } = this;
    while (!scan.isSealed) {
      const isThere = await descriptors.use(this, async (fd) => {
        await this.#add(fd, encodeSeal(scan), 1, { sync: false });
        added.push(...(await this.#readOn(fd)));
        return true;
      });
      if (isThere === undefined) return added;
    }
    return added;
  }

  /** The same for a log that is damaged. */
  async forceSeal(descriptors: Descriptors): Promise<void> {
    if (this.scan.isSealed) return;
    await descriptors.use(this, (fd) => this.#add(fd, encodeForcedSeal(), 1, { sync: false }));
  }

  /** Whether nobody wrote anything between what was seen and this line. `sync`: it is a save, which has to stay and to be found. */
  async #add(
    fd: number,
    line: EncodedLine,
    lead: number,
    { sync }: { readonly sync: boolean },
  ): Promise<boolean> {
    const { fs, isSynced } = this.disk;
    const { size } = this.scan;
    // What was cut off before must not become the beginning of this line.
    const bytes = lead === 0 ? line.bytes : Buffer.concat([Buffer.from('\n'), line.bytes]);
    const progress = { written: 0 };
    try {
      const writing = this.disk.writeAll(fd, bytes, progress);
      if (writing !== undefined) await writing;
      if (!sync) return (await fs.stat(fd)).size === size + bytes.length;
      const syncing = isSynced ? fs.syncData(fd) : undefined;
      if (syncing !== undefined) await syncing;
      const looked = this.disk.statIfThere(this.path);
      const atPath = looked instanceof Promise ? await looked : looked;
      if (atPath?.identity === this.identity) {
        this.#writtenAtMs = atPath.writtenAtMs;
        return atPath.size === size + bytes.length;
      }
      // Whoever takes a log away seals it first. If nothing is behind the save, nobody of us did.
      if ((await fs.stat(fd)).size === size + bytes.length)
        throw new SDKError('LOUSHO_STORE_REPLACED', { path: this.path });
      return false;
    } catch (error) {
      await this.#takeBack(fd, size, progress.written);
      throw error;
    }
  }

  /** A write that failed leaves the log as it was, unless somebody has written behind it already. */
  async #takeBack(fd: number, size: number, written: number): Promise<void> {
    try {
      const stat = await this.disk.fs.stat(fd);
      if (written > 0 && stat.size === size + written) await this.disk.fs.truncate(fd, size);
    } catch {
      // The disk is not to be had. What was cut off is not read; of what was not, nobody was told that it is stored.
      return undefined;
    }
  }

  async #readOn(fd: number): Promise<ScannedSave[]> {
    const { size } = await this.disk.fs.stat(fd);
    return this.scan.feed(await this.disk.readRange(fd, this.scan.linesEnd, size));
  }
}
