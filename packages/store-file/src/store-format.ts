/** `format.json`: which release wrote the folder. A newer one is refused and left as it is. */
import path from 'node:path';
import { ConfigurationError, SDKError } from '@lousho/contract';
import type { Disk } from './disk.ts';
import { FILE_FORMAT } from './log-lines.ts';
import type { StorePlace } from './store-place.ts';

export interface StoreFormatDeps {
  readonly disk: Disk;
  readonly folder: string;
  readonly place: StorePlace;
  /** Where files are written on their way to their names. */
  readonly tempFolders: readonly string[];
  readonly networkKindOf: (folder: string) => string | undefined;
  readonly warn: (message: string) => void;
}

export class StoreFormat {
  readonly #deps: StoreFormatDeps;
  readonly #file: string;
  #isKnown = false;
  #writable: Promise<void> | undefined;
  #isOnLocalDisk = false;

  constructor(deps: StoreFormatDeps) {
    this.#deps = deps;
    this.#file = path.join(deps.folder, 'format.json');
  }

  /** Known from the first write on. */
  get isOnLocalDisk(): boolean {
    return this.#isOnLocalDisk;
  }

  /**
   * Before anything is read. A folder that is not there yet is fine.
   * @throws LOUSHO_CONFIG_INVALID, LOUSHO_STORE_VERSION_UNSUPPORTED, LOUSHO_STORE_READ_FAILED
   */
  async assertReadable(): Promise<void> {
    if (this.#isKnown) return;
    const { disk, place } = this.#deps;
    // Before the file in it: what is exchanged in between is taken for exchanged later.
    const identity = await place.look();
    const bytes = await disk.readIfThere(this.#file);
    if (bytes === undefined) return;
    const found = formatOf(bytes.toString('utf8'));
    if (found === undefined)
      throw new SDKError(
        'LOUSHO_STORE_READ_FAILED',
        { operation: 'open' },
        { message: `"${this.#file}" does not say which format the store has.`, retryable: false },
      );
    if (found > FILE_FORMAT)
      throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', { found, supported: FILE_FORMAT });
    place.keep(identity);
    this.#isKnown = true;
  }

  /**
   * Before anything is written. All callers wait for one promise, so they go on in the order in which they came.
   * @throws as `assertReadable`, the file system's errors
   */
  assertWritable(): Promise<void> {
    this.#writable ??= this.#makeWritable().catch((error: unknown) => {
      this.#writable = undefined;
      throw error;
    });
    return this.#writable;
  }

  async #makeWritable(): Promise<void> {
    await this.assertReadable();
    if (!this.#isKnown)
      await this.#write().catch((error: unknown) => {
        throw this.#deps.place.explainUnmade(error);
      });
    // Another process may have been first, with another format.
    await this.assertReadable();
    const { disk, tempFolders } = this.#deps;
    for (const folder of tempFolders) await disk.removeOldTemps(folder);
    this.#lookAtDisk();
  }

  /** On a network, other machines see names and ends of files later than this one does, and those are what leases and saves are made of. */
  #lookAtDisk(): void {
    const { folder, networkKindOf, warn } = this.#deps;
    const kind = networkKindOf(folder);
    this.#isOnLocalDisk = kind === undefined;
    if (kind === undefined) return;
    warn(
      `The Lousho store "${folder}" lies on ${kind}. Its leases hold among the processes of one machine: ` +
        'let no other machine use it, or use a local disk.',
    );
  }

  async #write(): Promise<void> {
    const { disk, folder } = this.#deps;
    await disk.makeFolders(folder);
    const bytes = Buffer.from(`${JSON.stringify({ format: FILE_FORMAT })}\n`);
    const temp = await disk.writeTemp(folder, bytes, { sync: true });
    if ((await disk.publish(temp, this.#file)) === 'made') await disk.syncFolder(folder);
  }
}

function formatOf(text: string): number | undefined {
  try {
    const { format } = JSON.parse(text) as { readonly format?: unknown };
    return typeof format === 'number' && Number.isInteger(format) && format >= 1 ? format : undefined;
  } catch {
    return undefined;
  }
}
