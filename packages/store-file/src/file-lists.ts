/** Lists of runs: a few bytes of each for a list of headers, everything for a list of checkpoints, and damage as one entry. */
import {
  SDKError,
  compareSaves,
  listCheckpoints,
  matchesStatus,
  storedError,
  type CheckpointHeaderEntry,
  type CheckpointListEntry,
  type LeaseRecord,
  type ListOptions,
} from '@lousho/contract';
import { isTemp, type Disk } from './disk.ts';
import type { Generations } from './generations.ts';
import { listIfFolder, ownIdOf, readSummary, type RunSummary } from './header-reader.ts';
import type { LeaseFiles } from './lease-files.ts';
import { LogFolder } from './log-folder.ts';
import { stateOf } from './log-reader.ts';

/** Enough to keep a disk busy, and few against the files that a process may have open. */
const READS_AT_ONCE = 8;

export class CheckpointLists {
  constructor(
    readonly disk: Disk,
    readonly root: string,
    readonly generations: Generations,
    readonly leases: LeaseFiles,
  ) {}

  /** Oldest save first, then by id. A run that goes while the list is made is left out. */
  async list(options: ListOptions): Promise<readonly CheckpointListEntry[]> {
    const entries = await this.#each((folder) => this.#entryOf(folder));
    return listCheckpoints(entries, options);
  }

  async listHeaders(options: ListOptions): Promise<readonly CheckpointHeaderEntry[]> {
    const entries = await this.#each((folder) => this.#headerEntryOf(folder));
    return entries
      .filter(({ status }) => matchesStatus(status, options))
      .sort((a, b) => compareSaves(a.header?.savedAt, a.sessionId, b.header?.savedAt, b.sessionId));
  }

  /** What is known of every run without its transcript. */
  async summaries(): Promise<readonly RunSummary[]> {
    return this.#each((folder) => readSummary(this.disk, folder, this.generations));
  }

  /** Every lease that has not ended, in the order of their ids. */
  async heldLeases(): Promise<readonly LeaseRecord[]> {
    const leases = await this.#each((folder) => this.#heldLeaseOf(folder));
    return leases.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async #heldLeaseOf(folder: LogFolder): Promise<LeaseRecord | undefined> {
    const listing = await listIfFolder(folder);
    const id = listing && (await ownIdOf(this.disk, folder, listing));
    const stored = await this.leases.newest(folder, listing);
    if (id === undefined || stored === undefined || stored.record.released === true) return undefined;
    return { ...stored.record, id };
  }

  async #entryOf(folder: LogFolder): Promise<CheckpointListEntry | undefined> {
    const listing = await listIfFolder(folder);
    if (listing === undefined || listing.topLog === 0) return undefined;
    const id = await ownIdOf(this.disk, folder, listing);
    if (id === undefined) return undefined;
    try {
      const log = await this.generations.readNewest(folder, id);
      if (log === undefined || log.events.length === 0 || log.file.scan.isGone) return undefined;
      const checkpoint = stateOf(log, this.generations.kind);
      return { sessionId: id, status: checkpoint.status, checkpoint };
    } catch (error) {
      // A disk that does not answer is no damage of this run.
      if (!(error instanceof SDKError)) throw error;
      return { sessionId: id, status: 'in-progress', checkpoint: null, error: storedError(error) };
    }
  }

  async #headerEntryOf(folder: LogFolder): Promise<CheckpointHeaderEntry | undefined> {
    const summary = await readSummary(this.disk, folder, this.generations);
    switch (summary?.state) {
      case 'whole':
        return { sessionId: summary.id, status: summary.header.status, header: summary.header };
      case 'damaged':
        return {
          sessionId: summary.id,
          status: 'in-progress',
          header: null,
          error: storedError(summary.error),
        };
      default:
        return undefined;
    }
  }

  async #each<Entry>(read: (folder: LogFolder) => Promise<Entry | undefined>): Promise<Entry[]> {
    const names = ((await this.disk.listIfThere(this.root)) ?? []).filter((name) => !isTemp(name));
    const entries: Entry[] = [];
    const readers = Array.from({ length: READS_AT_ONCE }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const entry = await read(new LogFolder(this.disk, this.root, name));
        if (entry !== undefined) entries.push(entry);
      }
    });
    await Promise.all(readers);
    return entries;
  }
}
