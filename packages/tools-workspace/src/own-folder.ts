/** Small files in a folder that belongs to us: each appears whole, and is durable when the call returns. */
import { createHash } from 'node:crypto';
import nodePath from 'node:path';
import type { Ids } from '@lousho/contract';
import type { FileCalls } from './file-calls.ts';
import { errnoOf } from './workspace-error.ts';

export interface OwnFolder {
  readonly path: string;
  readonly files: FileCalls;
  readonly ids: Ids;
  readonly canSync: boolean;
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export async function listNames({ files, path }: OwnFolder): Promise<string[]> {
  return (await files.readdir(path)).sort();
}

/** Gives `undefined` when it does not exist. */
export async function readOwnFile({ files, path }: OwnFolder, name: string): Promise<Buffer | undefined> {
  try {
    const handle = await files.open(nodePath.join(path, name), 'r');
    try {
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

export async function writeOwnFile(folder: OwnFolder, name: string, bytes: Uint8Array): Promise<void> {
  const { files, path, ids } = folder;
  // 1. Aside, under a name that nobody reads. Crash here: `prune` removes it.
  const aside = nodePath.join(path, `.${ids.random()}.tmp`);
  const handle = await files.open(aside, 'wx', 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
  // 2. Whole, under its name.
  await files.rename(aside, nodePath.join(path, name));
  await syncFolder(folder);
}

/** Gone already is fine. */
export async function removeOwnFile(folder: OwnFolder, name: string): Promise<void> {
  try {
    await folder.files.unlink(nodePath.join(folder.path, name));
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
  await syncFolder(folder);
}

async function syncFolder({ files, path, canSync }: OwnFolder): Promise<void> {
  if (!canSync) return;
  const handle = await files.open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
