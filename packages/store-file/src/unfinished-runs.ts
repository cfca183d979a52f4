/**
 * Which runs may be unfinished, so that a list of those does not look at those that are over.
 *
 * A run that begins, or goes on after its end, gets a mark: an empty file, named after the run and the place in its log where that happens.
 * 1. The mark is there, and survives a power cut, before that save gets its place. Crash here: a mark for nothing, one look too many.
 * 2. It goes after the save that ended the run is stored. Crash before: the same; a list takes it away.
 * A later beginning has a mark of its own at a later place, so whoever takes one away never takes that of another.
 */
import path from 'node:path';
import type { Disk } from './disk.ts';
import { codeOf, isMissing } from './file-errors.ts';
import type { FenceFloor } from './fence-floor.ts';

/** So many saves into the log with this number. */
export interface LogPlace {
  readonly number: number;
  readonly saves: number;
}

/** Before every place of a log. */
export const NOWHERE: LogPlace = { number: 0, saves: 0 };

const MARK = /^(.+)\.(\d{10})\.(\d+)$/;
const COMPLETE = '.complete';

export class UnfinishedRuns {
  readonly #folder: string;

  constructor(
    readonly disk: Disk,
    readonly floor: FenceFloor,
    storeFolder: string,
  ) {
    this.#folder = path.join(storeFolder, 'unfinished');
  }

  /** Before the save at this place. @param name of the run's folder */
  async mark(name: string, place: LogPlace): Promise<void> {
    const file = this.#pathOf(name, place);
    try {
      await this.#make(file);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await this.#makeFolder();
      await this.#make(file);
    }
    await this.disk.syncFolder(this.#folder);
  }

  /** Takes away the one mark that was made for this beginning. */
  async clear(name: string, place: LogPlace): Promise<void> {
    await this.disk.removeQuietly(this.#pathOf(name, place));
  }

  /** Takes away every mark of the run up to this place: it was over there. What is left costs a look, so a failure is none of the caller's. */
  async clearUpTo(name: string, place: LogPlace): Promise<void> {
    try {
      const places = (await this.#marks()).get(name) ?? [];
      for (const marked of places) if (!isBehind(marked, place)) await this.clear(name, marked);
    } catch {
      return undefined;
    }
  }

  /** The same for a run that is not there: nothing begins at a number that was deleted. */
  async clearDeleted(name: string): Promise<void> {
    await this.clearUpTo(name, { number: await this.floor.read(), saves: Infinity });
  }

  /** The names of all folders that may hold an unfinished run; `undefined` when the marks do not say. */
  async names(): Promise<readonly string[] | undefined> {
    // First whether they are complete: what is marked afterwards does no harm.
    if (!(await this.#isComplete())) return undefined;
    return [...(await this.#marks()).keys()];
  }

  /**
   * From now on the marks say it: `unfinished` is every run that is, by a look at all. Runs that begin meanwhile are marked by whoever
   * begins them.
   */
  async complete(unfinished: Iterable<readonly [name: string, place: LogPlace]>): Promise<void> {
    await this.#makeFolder();
    for (const [name, place] of unfinished) await this.#make(this.#pathOf(name, place));
    await this.disk.syncFolder(this.#folder);
    const identity = await this.#identity();
    const temp = await this.disk.writeTemp(this.#folder, Buffer.from(`${identity}\n`), { sync: true });
    await this.disk.replace(temp, path.join(this.#folder, COMPLETE));
  }

  /** Not those above it: a store that was taken away is not begun anew. */
  async #makeFolder(): Promise<void> {
    try {
      await this.disk.fs.makeFolder(this.#folder);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    await this.disk.syncFolder(path.dirname(this.#folder));
  }

  /** A copy of the folder may have been made while runs began: it is another folder, whatever stands in it. */
  async #isComplete(): Promise<boolean> {
    const kept = await this.disk.readIfThere(path.join(this.#folder, COMPLETE));
    return kept !== undefined && kept.toString('utf8') === `${await this.#identity()}\n`;
  }

  async #identity(): Promise<string | undefined> {
    return (await this.disk.statIfThere(this.#folder))?.identity;
  }

  async #marks(): Promise<ReadonlyMap<string, readonly LogPlace[]>> {
    const marks = new Map<string, LogPlace[]>();
    for (const file of (await this.disk.listIfThere(this.#folder)) ?? []) {
      const [, name, number, saves] = MARK.exec(file) ?? [];
      if (name === undefined) continue;
      const places = marks.get(name) ?? [];
      places.push({ number: Number(number), saves: Number(saves) });
      marks.set(name, places);
    }
    return marks;
  }

  /** One that is there already is as good. */
  async #make(file: string): Promise<void> {
    try {
      await this.disk.writeNew(file, Buffer.alloc(0), { sync: false });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }

  #pathOf(name: string, { number, saves }: LogPlace): string {
    return path.join(this.#folder, `${name}.${String(number).padStart(10, '0')}.${saves}`);
  }
}

function isBehind(place: LogPlace, other: LogPlace): boolean {
  return place.number > other.number || (place.number === other.number && place.saves > other.saves);
}
