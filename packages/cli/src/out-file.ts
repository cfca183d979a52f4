/** Where data goes that may be long: stdout, or a file that takes its name when it is whole. */
import fs from 'node:fs';
import path from 'node:path';
import type { Context } from './context.ts';

export interface OutFile {
  /** Rejects with what reading or writing throws; then there is no such file, or the one of before. */
  write(pieces: AsyncIterable<string> | Iterable<string>): Promise<void>;
}

/** Asks before an existing file is replaced. @throws what `context.confirm` throws */
export async function outFile(context: Context, name: string | undefined): Promise<OutFile> {
  const { out } = context;
  if (name === undefined)
    return {
      async write(pieces) {
        for await (const batch of inBatches(pieces)) await out.raw(batch);
      },
    };
  const file = path.resolve(context.cwd, name);
  if (fs.existsSync(file)) await context.confirm(`Replace "${name}"?`);
  return { write: (pieces) => writeWhole(file, pieces) };
}

async function writeWhole(file: string, pieces: AsyncIterable<string> | Iterable<string>): Promise<void> {
  const part = `${file}.part`;
  const handle = await fs.promises.open(part, 'w');
  try {
    for await (const batch of inBatches(pieces)) await handle.write(batch);
    // 1. On the disk. Crash before it: a part beside, which the next export writes over.
    await handle.sync();
    await handle.close();
  } catch (error) {
    await handle.close();
    await fs.promises.rm(part, { force: true });
    throw error;
  }
  // 2. Under its name, whole.
  await fs.promises.rename(part, file);
}

/** A write for some hundred lines, not for each. */
const BATCH_LENGTH = 64 * 1024;

async function* inBatches(pieces: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string, void> {
  let batch = '';
  for await (const piece of pieces) {
    batch += piece;
    if (batch.length < BATCH_LENGTH) continue;
    yield batch;
    batch = '';
  }
  if (batch !== '') yield batch;
}
