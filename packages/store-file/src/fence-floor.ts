/**
 * The highest number of all runs that are gone, in a folder with one empty file of that name. A run that is begun anew gets a higher one,
 * so that no lease of an id ever has the number of an earlier one.
 */
import path from 'node:path';
import type { Disk } from './disk.ts';
import { codeOf } from './file-errors.ts';

export class FenceFloor {
  readonly #folder: string;

  constructor(
    readonly disk: Disk,
    storeFolder: string,
  ) {
    this.#folder = path.join(storeFolder, 'fences');
  }

  /** 0: no run is gone. */
  async read(): Promise<number> {
    const names = await this.disk.listIfThere(this.#folder);
    return Math.max(0, ...(names ?? []).map(numberOf));
  }

  async raise(number: number): Promise<void> {
    if ((await this.read()) >= number) return;
    await this.disk.makeFolders(this.#folder);
    // 1. The higher name. Crash here: two names, of which the higher counts.
    try {
      await this.disk.writeNew(path.join(this.#folder, nameOf(number)), Buffer.alloc(0), { sync: false });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    // 2. The lower ones go.
    for (const name of (await this.disk.listIfThere(this.#folder)) ?? [])
      if (numberOf(name) < number) await this.disk.remove(path.join(this.#folder, name));
  }
}

function nameOf(number: number): string {
  return String(number).padStart(10, '0');
}

function numberOf(name: string): number {
  return /^\d{10}$/.test(name) ? Number(name) : 0;
}
