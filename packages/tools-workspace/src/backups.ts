/** The contents that files had, each once, named by its hash. */
import nodePath from 'node:path';
import { readOwnFile, listNames, removeOwnFile, sha256, writeOwnFile, type OwnFolder } from './own-folder.ts';
import { errnoOf } from './workspace-error.ts';

/** A writer stores the content first and its record after: what is younger may be about to get one. */
const SAFE_AGE_MS = 3_600_000;

/** Gives the name that `loadBackup` takes. */
export async function storeBackup(folder: OwnFolder, bytes: Uint8Array, nowMs: number): Promise<string> {
  const hash = sha256(bytes);
  const stored = await readOwnFile(folder, hash);
  if (stored === undefined || sha256(stored) !== hash) await writeOwnFile(folder, hash, bytes);
  // It counts as new again, so that no `pruneBackups` beside us takes it for one that nobody needs.
  else await folder.files.utimes(nodePath.join(folder.path, hash), nowMs / 1000, nowMs / 1000);
  return hash;
}

/** Gives `undefined` when it is missing or is not what it was. */
export async function loadBackup(folder: OwnFolder, hash: string): Promise<Buffer | undefined> {
  const bytes = await readOwnFile(folder, hash);
  return bytes !== undefined && sha256(bytes) === hash ? bytes : undefined;
}

/** Removes what no record names, and unfinished files. Gives how many contents it removed. */
export async function pruneBackups(
  folder: OwnFolder,
  named: ReadonlySet<string>,
  nowMs: number,
): Promise<number> {
  let removedCount = 0;
  for (const name of await listNames(folder)) {
    if (named.has(name) || !(await isOlderThan(folder, name, nowMs - SAFE_AGE_MS))) continue;
    await removeOwnFile(folder, name);
    if (!name.endsWith('.tmp')) removedCount += 1;
  }
  return removedCount;
}

async function isOlderThan({ files, path }: OwnFolder, name: string, timeMs: number): Promise<boolean> {
  try {
    return (await files.lstat(nodePath.join(path, name))).mtimeMs < timeMs;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}
