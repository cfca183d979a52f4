/**
 * The folder of one run or session. What happens to it as a whole happens by making names that only one process can make: numbered
 * leases and logs, of which the highest count.
 */
import path from 'node:path';
import { isTemp, type Disk, type Published } from './disk.ts';
import { isMissing } from './file-errors.ts';
import { fileNameOf } from './file-names.ts';

/** `lease`: who has the number. `jsonl`: the log. `base`: a log of a session whose messages the log begins with. */
export type FileKind = 'lease' | 'jsonl' | 'base';

export interface FolderListing {
  /** Ascending. */
  readonly leases: readonly number[];
  readonly logs: readonly number[];
  readonly bases: readonly number[];
  /** 0: none. */
  readonly topLease: number;
  readonly topLog: number;
  /** The higher of both. */
  readonly top: number;
}

const NUMBERED = /^(\d{10})\.(lease|jsonl|base)$/;

function numberedName(number: number, kind: FileKind): string {
  return `${String(number).padStart(10, '0')}.${kind}`;
}

export class LogFolder {
  readonly path: string;

  constructor(
    readonly disk: Disk,
    /** Where the folders of all runs, or of all sessions, are. */
    readonly root: string,
    readonly name: string,
  ) {
    this.path = path.join(root, name);
  }

  static of(disk: Disk, root: string, id: string): LogFolder {
    return new LogFolder(disk, root, fileNameOf(id));
  }

  pathOf(number: number, kind: FileKind): string {
    return path.join(this.path, numberedName(number, kind));
  }

  /** A file that goes when the run goes. */
  witnessOf({ topLease, topLog }: FolderListing): string {
    return topLog >= topLease ? this.pathOf(topLog, 'jsonl') : this.pathOf(topLease, 'lease');
  }

  /** `undefined` when there is no folder, or nothing in it that counts. */
  async list(): Promise<FolderListing | undefined> {
    const names = (await this.disk.listIfThere(this.path)) ?? [];
    const numbers: { readonly [kind in FileKind]: number[] } = { lease: [], jsonl: [], base: [] };
    for (const name of names) {
      const match = NUMBERED.exec(name);
      if (match !== null) numbers[match[2] as FileKind].push(Number(match[1]));
    }
    for (const list of Object.values(numbers)) list.sort((a, b) => a - b);
    const { lease: leases, jsonl: logs, base: bases } = numbers;
    const [topLease, topLog] = [leases.at(-1) ?? 0, logs.at(-1) ?? 0];
    const top = Math.max(topLease, topLog);
    return top === 0 ? undefined : { leases, logs, bases, topLease, topLog, top };
  }

  /** The folder with its first files, all at once; `fill` puts them in. `taken` when there is one already. */
  async create(
    fill: (temp: LogFolder) => Promise<void>,
    { sync }: { readonly sync: boolean },
  ): Promise<Published> {
    const temp = new LogFolder(this.disk, this.root, path.basename(this.disk.tempName(this.root)));
    await this.disk.makeFolders(this.root);
    try {
      await this.disk.fs.makeFolder(temp.path);
      await fill(temp);
      if (sync) await this.disk.syncFolder(temp.path);
      const published = await this.#takeName(temp);
      if (published === 'made' && sync) await this.disk.syncFolder(this.root);
      await temp.#removeWithContent();
      return published;
    } catch (error) {
      await temp.#removeWithContent();
      throw error;
    }
  }

  /** Of a folder that nobody else knows. */
  async fill(
    number: number,
    kind: FileKind,
    bytes: Uint8Array,
    { sync }: { readonly sync: boolean },
  ): Promise<void> {
    await this.disk.writeNew(this.pathOf(number, kind), bytes, { sync });
  }

  /**
   * A new file under a number that nobody else can have. `witness` is a file that is there as long as the folder is the one that the
   * content was made for: whoever deletes a run removes it before he removes temporary files, so what was made for a run that is
   * gone never gets a name. `sync`: the content survives a power cut, or also the name.
   */
  async publish(
    number: number,
    kind: FileKind,
    bytes: Uint8Array,
    { witness, sync }: { readonly witness: string; readonly sync: 'nothing' | 'content' | 'name' },
  ): Promise<Published> {
    const temp = await this.#writeTemp(bytes, sync !== 'nothing');
    if (temp === undefined) return 'gone';
    if ((await this.disk.statIfThere(witness)) === undefined) {
      await this.disk.removeQuietly(temp);
      return 'gone';
    }
    const published = await this.disk.publish(temp, this.pathOf(number, kind));
    if (published === 'made' && sync === 'name') await this.disk.syncFolder(this.path);
    return published;
  }

