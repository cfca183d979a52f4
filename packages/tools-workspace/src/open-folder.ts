/** Walks from the root to a folder, one name at a time, and never through a link: what is opened is inside of the root. */
import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import nodePath from 'node:path';
import { flags } from './file-calls.ts';
import { identityOf, isSameFile, type FolderIdentity, type Workspace } from './workspace.ts';
import { WorkspaceError, asWorkspaceError, errnoOf, notAFolder, notFound } from './workspace-error.ts';
import { shownPath } from './workspace-path.ts';

/** A folder inside of the root that cannot be exchanged unseen while it is open. */
export interface OpenFolder {
  readonly names: readonly string[];
  /** The path to give to the file system for an entry of the folder. */
  at(name: string): string;
  /** @throws WorkspaceError CHANGED_MEANWHILE when the folder is not at its place any more. Call it right before and after a step. */
  verify(): Promise<void>;
  /** Makes a new or gone entry durable, where the platform can. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** @throws WorkspaceError NOT_FOUND, NOT_A_FOLDER, SYMBOLIC_LINK, PROTECTED_PATH, FILE_SYSTEM */
export async function withFolder<Value>(
  workspace: Workspace,
  names: readonly string[],
  work: (folder: OpenFolder) => Promise<Value>,
  options: { readonly create?: boolean } = {},
): Promise<Value> {
  let folder = await openRoot(workspace);
  try {
    for (const name of names) {
      const inner = await openInner(workspace, folder, name, options.create === true);
      await folder.close();
      folder = inner;
    }
    return await work(folder);
  } catch (error) {
    throw asWorkspaceError(error, shownPath(names));
  } finally {
    await folder.close();
  }
}

/** @throws WorkspaceError SYMBOLIC_LINK for a link. Gives `undefined` for what does not exist. */
export async function lookAt(
  workspace: Workspace,
  folder: OpenFolder,
  name: string,
): Promise<Stats | undefined> {
  try {
    const stats = await workspace.files.lstat(folder.at(name));
    if (stats.isSymbolicLink()) throw await linkRefused(workspace, folder, name);
    return stats;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw asWorkspaceError(error, shownPath([...folder.names, name]));
  }
}

async function openRoot(workspace: Workspace): Promise<OpenFolder> {
  try {
    const stats = await workspace.files.lstat(workspace.root);
    if (!stats.isDirectory()) throw notAFolder('.');
    if (!workspace.byDescriptor)
      return folderByPath(workspace, [], [{ path: workspace.root, ...identityOf(stats) }]);
    return folderByDescriptor([], await workspace.files.open(workspace.root, flags.folder));
  } catch (error) {
    throw asWorkspaceError(error, '.');
  }
}

async function openInner(
  workspace: Workspace,
  folder: OpenFolder,
  name: string,
  create: boolean,
): Promise<OpenFolder> {
  const names = [...folder.names, name];
  let seen = await lookAt(workspace, folder, name);
  if (seen === undefined && create) {
    await makeFolder(workspace, folder, name);
    seen = await lookAt(workspace, folder, name);
  }
  if (seen === undefined) throw notFound(shownPath(names));
  if (!seen.isDirectory()) throw notAFolder(shownPath(names));
  const inner = await openSeen(workspace, folder, names, seen);
  if (workspace.closedFolders.some((closed) => isSameFile(closed, inner.identity))) {
    await inner.folder.close();
    const sentence = `${JSON.stringify(shownPath(names))} holds the backups of this workspace and is closed to tools.`;
    throw new WorkspaceError('PROTECTED_PATH', shownPath(names), sentence);
  }
  return inner.folder;
}

async function openSeen(
  workspace: Workspace,
  folder: OpenFolder,
  names: readonly string[],
  seen: Stats,
): Promise<{ readonly folder: OpenFolder; readonly identity: FolderIdentity }> {
  const path = folder.at(names.at(-1) ?? '.');
  if (!(folder instanceof FolderByDescriptor)) {
    const steps = folder instanceof FolderByPath ? folder.steps : [];
    const inner = folderByPath(workspace, names, [...steps, { path, ...identityOf(seen) }]);
    await inner.verify();
    return { folder: inner, identity: seen };
  }
  // A link that was put there since it was looked at fails here: the last name is opened without following it.
  const handle = await workspace.files.open(path, flags.folder);
  return { folder: folderByDescriptor(names, handle), identity: await handle.stat() };
}

async function makeFolder({ files }: Workspace, folder: OpenFolder, name: string): Promise<void> {
  await folder.verify();
  try {
    await files.mkdir(folder.at(name));
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
  await folder.sync();
}

async function linkRefused(
  { files, paths }: Workspace,
  folder: OpenFolder,
  name: string,
): Promise<WorkspaceError> {
  const path = shownPath([...folder.names, name]);
  // Where it leads is told only when it is relative: an absolute target is a place outside, and none of the model's business.
  const target = await files.readlink(folder.at(name));
  const isAbsolute = (paths.isWindows ? nodePath.win32 : nodePath.posix).isAbsolute(target);
  const leads = isAbsolute
    ? ''
    : ` It points to ${JSON.stringify(target)}: give that path if it is in the workspace.`;
  return new WorkspaceError(
    'SYMBOLIC_LINK',
    path,
    `${JSON.stringify(path)} is a symbolic link, and links are not followed.${leads}`,
  );
}

/* ── Linux: a folder is the descriptor that it was opened as ── */

class FolderByDescriptor implements OpenFolder {
  constructor(
    readonly names: readonly string[],
    private readonly handle: FileHandle,
  ) {}
  at(name: string): string {
    return `/proc/self/fd/${this.handle.fd}/${name}`;
  }
  // Nothing can come between: every call starts at the descriptor.
  async verify(): Promise<void> {}
  async sync(): Promise<void> {
    await this.handle.sync();
  }
  async close(): Promise<void> {
    await this.handle.close();
  }
}

function folderByDescriptor(names: readonly string[], handle: FileHandle): OpenFolder {
  return new FolderByDescriptor(names, handle);
}

/* ── Elsewhere: a folder is the chain of folders that led to it, looked at again around each step ── */

interface Step extends FolderIdentity {
  readonly path: string;
}

class FolderByPath implements OpenFolder {
  constructor(
    private readonly workspace: Workspace,
    readonly names: readonly string[],
    readonly steps: readonly Step[],
  ) {}
  at(name: string): string {
    return nodePath.join(this.steps.at(-1)?.path ?? this.workspace.root, name);
  }
  async verify(): Promise<void> {
    for (const step of this.steps) {
      const now = await this.workspace.files.lstat(step.path);
      if (now.isDirectory() && isSameFile(now, step)) continue;
      const path = shownPath(this.names);
      const sentence = `Somebody exchanged a folder on the way to ${JSON.stringify(path)} meanwhile. Nothing was done; try again.`;
      throw new WorkspaceError('CHANGED_MEANWHILE', path, sentence);
    }
  }
  // Windows cannot sync a folder, and there the entry is journalled by the file system.
  async sync(): Promise<void> {
    if (this.workspace.paths.isWindows) return;
    const handle = await this.workspace.files.open(this.at('.'), flags.folder);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
  async close(): Promise<void> {}
}

function folderByPath(workspace: Workspace, names: readonly string[], steps: readonly Step[]): OpenFolder {
  return new FolderByPath(workspace, names, steps);
}
