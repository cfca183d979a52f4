/** A store of your own: three methods over a folder of JSON files. Runs survive a crash of the process that executes them. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  assertCheckpointId,
  deepFreeze,
  parseCheckpoint,
  SDKError,
  type AgentStore,
  type Checkpoint,
} from '@lousho/contract';

export function jsonFiles(folder: string): AgentStore {
  return {
    checkpoints: {
      async save(id, checkpoint) {
        // As it is now: before the first await, and before anybody changes it.
        const [file, text] = [fileOf(folder, id), JSON.stringify(checkpoint)];
        const written = `${file}.${randomUUID()}`;
        await mkdir(folder, { recursive: true });
        await writeFile(written, text);
        // All of it or nothing: whoever reads meets the old file or the new one. Crash before: a stray file that nobody reads.
        await rename(written, file);
      },
      async load(id) {
        const text = await readFile(fileOf(folder, id), 'utf8').catch((error: NodeJS.ErrnoException) => {
          if (error.code === 'ENOENT') return null;
          throw new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'load', id }, { cause: error });
        });
        return text === null ? null : read(id, text);
      },
      async delete(id) {
        await rm(fileOf(folder, id), { force: true });
      },
    },
  };
}

/** Named by a hash: an id may be longer than a file name, and on some disks Order-7 and order-7 are one file. */
export function fileOf(folder: string, id: string): string {
  assertCheckpointId(id);
  return path.join(folder, `${createHash('sha256').update(id).digest('hex')}.json`);
}

/** What cannot be read is damage, and never "nothing there": a run would start over. */
function read(id: string, text: string): Checkpoint {
  try {
    return deepFreeze(parseCheckpoint(JSON.parse(text), id));
  } catch (cause) {
    // Written by a newer release, and refused for that.
    if (cause instanceof SDKError) throw cause;
    throw new SDKError('LOUSHO_CHECKPOINT_CORRUPT', { id, record: 'checkpoint' }, { cause });
  }
}
