/**
 * The folder that a store began with, and whether it is still the one at its path. Who renames it, or puts another in its place, has
 * run after run go on in files that nobody reads: so every write is refused from then on.
 */
import { ConfigurationError, SDKError } from '@lousho/contract';
import { whenAnswered, type Answer } from './answer.ts';
import type { Disk } from './disk.ts';
import { codeOf, isMissing } from './file-errors.ts';

export class StorePlace {
  #identity: string | undefined;

  constructor(
    readonly disk: Disk,
    /** Absolute. */
    readonly folder: string,
  ) {}

  /** What is at the path before anything is known of it. `undefined`: nothing yet. @throws LOUSHO_CONFIG_INVALID */
  async look(): Promise<string | undefined> {
    try {
      const stat = await this.disk.fs.stat(this.folder);
      if (stat.isFolder) return stat.identity;
    } catch (error) {
      if (isMissing(error)) return undefined;
      if (codeOf(error) === 'ENOTDIR')
        throw this.#invalid('the path of a folder; a part of this one is a file', error);
      throw error;
    }
    throw this.#invalid('the path of a folder; this is a file or a device');
  }

  /** From now on it has to be this one. */
  keep(identity: string | undefined): void {
    this.#identity ??= identity;
  }

  /**
   * Asked before anything is written by its path, and again before the write is acknowledged. `undefined`: it is the same, as a look on
   * the thread showed. @throws LOUSHO_STORE_REPLACED, also synchronously
   */
  assertSame(): Promise<void> | undefined {
    const isSame = this.#isSame();
    if (isSame instanceof Promise) return isSame.then((later) => this.#assert(later));
    this.#assert(isSame);
    return undefined;
  }

  /** What to report for a failure: that the folder was taken away, if that is why. */
  async explain(error: unknown): Promise<unknown> {
    try {
      if (await this.#isSame()) return error;
    } catch {
      // The disk is not to be had, as the failure says.
      return error;
    }
    return error instanceof SDKError && error.code === 'LOUSHO_STORE_REPLACED'
      ? error
      : this.replaced(this.folder, error);
  }

  replaced(file: string, cause?: unknown): SDKError {
    return new SDKError('LOUSHO_STORE_REPLACED', { path: file }, { cause });
  }

  /** What a failure means that kept the folder, or the first file in it, from being made. */
  explainUnmade(error: unknown): unknown {
    const code = codeOf(error);
    if (['EEXIST', 'ENOTDIR'].includes(code))
      return this.#invalid('the path of a folder; a part of this one is a file', error);
    if (['EACCES', 'EPERM', 'EROFS'].includes(code))
      return this.#invalid('the path of a folder that this process may make and write to', error);
    return error;
  }

  #isSame(): Answer<boolean> {
    if (this.#identity === undefined) return true;
    return whenAnswered(
      () => this.disk.fs.stat(this.folder),
      ({ identity }) => identity === this.#identity,
      (error) => {
        if (isMissing(error) || codeOf(error) === 'ENOTDIR') return false;
        throw error;
      },
    );
  }

  #assert(isSame: boolean): void {
    if (!isSame) throw this.replaced(this.folder);
  }

  #invalid(want: string, cause?: unknown): ConfigurationError {
    const details = { option: 'dir', got: this.folder, want };
    return new ConfigurationError('LOUSHO_CONFIG_INVALID', details, { cause });
  }
}
