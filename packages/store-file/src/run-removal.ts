/** Deleting a run: its lease ends, whoever saves is refused, and its files go. */
import type { Disk } from './disk.ts';
import type { EventLogs } from './event-logs.ts';
import type { FenceFloor } from './fence-floor.ts';
import type { FileLeases } from './file-leases.ts';
import type { Generations, SealedLog } from './generations.ts';
import type { KeyedQueue } from './keyed-queue.ts';
import type { FolderListing, LogFolder } from './log-folder.ts';
import type { StorePlace } from './store-place.ts';
import type { UnfinishedRuns } from './unfinished-runs.ts';

export interface RemovalDeps {
  readonly disk: Disk;
  readonly place: StorePlace;
  readonly floor: FenceFloor;
  readonly logs: EventLogs;
  readonly generations: Generations;
  readonly leases: FileLeases;
  readonly unfinished: UnfinishedRuns;
  readonly logQueue: KeyedQueue;
  readonly leaseQueue: KeyedQueue;
}

export interface RemoveOptions {
  readonly keepHistory: boolean;
  /** Asked with what is final: `false` leaves the run as it is. */
  readonly isWanted?: ((sealed: SealedLog | undefined) => boolean) | undefined;
  /** Asked before the lease is ended. */
  readonly mayEnd?: ((folder: LogFolder, listing: FolderListing) => Promise<boolean>) | undefined;
}

/** Each time another process was faster; that this happens so often is no accident. */
const MAX_ATTEMPTS = 1_000;

export class RunRemoval {
  readonly #deps: RemovalDeps;

  constructor(deps: RemovalDeps) {
    this.#deps = deps;
  }

  /** Whether it was removed. An unknown id is fine. */
  async remove(id: string, options: RemoveOptions): Promise<boolean> {
    const { leaseQueue, logQueue, logs, place } = this.#deps;
    const folder = logs.folderOf(id);
    return leaseQueue.run(id, () =>
      logQueue.run(id, async () => {
        await place.assertSame();
        await logs.forget(id);
        for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
          const outcome = await this.#tryToRemove(folder, id, options);
          if (outcome !== 'again') return outcome === 'removed';
        }
        throw new Error(`"${id}" was written by others all the time`);
      }),
    );
  }

  async #tryToRemove(
    folder: LogFolder,
    id: string,
    { keepHistory, isWanted, mayEnd }: RemoveOptions,
  ): Promise<'removed' | 'kept' | 'again'> {
    const { generations, leases, floor, disk, unfinished } = this.#deps;
    const listing = await folder.list();
    if (listing === undefined) {
      // A folder that another delete had just emptied when its process died.
      await folder.removeUpTo(0);
      return 'removed';
    }
    if (mayEnd !== undefined && !(await mayEnd(folder, listing))) return 'kept';
    // 1. End the lease. Crash here: the run is as it was, without a holder.
    const number = await leases.end(folder, id, listing);
    if (number === undefined) return 'again';
    // 2. Seal what is there. Crash here: the same; the next save goes on in a new log.
    const sealed = await generations.closeBefore(folder, id, number);
    if (isWanted?.(sealed) === false) {
      await generations.open(folder, id, number);
      return 'kept';
    }
    // 3. Put a log in front that has no state. From here on the run is deleted, whatever is left of its files.
    const history = keepHistory && sealed?.state === 'whole' ? sealed.log : undefined;
    const published =
      history === undefined
        ? await generations.publishEmpty(folder, id, number, folder.pathOf(number, 'lease'))
        : await generations.publishGone(folder, history, number);
    if (published !== 'made') return 'again';
    await folder.removeOlder(number);
    if (!isOver(sealed)) await unfinished.clearUpTo(folder.name, { number, saves: 0 });
    if (history !== undefined) return 'removed';
    // 4. Remember the number before its names go: a run that is begun anew gets a higher one.
    await floor.raise(number);
    await folder.removeUpTo(number);
    await disk.syncFolder(folder.root);
    return 'removed';
  }
}

function isOver(sealed: SealedLog | undefined): boolean {
  return sealed?.state === 'whole' && sealed.log.events.at(-1)?.z === 'finished';
}
