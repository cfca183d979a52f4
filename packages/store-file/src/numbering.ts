/** Which number the next generation of a log has, and who may give it one. */
import type { Generations } from './generations.ts';
import { noLease, type LeaseFiles } from './lease-files.ts';
import type { FolderListing, LogFolder } from './log-folder.ts';

export interface Numbering {
  first(): Promise<number>;
  /** Puts what belongs beside the first log into a folder that nobody else knows. */
  fillFirst(temp: LogFolder, id: string, number: number): Promise<void>;
  /** Called when the folder has its name. */
  afterFirst(folder: LogFolder, id: string, number: number): Promise<void>;
  /** The number of the log that comes behind those of the listing. `undefined` when somebody else was faster. */
  next(folder: LogFolder, id: string, listing: FolderListing): Promise<number | undefined>;
}

/** Of runs: a number belongs to a lease, so whoever makes a log has made its lease first, or found that it is there. */
export function runNumbering(leases: LeaseFiles, generations: Generations): Numbering {
  return {
    first: async () => (await leases.floor.read()) + 1,
    fillFirst: (temp, id, number) => leases.fillFirst(temp, id, number),
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
  first: async () => 1,
  fillFirst: async () => undefined,
  afterFirst: async () => undefined,
  async next(_folder, _id, listing) {
    return listing.topLog + 1;
  },
};
