/** Saving and loading a state: one line behind the last one, whatever the length of the transcript. */
import { assertNever, extendsList, nextEvent, type Checkpoint } from '@lousho/contract';
import { compactLog, wantsCompaction, type CompactWhen } from './compaction.ts';
import { FirstSaves } from './first-saves.ts';
import { findLog, highestOf, type FoundLog } from './found-log.ts';
import type { Generations } from './generations.ts';
import { KnownLogs, type KnownLog } from './known-logs.ts';
import { LogFolder, type FolderListing } from './log-folder.ts';
import { stateOf, type StoredLog } from './log-reader.ts';
import { MessageOrigins, type SharedMessages } from './message-origins.ts';
import type { Numbering } from './numbering.ts';
import type { StorePlace } from './store-place.ts';
import type { UnfinishedRuns } from './unfinished-runs.ts';

export interface EventLogsDeps {
  /** The folder of all logs of this kind. */
  readonly root: string;
  readonly place: StorePlace;
  readonly generations: Generations;
  readonly numbering: Numbering;
  /** Whether a save may take the place of a state that nobody can read. */
  readonly heals: boolean;
  /** Where runs are marked that are not over; `undefined` for logs that have no end. */
  readonly unfinished: UnfinishedRuns | undefined;
  /** Messages of a log of another kind that this state begins with. */
  readonly storedBy: (id: string, state: Checkpoint) => SharedMessages | undefined;
}

export interface WriteOptions {
  /**
   * Up to which generation the caller may write, by a look at what is stored; `undefined`: to none. Asked again whenever something
   * has changed.
   */
  readonly limit: (folder: LogFolder, listing: FolderListing | undefined) => Promise<number | undefined>;
  /** What it was a moment ago, for the log that is known: that log itself tells whether it has changed. */
  readonly knownLimit: number | undefined;
  /** Whether this state may be replaced. `undefined`: there is none. */
  readonly replaces: (state: Checkpoint | undefined) => boolean;
  /** Tells apart what several writers save at one moment. */
  readonly writer: string | undefined;
}

/** Each time another process was faster; that this happens so often is no accident. */
const MAX_ATTEMPTS = 1_000;

export class EventLogs {
  readonly #deps: EventLogsDeps;
  readonly #known: KnownLogs;
  readonly #origins: MessageOrigins;
  readonly #firstSaves: FirstSaves;

