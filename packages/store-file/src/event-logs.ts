/** Saving and loading a state: one line behind the last one, whatever the length of the transcript. */
import {
  assertNever,
  extendsList,
  nextEvent,
  type SDKError,
  type Checkpoint,
  type LogEvent,
  type Message,
} from '@lousho/contract';
import { isDamage } from './file-errors.ts';
import type { Generations } from './generations.ts';
import {
  KnownLogs,
  knownFrom,
  mayBeCompacted,
  nextCompaction,
  sharedFrom,
  sharedOf,
  type KnownLog,
  type SharedMessages,
} from './known-logs.ts';
import { LogFolder, type FolderListing } from './log-folder.ts';
import { encodeLog, standsOnBase, stateOf, type EncodedLog, type StoredLog } from './log-reader.ts';
import type { Numbering } from './numbering.ts';
import type { StorePlace } from './store-place.ts';

export interface EventLogsDeps {
  /** The folder of all logs of this kind. */
  readonly root: string;
  readonly place: StorePlace;
  readonly generations: Generations;
  readonly numbering: Numbering;
  /** Whether a save may take the place of a state that nobody can read. */
  readonly heals: boolean;
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

/** What a writer finds. */
type Found =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'open'; readonly log: KnownLog }
  /** No log takes the save: the next one has to be made. `damage`: why what is there is lost. */
  | { readonly kind: 'closed'; readonly listing: FolderListing; readonly damage: SDKError | undefined }
  /** The same, and what is there has to go on in it first. */
  | { readonly kind: 'sealed'; readonly listing: FolderListing };

export class EventLogs {
  readonly #deps: EventLogsDeps;
  readonly #known = new KnownLogs();
  /** Where lists of messages that were read are stored: a fork that begins with one need not store it again. */
  readonly #origins = new WeakMap<readonly Message[], SharedMessages>();

