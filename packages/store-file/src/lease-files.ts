/** Leases as files. Whoever makes the next number has the run; the holder writes over its own file to renew or release it. */
import { endLease, type Clock, type LeaseRecord } from '@lousho/contract';
import { decodeRecord, encodeRecord } from './checked-record.ts';
import type { Disk } from './disk.ts';
import type { FenceFloor } from './fence-floor.ts';
import type { FolderListing, LogFolder } from './log-folder.ts';

export interface StoredLease {
  readonly number: number;
  readonly record: LeaseRecord;
}

/** For numbers that grow and for a time-to-live that changes: what fits is written over in one piece. */
const RECORD_LENGTH = 512;
/** A file that nobody can read was written, or was about to be, by a holder that may live: it gets the usual period and its grace. */
const UNREADABLE_TTL_MS = 30_000;
/** A reader may see half of what is just being written over. */
const READS = 5;

export class LeaseFiles {
  constructor(
    readonly disk: Disk,
    readonly clock: Clock,
    readonly floor: FenceFloor,
  ) {}

  /** The lease that counts, of this listing. */
  async newest(folder: LogFolder, listing: FolderListing | undefined): Promise<StoredLease | undefined> {
    let current = listing;
    for (;;) {
      if (current === undefined || current.topLease === 0) return undefined;
      const record = await this.#read(folder, current.topLease);
      if (record !== undefined) return { number: current.topLease, record };
      current = await folder.list();
    }
  }

  /**
   * Makes the next number, with what `record` gives for it. `undefined` when somebody else was faster.
   * @param before what was looked at to decide that it may be taken; `undefined`: there was no run
   */
  async claim(
    folder: LogFolder,
    before: FolderListing | undefined,
    record: (number: number) => LeaseRecord,
  ): Promise<StoredLease | undefined> {
    return before === undefined ? this.#claimFirst(folder, record) : this.#claimNext(folder, before, record);
  }

  /** Of a run that is begun without a lease, in a folder that nobody else knows. */
  async fillFirst(temp: LogFolder, id: string, number: number): Promise<void> {
    await temp.fill(number, 'lease', bytesOf(noLease(id, number)), { sync: true });
  }

  /** The same lease under the next number: for a log that has to go on in a new file. */
  async continue(folder: LogFolder, id: string, listing: FolderListing): Promise<number | undefined> {
    const newest = await this.newest(folder, listing);
    const claimed = await this.claim(folder, listing, (number) => newest?.record ?? noLease(id, number));
    return claimed?.number;
  }

  /** `false` when the file is gone: then it does not count any more. */
  async rewrite(folder: LogFolder, { number, record }: StoredLease): Promise<boolean> {
    // Not by a new file under the same name: that would bring back a lease whose run was deleted meanwhile.
    const written = await this.disk.useIfThere(folder.pathOf(number, 'lease'), 'update', async (fd) => {
      const { size } = await this.disk.fs.stat(fd);
      await this.disk.writeAll(fd, encodeRecord(record, size));
      return true;
    });
    return written === true;
  }

  /**
   * Gives a run that has just been begun with this number another one, if a run of its id may have come and gone since the floor was
   * read. `undefined` when somebody else was faster.
   */
  async raiseAboveFloor(
    folder: LogFolder,
    number: number,
    record: (number: number) => LeaseRecord,
  ): Promise<number | undefined> {
    let current = number;
    for (let floor = await this.floor.read(); floor >= current; floor = await this.floor.read()) {
      const before = await folder.list();
      if (before?.top !== current) return undefined;
      current = floor + 1;
      const bytes = bytesOf(record(current));
      const witness = folder.witnessOf(before);
      if ((await folder.publish(current, 'lease', bytes, { witness, sync: 'nothing' })) !== 'made')
        return undefined;
    }
    return current;
  }

  async #claimFirst(
    folder: LogFolder,
    record: (number: number) => LeaseRecord,
  ): Promise<StoredLease | undefined> {
    const first = (await this.floor.read()) + 1;
    const published = await folder.create(
      (temp) => temp.fill(first, 'lease', bytesOf(record(first)), { sync: false }),
      { sync: false },
    );
    if (published !== 'made') return undefined;
    const number = await this.raiseAboveFloor(folder, first, record);
    return number === undefined ? undefined : { number, record: record(number) };
  }

  async #claimNext(
    folder: LogFolder,
    before: FolderListing,
    record: (number: number) => LeaseRecord,
  ): Promise<StoredLease | undefined> {
    const number = before.top + 1;
    const witness = folder.witnessOf(before);
    const published = await folder.publish(number, 'lease', bytesOf(record(number)), {
      witness,
      sync: 'nothing',
    });
    if (published !== 'made') return undefined;
    // Between the look and the name the run may have gone on, or may have been deleted and begun anew.
    const after = await folder.list();
    const isNext = after?.top === number && [...after.leases, ...after.logs].includes(before.top);
    if (isNext) return { number, record: record(number) };
    await this.disk.remove(folder.pathOf(number, 'lease'));
    await this.disk.removeFolder(folder.path);
    return undefined;
  }

  async #read(folder: LogFolder, number: number): Promise<LeaseRecord | undefined> {
    const file = folder.pathOf(number, 'lease');
    for (let reads = 1; ; reads += 1) {
      const bytes = await this.disk.readIfThere(file);
      if (bytes === undefined) return undefined;
      const record = leaseIn(bytes);
      if (record !== undefined) return record;
      if (reads === READS) return this.#unreadable(file, number);
      await this.disk.fs.pause(reads);
    }
  }

  async #unreadable(file: string, number: number): Promise<LeaseRecord | undefined> {
    const stat = await this.disk.statIfThere(file);
    if (stat === undefined) return undefined;
    const writtenAtMs = this.clock.wallMs() - stat.ageMs;
    return {
      id: '',
      owner: '',
      fence: number,
      renewCount: 0,
      expiresAtMs: writtenAtMs + UNREADABLE_TTL_MS,
      ttlMs: UNREADABLE_TTL_MS,
    };
  }
}

/** Of a run that was saved without one. */
export function noLease(id: string, number: number): LeaseRecord {
  return endLease({ id, owner: '', fence: number, renewCount: 0, expiresAtMs: 0, ttlMs: 0 });
}

function bytesOf(record: LeaseRecord): Buffer {
  return encodeRecord(record, RECORD_LENGTH);
}

function leaseIn(bytes: Buffer): LeaseRecord | undefined {
  try {
    return decodeRecord(bytes) as LeaseRecord;
  } catch {
    return undefined;
  }
}