  /** What the log with this number has made superfluous. */
  async removeOlder(topLog: number): Promise<void> {
    await this.#removeNumbers((number, { topLease }) => number < Math.min(topLog, topLease || Infinity));
    await this.disk.removeOldTemps(this.path);
  }

  /** The same after a save: what is superseded is only in the way, and the next generation tries again. */
  async removeOlderQuietly(topLog: number): Promise<void> {
    try {
      await this.removeOlder(topLog);
    } catch {
      // The save is stored; nothing is missing but room.
      return undefined;
    }
  }

  /** Everything up to this number, then the folder, if nobody has begun anything new in it. */
  async removeUpTo(number: number): Promise<void> {
    await this.#removeNumbers((one) => one <= number);
    // Never by listing alone: the folder may be another run's by now.
    for (const name of (await this.disk.listIfThere(this.path)) ?? [])
      if (isTemp(name) || !(NUMBERED.test(name) || name.startsWith('.')))
        await this.disk.removeQuietly(path.join(this.path, name));
    await this.disk.removeFolder(this.path);
  }

  /**
   * A number's name is free again once it is removed, and somebody who was stopped may be about to give it to a file of his. Such a
   * file was written for something that goes before: what it looked for as its witness. So, one number after the other: the lease, then
   * every file that has no name yet, and only then the log. Whoever wrote his file before has lost it; whoever writes it later finds
   * no witness.
   */
  async #removeNumbers(isToGo: (number: number, listing: FolderListing) => boolean): Promise<void> {
    const listing = await this.list();
    if (listing === undefined) return;
    const numbers = new Set([...listing.leases, ...listing.logs, ...listing.bases]);
    for (const number of [...numbers].sort((a, b) => a - b)) {
      if (!isToGo(number, listing)) return;
      if (listing.leases.includes(number)) await this.disk.remove(this.pathOf(number, 'lease'));
      await this.#removeTemps();
      if (listing.logs.includes(number)) await this.disk.remove(this.pathOf(number, 'jsonl'));
      if (listing.bases.includes(number)) await this.disk.remove(this.pathOf(number, 'base'));
    }
  }

  /** Those who wrote them begin again. */
  async #removeTemps(): Promise<void> {
    for (const name of (await this.disk.listIfThere(this.path)) ?? [])
      if (isTemp(name)) await this.disk.remove(path.join(this.path, name));
  }

  async #takeName(temp: LogFolder): Promise<Published> {
    const published = await this.disk.publishFolder(temp.path, this.path);
    if (published !== 'taken' || (await this.list()) !== undefined) return published;
    // What a process left that died in the middle of making or removing a run. Not every file system lets an empty folder be replaced.
    await this.#removeTemps();
    if (await this.disk.removeFolder(this.path)) return this.disk.publishFolder(temp.path, this.path);
    return this.#moveIn(temp);
  }

  /** Other files are in the folder: of a person, or deleted ones that some file systems keep while a process has them open. */
  async #moveIn(temp: LogFolder): Promise<Published> {
    const number = (await temp.list())?.top ?? 0;
    // The first name decides who begins the run.
    for (const kind of ['lease', 'base', 'jsonl'] as const) {
      if ((await this.disk.statIfThere(temp.pathOf(number, kind))) === undefined) continue;
      const published = await this.disk.publish(temp.pathOf(number, kind), this.pathOf(number, kind));
      if (published !== 'made') return published;
      const listing = await this.list();
      const isAlone =
        listing !== undefined && [...listing.leases, ...listing.logs].every((one) => one === number);
      if (isAlone) continue;
      await this.disk.remove(this.pathOf(number, kind));
      return 'taken';
    }
    return 'made';
  }

  /** Of a folder that nobody else knows. */
  async #removeWithContent(): Promise<void> {
    try {
      for (const name of (await this.disk.listIfThere(this.path)) ?? [])
        await this.disk.removeQuietly(path.join(this.path, name));
      await this.disk.removeFolder(this.path);
    } catch {
      // `removeOldTemps` takes it away later.
      return undefined;
    }
  }

  async #writeTemp(bytes: Uint8Array, sync: boolean): Promise<string | undefined> {
    try {
      return await this.disk.writeTemp(this.path, bytes, { sync });
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }
}
