/** `format.json`: which release wrote the folder. A newer one is refused and left as it is. */
import path from 'node:path';
import { ConfigurationError, SDKError } from '@lousho/contract';
import type { Disk } from './disk.ts';
import { isMissing } from './file-errors.ts';
import { FILE_FORMAT } from './log-lines.ts';

export class StoreFormat {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #file: string;
  /** Where files are written on their way to their names. */
  readonly #tempFolders: readonly string[];
  #isKnown = false;
  #isSwept = false;
  #writing: Promise<void> | undefined;

  constructor(disk: Disk, folder: string, tempFolders: readonly string[]) {
    this.#disk = disk;
    this.#folder = folder;
    this.#tempFolders = tempFolders;
    this.#file = path.join(folder, 'format.json');
  }

  /** Before anything is read. A folder that is not there yet is fine. @throws LOUSHO_STORE_VERSION_UNSUPPORTED, LOUSHO_STORE_READ_FAILED */
  async assertReadable(): Promise<void> {
    if (this.#isKnown) return;
    const text = await this.#read();
    if (text === undefined) return;
    const found = formatOf(text);
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

  /** Before anything is written. @throws as `assertReadable`, the file system's errors */
  async assertWritable(): Promise<void> {
    if (!this.#isKnown) await this.#make();
    if (this.#isSwept) return;
    this.#isSwept = true;
    for (const folder of this.#tempFolders) await this.#disk.removeOldTemps(folder);
  }

  async #make(): Promise<void> {
    await this.assertReadable();
    if (this.#isKnown) return;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
    // Another process may have been first, with another format.
    await this.assertReadable();
  }

  async #read(): Promise<string | undefined> {
    try {
      return (await this.#disk.readFile(this.#file)).toString('utf8');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
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
