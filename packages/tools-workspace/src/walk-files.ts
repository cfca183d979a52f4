/** Every plain file below a folder, in the order of their names. Links are not followed. */
import type { Dirent } from 'node:fs';
import { withFolder } from './open-folder.ts';
import { isTemporary } from './plain-files.ts';
import type { Workspace } from './workspace.ts';
import { WorkspaceError } from './workspace-error.ts';

export interface WalkOptions {
  /** Names of folders that are left out wherever they stand. */
  readonly skipFolders: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

/** Gives the names below the root. @throws WorkspaceError when the folder itself cannot be read; what goes wrong below it is left out. */
export async function* walkFiles(
  workspace: Workspace,
  start: readonly string[],
  { skipFolders, signal }: WalkOptions,
): AsyncGenerator<readonly string[]> {
  const open: (readonly string[])[] = [start];
  for (let names = open.pop(); names !== undefined; names = open.pop()) {
    signal.throwIfAborted();
    const entries = await readEntries(workspace, names, names === start);
    for (const entry of entries) if (entry.isFile()) yield [...names, entry.name];
    const folders = entries.filter((entry) => entry.isDirectory() && !skipFolders.has(entry.name));
    for (const folder of folders.reverse()) open.push([...names, folder.name]);
  }
}

export async function listEntries(workspace: Workspace, names: readonly string[]): Promise<Dirent[]> {
  return withFolder(workspace, names, async (folder) => {
    const entries = await workspace.files.readdir(folder.at('.'), { withFileTypes: true });
    await folder.verify();
    const shown = entries.filter((entry) => !isTemporary(entry.name));
    return shown.sort((one, other) => (one.name < other.name ? -1 : 1));
  });
}

async function readEntries(
  workspace: Workspace,
  names: readonly string[],
  isStart: boolean,
): Promise<Dirent[]> {
  try {
    return await listEntries(workspace, names);
  } catch (error) {
    // It went, became a link or cannot be read since it was listed, or it is the folder of the backups.
    if (error instanceof WorkspaceError && !isStart) return [];
    throw error;
  }
}