  constructor(deps: EventLogsDeps) {
    this.#deps = deps;
    const { generations, numbering, storedBy, unfinished } = deps;
    this.#known = new KnownLogs(generations.descriptors);
    this.#origins = new MessageOrigins({ known: this.#known, storedBy });
    this.#firstSaves = new FirstSaves({
      ...{ generations, numbering, unfinished, known: this.#known },
      origins: this.#origins,
    });
  }

  folderOf(id: string): LogFolder {
    return LogFolder.of(this.#deps.generations.disk, this.#deps.root, id);
  }

  known(id: string): KnownLog | undefined {
    return this.#known.get(id);
  }

  /** `false` when the caller may not write. `next` is deeply frozen. @throws LOUSHO_CHECKPOINT_TOO_LARGE, LOUSHO_STORE_* */
  async write(id: string, next: Checkpoint, options: WriteOptions): Promise<boolean> {
    const folder = this.folderOf(id);
    let limit = options.knownLimit;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      // What is appended to a log that is known goes into that file, and tells itself whether it is still there.
      if (limit === undefined || this.#known.get(id) === undefined) await this.#deps.place.assertSame();
      limit ??= await options.limit(folder, await folder.list());
      if (limit === undefined) return false;
      const known = this.#known.get(id);
      const found: FoundLog =
        known === undefined
          ? await findLog({ generations: this.#deps.generations, known: this.#known }, folder, id)
          : { kind: 'open', log: known };
      if (highestOf(found) <= limit) {
        const outcome = await this.#tryWrite(folder, id, next, found, options);
        if (outcome !== 'overtaken') return outcome === 'written';
      }
      limit = undefined;
    }
    throw new Error(`"${id}" was written by others all the time`);
  }

  async #tryWrite(
    folder: LogFolder,
    id: string,
    next: Checkpoint,
    found: FoundLog,
    { replaces, writer }: WriteOptions,
  ): Promise<'written' | 'refused' | 'overtaken'> {
    switch (found.kind) {
      case 'open':
        if (replaces(found.log.checkpoint))
          return (await this.#append(folder, found.log, next, writer)) ? 'written' : 'overtaken';
        if (await this.#isNewest(folder, found.log)) return 'refused';
        await this.#known.forget(id);
        return 'overtaken';
      case 'sealed':
        await this.#goOn(folder, id, found.listing);
        return 'overtaken';
      case 'nothing':
        if (!replaces(undefined)) return 'refused';
        return (await this.#firstSaves.beginFolder(folder, id, next)) ? 'written' : 'overtaken';
      case 'closed':
        // A save replaces the state whole, so it also heals a damaged one; what was left of its history goes.
        if (found.damage !== undefined && !this.#deps.heals) throw found.damage;
        if (!replaces(undefined)) return 'refused';
        return (await this.#firstSaves.begin(folder, id, next, found)) ? 'written' : 'overtaken';
      default:
        return assertNever(found);
    }
  }

  /** The state as it is known here while nobody has touched the log; else it is read. @throws as `load` */
  async current(id: string): Promise<Checkpoint | null> {
    const known = this.#known.get(id);
    if (known?.checkpoint === undefined) return this.load(id);
    const listing = await this.folderOf(id).list();
    const isNewest = listing?.topLog === known.number && listing.topLease <= known.number;
    return isNewest && (await known.file.isUntouched()) ? known.checkpoint : this.load(id);
  }

  /** Reads the log whole and checks it. `null` when there is no state. @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_* */
  async load(id: string): Promise<Checkpoint | null> {
    const { generations } = this.#deps;
    const log = await generations.readNewest(this.folderOf(id), id);
    if (log === undefined || log.events.length === 0 || log.file.scan.isGone) return null;
    const checkpoint = stateOf(log, generations.kind);
    this.noteOrigin(log, log.events.length, checkpoint);
    await this.#known.remember(log, checkpoint);
    return checkpoint;
  }

  /** Whether the last save may have made most of the log superfluous. */
  wantsCompaction(id: string, ended: { readonly hasEnded: boolean }): boolean {
    return wantsCompaction(this.#known.get(id), this.#deps.generations.kind.keptEntries, ended);
  }

  /**
   * Goes on in a new log with what is still history: if that is less than half, or also when it is not worth it. What is stored stays as
   * it is when this fails.
   */
  async compact(id: string, when: CompactWhen): Promise<void> {
    const { generations, numbering } = this.#deps;
    await compactLog({ generations, numbering, known: this.#known, when }, this.folderOf(id), id);
  }

  /** Remembers where these messages are stored: in the first so many saves of the log. */
  noteOrigin(log: StoredLog, saves: number, checkpoint: Checkpoint): void {
    this.#origins.note(log, saves, checkpoint);
  }

  /** Nobody adds to this generation any more. */
  async seal(id: string, number: number): Promise<void> {
    const { generations } = this.#deps;
    const known = this.#known.get(id);
    if (known?.number === number) {
      await known.file.seal(generations.descriptors);
      await this.#known.forget(id);
      return;
    }
    const folder = this.folderOf(id);
    if ((await folder.list())?.logs.includes(number) === true) await generations.seal(folder, id, number);
  }

  /** What was remembered of the log is read again. */
  async forget(id: string): Promise<void> {
    await this.#known.forget(id);
  }

  async #goOn(folder: LogFolder, id: string, listing: FolderListing): Promise<void> {
    const { generations, numbering } = this.#deps;
    const number = await numbering.next(folder, id, listing);
    if (number !== undefined) await generations.open(folder, id, number);
  }

  /** `false` when another writer was first; nothing is written then. */
  async #append(
    folder: LogFolder,
    known: KnownLog,
    next: Checkpoint,
    writer: string | undefined,
  ): Promise<boolean> {
    const { disk, descriptors } = this.#deps.generations;
    const { loaded } = known;
    const [wasOver, isOver] = [isOverOrGone(known.checkpoint), next.status === 'finished'];
    const before =
      loaded !== undefined && extendsList(loaded.messages, next.messages) ? loaded : known.checkpoint;
    const event = nextEvent(before, next);
    try {
      if (!known.isNameSynced) {
        // Whoever made the log may have died before its name was safe.
        await disk.syncFolder(folder.path);
        await disk.syncFolder(folder.root);
        known.isNameSynced = true;
      }
      if (wasOver && !isOver) await this.#markBeginning(folder, known);
      const appended = await known.file.append(descriptors, event, { id: known.id, writer });
      if (appended.kind === 'refused') {
        await this.#known.forget(known.id);
        return false;
      }
      this.#known.note(known, event, appended.length, next);
      if (isOver && !wasOver) await this.#clearMarks(folder, known);
      if (!appended.isNewest) await this.#known.forget(known.id);
    } catch (error) {
      await this.#known.forget(known.id);
      throw error;
    }
    if (known.hasOlder) {
      known.hasOlder = false;
      await folder.removeOlderQuietly(known.number);
    }
    return true;
  }

  /** Before a save after which the run is unfinished and was not. */
  async #markBeginning(folder: LogFolder, known: KnownLog): Promise<void> {
    const { unfinished, place } = this.#deps;
    if (unfinished === undefined) return;
    await place.assertSame();
    const at = { number: known.number, saves: known.eventCount + 1 };
    await unfinished.mark(folder.name, at);
    known.begunAt = at;
  }

  /** After the save that ended the run. */
  async #clearMarks({ name }: LogFolder, known: KnownLog): Promise<void> {
    const { unfinished } = this.#deps;
    const { number, eventCount: saves, begunAt } = known;
    if (begunAt === undefined) await unfinished?.clearUpTo(name, { number, saves });
    else await unfinished?.clear(name, begunAt);
    known.begunAt = undefined;
  }

  /** Whether nobody has saved since the log was read. */
  async #isNewest(folder: LogFolder, known: KnownLog): Promise<boolean> {
    const { disk } = this.#deps.generations;
    const listing = await folder.list();
    if (listing?.topLog !== known.number) return false;
    const stat = await disk.statIfThere(known.file.path);
    return stat?.identity === known.file.identity && stat.size === known.file.scan.size;
  }
}

function isOverOrGone(checkpoint: Checkpoint | undefined): boolean {
  return checkpoint === undefined || checkpoint.status === 'finished';
}
