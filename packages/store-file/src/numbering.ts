/** Which number the next generation of a log has, and who may give it one. */
import type { Generations } from './generations.ts';
import { noLease, bytesOf, type LeaseFiles } from './lease-files.ts';
import { numberedName, type FolderListing, type LogFolder } from './log-folder.ts';

export interface FirstNumber {
  readonly number: number;
  readonly logName: string;
  /** What lies beside the first log. */
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
}

export interface Numbering {
  first(id: string): Promise<FirstNumber>;
  /** Called when the folder was made. */
  afterFirst(folder: LogFolder, id: string, number: number): Promise<void>;
  /** The number of the log that comes behind those of the listing. `undefined` when somebody else was faster. */
  next(folder: LogFolder, id: string, listing: FolderListing): Promise<number | undefined>;
}

/** Of runs: a number belongs to a lease, so whoever makes a log has made its lease first, or found that it is there. */
export function runNumbering(leases: LeaseFiles, generations: Generations): Numbering {
  return {
    async first(id) {
      const number = (await leases.floor.read()) + 1;
      const lease = { name: numberedName(number, 'lease'), bytes: bytesOf(noLease(id, number)) };
      return { number, logName: numberedName(number, 'jsonl'), files: [lease] };
    },
    async afterFirst(folder, id, number) {
      const raised = await leases.raiseAboveFloor(folder, number, (higher) => noLease(id, higher));
      if (raised !== undefined && raised !== number) await generations.open(folder, id, raised);
    },
    async next(folder, id, listing) {
      return listing.topLease > listing.topLog ? listing.topLease : leases.continue(folder, id, listing);
    },
  };
}

/** Of sessions, which nobody executes: whoever makes the next log has its number. */
export const sessionNumbering: Numbering = {
  async first() {
    return { number: 1, logName: numberedName(1, 'jsonl'), files: [] };
  },
  async afterFirst() {
    return undefined;
  },
  async next(_folder, _id, listing) {
    return listing.topLog + 1;
  },
};