  constructor(deps: EventLogsDeps) {
    this.#deps = deps;
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
      const found = await this.#find(folder, id);
      if (numberOf(found) <= limit) {
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
    found: Found,
    { replaces, writer }: WriteOptions,
  ): Promise<'written' | 'refused' | 'overtaken'> {
    switch (found.kind) {
      case 'open':
        if (replaces(found.log.checkpoint))
          return (await this.#append(folder, found.log, next, writer)) ? 'written' : 'overtaken';
        if (await this.#isNewest(folder, found.log)) return 'refused';
        await this.#forget(id);
        return 'overtaken';
      case 'sealed':
        await this.#goOn(folder, id, found.listing);
        return 'overtaken';
      case 'nothing':
        if (!replaces(undefined)) return 'refused';
        return (await this.#beginFolder(folder, id, next)) ? 'written' : 'overtaken';
      case 'closed':
        // A save replaces the state whole, so it also heals a damaged one; what was left of its history goes.
        if (found.damage !== undefined && !this.#deps.heals) throw found.damage;
        if (!replaces(undefined)) return 'refused';
        return (await this.#begin(folder, id, next, found)) ? 'written' : 'overtaken';
      default:
        return assertNever(found);
    }
  }

  /** Reads the log whole and checks it. `null` when there is no state. @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_* */
  async load(id: string): Promise<Checkpoint | null> {
    const { generations } = this.#deps;
    const log = await generations.readNewest(this.folderOf(id), id);
    if (log === undefined || log.events.length === 0 || log.file.scan.isGone) return null;
    const checkpoint = stateOf(log, generations.kind);
    this.noteOrigin(log, log.events.length, checkpoint);
    await this.#remember(log, checkpoint);
    return checkpoint;
  }

  /** Whether the last save may have made most of the log superfluous. */
  wantsCompaction(id: string, { hasEnded }: { readonly hasEnded: boolean }): boolean {
    const log = this.#known.get(id);
    if (log === undefined || !mayBeCompacted(log, this.#deps.generations.kind.keptEntries)) return false;
    return log.bytes >= (hasEnded ? SMALL_LOG_BYTES : log.compactAtBytes);
  }

  /** Goes on in a new log with what is still history, if that is less than half. What is stored stays as it is when this fails. */
  async compact(id: string): Promise<void> {
    const { generations, numbering } = this.#deps;
    const folder = this.folderOf(id);
    const known = this.#known.get(id);
    const listing = await folder.list();
    // A higher lease is a take-over, which makes a new log itself.
    if (known === undefined || listing?.topLog !== known.number || listing.top !== known.number) return;
    known.compactAtBytes = nextCompaction(known.bytes);
    const log = await generations.readNewest(folder, id, listing);
    if (log === undefined || !generations.isWorthNewOne(log)) return;
    const number = await numbering.next(folder, id, listing);
    await this.#forget(id);
    if (number === undefined) return;
    await generations.open(folder, id, number);
    await folder.removeOlder(number);
  }

  /** Remembers where these messages are stored: in the first so many saves of the log. */
  noteOrigin({ file, events }: StoredLog, saves: number, { messages }: Checkpoint): void {
    if (!standsOnBase(events)) this.#origins.set(messages, sharedOf(file, saves, messages));
  }

  /** Nobody adds to this generation any more. */
  async seal(id: string, number: number): Promise<void> {
    const { generations } = this.#deps;
    const known = this.#known.get(id);
    if (known?.number === number) {
      await known.file.seal(generations.descriptors);
      await this.#forget(id);
      return;
    }
    const folder = this.folderOf(id);
    if ((await folder.list())?.logs.includes(number) === true) await generations.seal(folder, id, number);
  }

  /** What was remembered of the log is read again. */
  async forget(id: string): Promise<void> {
    await this.#forget(id);
  }

  async #find(folder: LogFolder, id: string): Promise<Found> {
    const known = this.#known.get(id);
    if (known !== undefined) return { kind: 'open', log: known };
    const { generations } = this.#deps;
    const listing = await folder.list();
    if (listing === undefined) return { kind: 'nothing' };
    try {
      const log = await generations.readNewest(folder, id, listing);
      if (log === undefined || log.events.length === 0) return { kind: 'closed', listing, damage: undefined };
      if (log.file.scan.isSealed || log.number < listing.topLease) return { kind: 'sealed', listing };
      const state = log.file.scan.isGone ? undefined : stateOf(log, generations.kind);
      return { kind: 'open', log: await this.#keep(knownFrom(log, state)) };
    } catch (error) {
      if (isDamage(error)) return { kind: 'closed', listing, damage: error };
      throw error;
    }
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
      const appended = await known.file.append(descriptors, event, { id: known.id, writer });
      if (appended.kind === 'refused') {
        await this.#forget(known.id);
        return false;
      }
      this.#known.note(known, event, appended.length, next);
      if (!appended.isNewest) await this.#forget(known.id);
    } catch (error) {
      await this.#forget(known.id);
      throw error;
    }
    if (known.hasOlder) await this.#removeOlder(folder, known);
    return true;
  }

  /** The first save of a log, which gets its name with the save in it. `false` when another writer was first. */
  async #begin(
    folder: LogFolder,
    id: string,
    next: Checkpoint,
    found: Extract<Found, { readonly kind: 'closed' }>,
  ): Promise<boolean> {
    const { generations, numbering } = this.#deps;
    const number = await numbering.next(folder, id, found.listing);
    if (number === undefined) return false;
    if (found.damage !== undefined) await generations.seal(folder, id, found.listing.topLog);
    else await generations.open(folder, id, number);
    const listing = await folder.list();
    // Something went on from before: the save comes behind it.
    if (listing === undefined || listing.topLog >= number || listing.top > number) return false;
    const log = this.#firstLog(id, number, await this.#firstEvent(folder, id, number, next));
    const witness = folder.witnessOf(listing);
    try {
      if ((await folder.publish(number, 'jsonl', log.bytes, { witness, sync: 'name' })) !== 'made')
        return false;
      await generations.disk.syncFolder(folder.root);
    } catch (error) {
      await this.#takeBack(folder, id, number, log);
      throw error;
    }
    const known = await this.#keepBegun(folder, id, next, log);
    if (known !== undefined) await this.#removeOlder(folder, known);
    return true;
  }

  /** The first save of all. */
  async #beginFolder(folder: LogFolder, id: string, next: Checkpoint): Promise<boolean> {
    const { numbering } = this.#deps;
    const number = await numbering.first();
    let log: EncodedLog | undefined;
    const fill = async (temp: LogFolder): Promise<void> => {
      await numbering.fillFirst(temp, id, number);
      log = this.#firstLog(id, number, await this.#firstEvent(temp, id, number, next));
      await temp.fill(number, 'jsonl', log.bytes, { sync: true });
    };
    try {
      if ((await folder.create(fill, { sync: true })) !== 'made') return false;
    } catch (error) {
      if (log !== undefined) await this.#takeBack(folder, id, number, log);
      throw error;
    }
    await numbering.afterFirst(folder, id, number);
    if (log !== undefined) await this.#keepBegun(folder, id, next, log);
    return true;
  }

  /** A log that has its name but may not survive a power cut goes again: nobody was told that its save is stored. */
  async #takeBack(folder: LogFolder, id: string, number: number, log: EncodedLog): Promise<void> {
    const { generations } = this.#deps;
    try {
      if ((await folder.list())?.topLog !== number) return;
      const sealed = await generations.seal(folder, id, number);
      // Unless somebody has gone on from it.
      if (
        sealed?.state !== 'whole' ||
        sealed.log.events.length !== 1 ||
        sealed.log.file.scan.lastSave !== log.sum
      )
        return;
      await generations.disk.remove(folder.pathOf(number, 'jsonl'));
    } catch {
      // The disk is not to be had; what went wrong first is reported.
      return undefined;
    }
  }

  /** The state as a base. Messages that are stored with a session are referred to: the file gets a second name, here. */
  async #firstEvent(folder: LogFolder, id: string, number: number, next: Checkpoint): Promise<LogEvent> {
    const shared = this.#storedElsewhere(id, next);
    if (shared === undefined) return nextEvent(undefined, next);
    const { disk } = this.#deps.generations;
    const base = folder.pathOf(number, 'base');
    try {
      await disk.fs.link(shared.path, base);
      if ((await disk.fs.stat(base)).identity === shared.identity) {
        await disk.syncFile(base);
        return nextEvent(undefined, next, shared);
      }
    } catch {
      // No links here, or that log has just gone on in another file. Then this one has its own copy.
      return nextEvent(undefined, next);
    }
    await disk.removeQuietly(base);
    return nextEvent(undefined, next);
  }

  /** The log that holds what a new one begins with: the one its messages come from, its session's, or the one it was forked from. */
  #storedElsewhere(id: string, next: Checkpoint): SharedMessages | undefined {
    const source = next.forkedFrom?.sessionId;
    return (
      this.#origins.get(next.messages) ??
      this.#deps.storedBy(id, next) ??
      (source === undefined ? undefined : sharedFrom(this.#known.get(source), next))
    );
  }

  #firstLog(id: string, generation: number, event: LogEvent): EncodedLog {
    return encodeLog([event], { kind: this.#deps.generations.kind.kind, id, generation });
  }

  /** Remembers the log that was just begun, with the very objects that were saved, if nobody has written since. */
  async #keepBegun(
    folder: LogFolder,
    id: string,
    next: Checkpoint,
    { sum }: EncodedLog,
  ): Promise<KnownLog | undefined> {
    const log = await this.#deps.generations.readNewest(folder, id);
    if (log?.file.scan.sum !== sum) return undefined;
    const known = knownFrom(log, next);
    known.isNameSynced = true;
    return this.#keep(known);
  }

  async #removeOlder(folder: LogFolder, known: KnownLog): Promise<void> {
    known.hasOlder = false;
    try {
      await folder.removeOlder(known.number);
    } catch {
      // What is superseded is only in the way: the next generation tries again.
      return undefined;
    }
  }

  /** Whether nobody has saved since the log was read. */
  async #isNewest(folder: LogFolder, known: KnownLog): Promise<boolean> {
    const { disk } = this.#deps.generations;
    const listing = await folder.list();
    if (listing?.topLog !== known.number) return false;
    const stat = await disk.statIfThere(known.file.path);
    return stat?.identity === known.file.identity && stat.size === known.file.scan.size;
  }

  /** Remembers what was read, so that the next save appends to it. */
  async #remember(log: StoredLog, checkpoint: Checkpoint): Promise<void> {
    const known = this.#known.get(log.id);
    const { scan, identity } = log.file;
    // A run that executes here grows from the objects it saved, not from a copy that somebody looked at meanwhile.
    if (known?.file.identity === identity && known.file.scan.sum === scan.sum) known.loaded = checkpoint;
    else if (!scan.isSealed) await this.#keep(knownFrom(log, checkpoint));
  }

  async #keep(log: KnownLog): Promise<KnownLog> {
    const { descriptors } = this.#deps.generations;
    for (const { file } of this.#known.keep(log)) await descriptors.close(file);
    return log;
  }

  async #forget(id: string): Promise<void> {
    const known = this.#known.get(id);
    if (known === undefined) return;
    this.#known.forget(id);
    await this.#deps.generations.descriptors.close(known.file);
  }
}

/** Not worth a new file. */
const SMALL_LOG_BYTES = 16 * 1024;

/** The highest generation that a writer would touch. */
function numberOf(found: Found): number {
  switch (found.kind) {
    case 'nothing':
      // A run that is begun anew is nobody's yet: not that of one whose lease is gone with its files.
      return Infinity;
    case 'open':
      return found.log.number;
    case 'closed':
    case 'sealed':
      return found.listing.top;
    default:
      return assertNever(found);
  }
}
