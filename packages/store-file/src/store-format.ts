/** `format.json`: which release wrote the folder. A newer one is refused and left as it is. */
import path from 'node:path';
import { ConfigurationError, SDKError } from '@lousho/contract';
import type { Disk } from './disk.ts';
import { FILE_FORMAT } from './log-lines.ts';

export class StoreFormat {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #file: string;
  /** Where files are written on their way to their names. */
  readonly #tempFolders: readonly string[];
  #isKnown = false;
  #writable: Promise<void> | undefined;

  constructor(disk: Disk, folder: string, tempFolders: readonly string[]) {
    this.#disk = disk;
    this.#folder = folder;
    this.#tempFolders = tempFolders;
    this.#file = path.join(folder, 'format.json');
  }

  /** Before anything is read. A folder that is not there yet is fine. @throws LOUSHO_STORE_VERSION_UNSUPPORTED, LOUSHO_STORE_READ_FAILED */
  async assertReadable(): Promise<void> {
    if (this.#isKnown) return;
    const bytes = await this.#disk.readIfThere(this.#file);
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
    if (!this.#isKnown) await this.#write();
    // Another process may have been first, with another format.
    await this.assertReadable();
    for (const folder of this.#tempFolders) await this.#disk.removeOldTemps(folder);
  }

  async #write(): Promise<void> {
    await this.#disk.makeFolders(this.#folder);
    const bytes = Buffer.from(`${JSON.stringify({ format: FILE_FORMAT })}\n`);
    const temp = await this.#disk.writeTemp(this.#folder, bytes, { sync: true });
    if ((await this.#disk.publish(temp, this.#file)) === 'made') await this.#disk.syncFolder(this.#folder);
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
