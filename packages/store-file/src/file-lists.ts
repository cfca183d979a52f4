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
import type { StorePlace } from './store-place.ts';
import { NOWHERE, type LogPlace, type UnfinishedRuns } from './unfinished-runs.ts';

/** Enough to keep a disk busy, and few against the files that a process may have open. */
const READS_AT_ONCE = 8;

export interface ListsDeps {
  readonly disk: Disk;
  readonly place: StorePlace;
  /** The folder of all runs. */
  readonly root: string;
  readonly generations: Generations;
  readonly leases: LeaseFiles;
  readonly unfinished: UnfinishedRuns;
}

interface FoundRun {
  readonly folder: LogFolder;
  readonly summary: RunSummary | undefined;
}

export class CheckpointLists {
  readonly #deps: ListsDeps;

  constructor(deps: ListsDeps) {
    this.#deps = deps;
  }

  /** Oldest save first, then by id. A run that goes while the list is made is left out. */
  async list(options: ListOptions): Promise<readonly CheckpointListEntry[]> {
    const names = (await this.#markedNames(options)) ?? (await this.#allNames());
    return listCheckpoints(await this.#each(names, (folder) => this.#entryOf(folder)), options);
  }

  async listHeaders(options: ListOptions): Promise<readonly CheckpointHeaderEntry[]> {
    const marked = await this.#markedNames(options);
    const found = await this.#each(marked ?? (await this.#allNames()), (folder) => this.#find(folder));
    if (isOfUnfinished(options)) await this.#tidyMarks(found, { areComplete: marked !== undefined });
    return found
      .flatMap(({ summary }) => headerEntry(summary) ?? [])
      .filter(({ status }) => matchesStatus(status, options))
      .sort((a, b) => compareSaves(a.header?.savedAt, a.sessionId, b.header?.savedAt, b.sessionId));
  }

  /** What is known of every run without its transcript. */
  async summaries(): Promise<readonly RunSummary[]> {
    const found = await this.#each(await this.#allNames(), (folder) => this.#find(folder));
    return found.flatMap(({ summary }) => summary ?? []);
  }

  async #find(folder: LogFolder): Promise<FoundRun> {
    return { folder, summary: await readSummary(this.#deps.disk, folder, this.#deps.generations) };
  }

  /** Every lease that has not ended, in the order of their ids. */
  async heldLeases(): Promise<readonly LeaseRecord[]> {
    const leases = await this.#each(await this.#allNames(), (folder) => this.#heldLeaseOf(folder));
    return leases.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async #heldLeaseOf(folder: LogFolder): Promise<LeaseRecord | undefined> {
    const listing = await listIfFolder(folder);
    const { disk, leases } = this.#deps;
    const id = listing && (await ownIdOf(disk, folder, listing));
    const stored = await leases.newest(folder, listing);
    if (id === undefined || stored === undefined || stored.record.released === true) return undefined;
    return { ...stored.record, id };
  }

  async #entryOf(folder: LogFolder): Promise<CheckpointListEntry | undefined> {
    const listing = await listIfFolder(folder);
    if (listing === undefined || listing.topLog === 0) return undefined;
    const { disk, generations } = this.#deps;
    const id = await ownIdOf(disk, folder, listing);
    if (id === undefined) return undefined;
    try {
      const log = await generations.readNewest(folder, id);
      if (log === undefined || log.events.length === 0 || log.file.scan.isGone) return undefined;
      const checkpoint = stateOf(log, generations.kind);
      return { sessionId: id, status: checkpoint.status, checkpoint };
    } catch (error) {
      // A disk that does not answer is no damage of this run.
      if (!(error instanceof SDKError)) throw error;
      return { sessionId: id, status: 'in-progress', checkpoint: null, error: storedError(error) };
    }
  }

  /** Folders that may hold what is asked for; `undefined`: all may. */
  async #markedNames(options: ListOptions): Promise<readonly string[] | undefined> {
    return isOfUnfinished(options) ? this.#deps.unfinished.names() : undefined;
  }

  async #allNames(): Promise<readonly string[]> {
    const { disk, root } = this.#deps;
    return ((await disk.listIfThere(root)) ?? []).filter((name) => !isTemp(name));
  }

  /** So that the next list finds marks of what is unfinished, and of nothing else. A list is made in any case. */
  async #tidyMarks(found: readonly FoundRun[], marks: { readonly areComplete: boolean }): Promise<void> {
    const { place, unfinished } = this.#deps;
    try {
      await place.assertSame();
      // A list of nothing makes nothing: there may be no store yet.
      if (!marks.areComplete && found.length === 0) return;
      if (!marks.areComplete) return await unfinished.complete(found.flatMap(markOf));
      for (const { folder, summary } of found) {
        if (summary === undefined || summary.state === 'none') await unfinished.clearDeleted(folder.name);
        else if (summary.state !== 'damaged' && markOf({ folder, summary }).length === 0)
          await unfinished.clearUpTo(folder.name, summary);
      }
    } catch {
      // A folder that may not be written to, for one. The next list looks at as many runs as this one.
      return undefined;
    }
  }

  async #each<Entry>(
    names: readonly string[],
    read: (folder: LogFolder) => Promise<Entry | undefined>,
  ): Promise<Entry[]> {
    const { disk, root } = this.#deps;
    const left = [...names];
    const entries: Entry[] = [];
    const readers = Array.from({ length: READS_AT_ONCE }, async () => {
      for (let name = left.pop(); name !== undefined; name = left.pop()) {
        const entry = await read(new LogFolder(disk, root, name));
        if (entry !== undefined) entries.push(entry);
      }
    });
    await Promise.all(readers);
    return entries;
  }
}

function isOfUnfinished(options: ListOptions): boolean {
  return !matchesStatus('finished', options);
}

function headerEntry(summary: RunSummary | undefined): CheckpointHeaderEntry | undefined {
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

/** The mark of an unfinished run, or of one that nobody can read. */
function markOf({ folder, summary }: FoundRun): [name: string, place: LogPlace][] {
  if (summary?.state === 'damaged') return [[folder.name, NOWHERE]];
  const isUnfinished = summary?.state === 'whole' && summary.header.status !== 'finished';
  return isUnfinished ? [[folder.name, summary]] : [];
}
