/**
 * From one generation of a log to the next. The old one is sealed, so that what counts in it is final; the new one begins with what goes
 * on, and is there whole or not at all. Whoever finds a step undone may do it: the outcome is the same.
 */
import type { Descriptors } from './descriptors.ts';
import type { Disk, Published } from './disk.ts';
import { codeOf, isDamage, isMissing } from './file-errors.ts';
import { LogFile } from './log-file.ts';
import type { FolderListing, LogFolder } from './log-folder.ts';
import {
  carriedEvents,
  encodeLog,
  readLog,
  standsOnBase,
  type LogKind,
  type StoredLog,
} from './log-reader.ts';

/** A log as it will never change again. */
export type SealedLog =
  | { readonly state: 'whole'; readonly log: StoredLog }
  /** Without a save, or never written. */
  | { readonly state: 'empty' }
  | { readonly state: 'damaged' };

export class Generations {
  constructor(
    readonly disk: Disk,
    readonly descriptors: Descriptors,
    readonly kind: LogKind,
  ) {}

  /** The log that counts. `undefined` when there is none. @throws as `readLog` */
  async readNewest(folder: LogFolder, id: string, listing?: FolderListing): Promise<StoredLog | undefined> {
    let current = listing ?? (await folder.list());
    while (current !== undefined && current.topLog !== 0) {
      const log = await readLog(this.disk, folder, { id, number: current.topLog, kind: this.kind });
      if (log !== undefined) return log;
      // It went because a newer one came, or because the run was deleted.
      current = await folder.list();
    }
    return undefined;
  }

  /** Lets the log `number` begin with what goes on from the ones before. It is not made when nothing does. */
  async open(folder: LogFolder, id: string, number: number): Promise<void> {
    for (;;) {
      const listing = await folder.list();
      if (listing === undefined || listing.topLog >= number) return;
      const before = await this.closeBefore(folder, id, number);
      if (before?.state !== 'whole') return;
      const published = await this.#carry(folder, before.log, number);
      if (published !== 'gone') return;
    }
  }

  /** Makes the log below `number` final, and those below that. `undefined` when `number` is the first. */
  async closeBefore(folder: LogFolder, id: string, number: number): Promise<SealedLog | undefined> {
    for (;;) {
      const listing = await folder.list();
      const before = Math.max(
        0,
        ...[...(listing?.leases ?? []), ...(listing?.logs ?? [])].filter((one) => one < number),
      );
      if (listing === undefined || before === 0) return undefined;
      if (listing.logs.includes(before)) {
        const sealed = await this.seal(folder, id, before);
        if (sealed !== undefined) return sealed;
        continue;
      }
      // Whoever took that number may be about to write its log: what goes on from before comes first, and else nothing may come any more.
      await this.open(folder, id, before);
      await this.#block(folder, id, before);
    }
  }

  /** `undefined` when the log is not there any more. */
  async seal(folder: LogFolder, id: string, number: number): Promise<SealedLog | undefined> {
    for (;;) {
      let log: StoredLog | undefined;
      try {
        log = await readLog(this.disk, folder, { id, number, kind: this.kind });
      } catch (error) {
        if (!isDamage(error)) throw error;
        await this.#sealDamaged(folder.pathOf(number, 'jsonl'));
        return { state: 'damaged' };
      }
      if (log === undefined) return undefined;
      if (log.events.length === 0) return { state: 'empty' };
      const added = await log.file.seal(this.descriptors);
      if (added.length === 0 && log.file.scan.isSealed) return { state: 'whole', log };
    }
  }

  /** A log that never takes a save: in the place of one that is not to come, and of a run that is deleted. */
  async publishEmpty(folder: LogFolder, id: string, number: number, witness: string): Promise<Published> {
    const { bytes } = encodeLog([], { kind: this.kind.kind, id, generation: number });
    return folder.publish(number, 'jsonl', bytes, { witness, sync: 'content' });
  }

  /** The history of a run that is deleted. */
  async publishGone(folder: LogFolder, log: StoredLog, number: number): Promise<Published> {
    return this.#carry(folder, log, number, true);
  }

  /** What the log would begin with in a new generation, if that were much shorter. */
  isWorthNewOne(log: StoredLog): boolean {
    const { sizes } = encodeLog(carriedEvents(log, this.kind), this.#headerOf(log, log.number));
    return 2 * sum(sizes) < sum(log.sizes);
  }

  async #sealDamaged(path: string): Promise<void> {
    const read = await LogFile.read(this.disk, path);
    await read?.file.forceSeal(this.descriptors);
  }

  async #block(folder: LogFolder, id: string, number: number): Promise<void> {
    const listing = await folder.list();
    if (listing === undefined || listing.logs.includes(number)) return;
    await this.publishEmpty(folder, id, number, folder.pathOf(number, 'lease'));
  }

  async #carry(
    folder: LogFolder,
    log: StoredLog,
    number: number,
    gone = log.file.scan.isGone,
  ): Promise<Published> {
    const events = carriedEvents(log, this.kind);
    if (standsOnBase(events) && !(await this.#carryBase(folder, log.number, number))) return 'gone';
    const { bytes } = encodeLog(events, {
      ...this.#headerOf(log, number),
      ...(gone ? { gone: true as const } : {}),
    });
    return folder.publish(number, 'jsonl', bytes, {
      witness: folder.pathOf(log.number, 'jsonl'),
      sync: 'name',
    });
  }

  async #carryBase(folder: LogFolder, from: number, to: number): Promise<boolean> {
    try {
      await this.disk.fs.link(folder.pathOf(from, 'base'), folder.pathOf(to, 'base'));
    } catch (error) {
      if (isMissing(error)) return false;
      // Whoever made it did the same.
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    return true;
  }

  #headerOf(
    { id }: StoredLog,
    generation: number,
  ): { readonly kind: LogKind['kind']; readonly id: string; readonly generation: number } {
    return { kind: this.kind.kind, id, generation };
  }
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}
