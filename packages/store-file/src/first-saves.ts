/** The first save of a log: the log gets its name with the save in it, so nobody ever sees an empty one. */
import { nextEvent, type Checkpoint, type LogEvent } from '@lousho/contract';
import type { FoundLog } from './found-log.ts';
import type { Generations } from './generations.ts';
import { knownFrom, type KnownLog, type KnownLogs } from './known-logs.ts';
import type { LogFolder } from './log-folder.ts';
import { encodeLog, type EncodedLog } from './log-reader.ts';
import type { MessageOrigins } from './message-origins.ts';
import type { Numbering } from './numbering.ts';
import type { LogPlace, UnfinishedRuns } from './unfinished-runs.ts';

export interface FirstSavesDeps {
  readonly generations: Generations;
  readonly numbering: Numbering;
  readonly known: KnownLogs;
  readonly origins: MessageOrigins;
  readonly unfinished: UnfinishedRuns | undefined;
}

export class FirstSaves {
  readonly #deps: FirstSavesDeps;

  constructor(deps: FirstSavesDeps) {
    this.#deps = deps;
  }

  /** The first save of a log, which gets its name with the save in it. `false` when another writer was first. */
  async begin(
    folder: LogFolder,
    id: string,
    next: Checkpoint,
    found: Extract<FoundLog, { readonly kind: 'closed' }>,
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
    const begunAt = await this.#mark(folder, number, next);
    try {
      if ((await folder.publish(number, 'jsonl', log.bytes, { witness, sync: 'name' })) !== 'made')
        return false;
      await generations.disk.syncFolder(folder.root);
    } catch (error) {
      await this.#takeBack(folder, id, number, log);
      throw error;
    }
    const known = await this.#keepBegun(folder, id, next, log);
    if (known !== undefined) {
      known.begunAt = begunAt;
      known.hasOlder = false;
      await folder.removeOlderQuietly(number);
    }
    return true;
  }

  /** The first save of all. */
  async beginFolder(folder: LogFolder, id: string, next: Checkpoint): Promise<boolean> {
    const { numbering } = this.#deps;
    const number = await numbering.first();
    let log: EncodedLog | undefined;
    let begunAt: LogPlace | undefined;
    const fill = async (temp: LogFolder): Promise<void> => {
      begunAt = await this.#mark(folder, number, next);
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
    const known = log === undefined ? undefined : await this.#keepBegun(folder, id, next, log);
    if (known !== undefined) known.begunAt = begunAt;
    return true;
  }

  /** Before anybody can find the run. */
  async #mark({ name }: LogFolder, number: number, next: Checkpoint): Promise<LogPlace | undefined> {
    const { unfinished } = this.#deps;
    if (unfinished === undefined || next.status === 'finished') return undefined;
    const at = { number, saves: 1 };
    await unfinished.mark(name, at);
    return at;
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
    const shared = this.#deps.origins.find(id, next);
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
    return this.#deps.known.keep(known);
  }
}
