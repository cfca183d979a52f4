/** Reads, replaces and removes one plain file of the workspace. Never a link, a device, a pipe or a socket. */
import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { flags } from './file-calls.ts';
import { lookAt, type OpenFolder } from './open-folder.ts';
import { isSameFile, type Workspace } from './workspace.ts';
import { WorkspaceError, errnoOf } from './workspace-error.ts';
import { shownPath } from './workspace-path.ts';

export interface FileContent {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

const TEMPORARY = /^\.lousho-[a-z0-9-]+\.tmp$/;
/** Longer than any write takes: what is older was left by a process that died. */
const LEFTOVER_AGE_MS = 3_600_000;

export function isTemporary(name: string): boolean {
  return TEMPORARY.test(name);
}

/** Gives `undefined` for a file that does not exist. @throws WorkspaceError NOT_A_FILE, SYMBOLIC_LINK, TOO_LARGE, FILE_SYSTEM */
export async function readPlainFile(
  workspace: Workspace,
  folder: OpenFolder,
  name: string,
  maxBytes: number,
): Promise<FileContent | undefined> {
  const seen = await lookAt(workspace, folder, name);
  if (seen === undefined) return undefined;
  const path = shownPath([...folder.names, name]);
  // Before the open: opening a device may already do something.
  requirePlain(seen, path);
  const handle = await workspace.files.open(folder.at(name), flags.read);
  try {
    const stats = await handle.stat();
    requirePlain(stats, path);
    await folder.verify();
    if (!isSameFile(seen, stats)) throw changedMeanwhile(path);
    return { bytes: await readAtMost(handle, stats, maxBytes, path), stats };
  } finally {
    await handle.close();
  }
}

/**
 * Puts a whole new content in place of the file, or makes it. Readers see the old one or the new one.
 *
 * `before` is what the caller read (`undefined`: no file): when another one stands there now, nothing is written.
 */
export async function replacePlainFile(
  workspace: Workspace,
  folder: OpenFolder,
  name: string,
  {
    bytes,
    mode,
    before,
  }: { readonly bytes: Uint8Array; readonly mode?: number | undefined; readonly before: Stats | undefined },
): Promise<void> {
  const { files, ports } = workspace;
  await removeLeftovers(workspace, folder);
  const aside = folder.at(`.lousho-${ports.ids.random()}.tmp`);
  await folder.verify();
  // 1. Write it aside. Crash here: a hidden file that lists leave out and a later write removes.
  const handle = await files.open(aside, flags.create, 0o666);
  try {
    try {
      await handle.writeFile(bytes);
      if (mode !== undefined) await handle.chmod(mode & 0o777);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await requireUnchanged(workspace, folder, name, before);
    await folder.verify();
    // 2. Move it there. A link that somebody put there meanwhile is replaced, not followed. Crash before or after: one of the two contents.
    await files.rename(aside, folder.at(name));
  } catch (error) {
    await removeIfThere(workspace, aside);
    throw error;
  }
  await folder.sync();
}

export async function removePlainFile(
  workspace: Workspace,
  folder: OpenFolder,
  name: string,
  before: Stats,
): Promise<void> {
  await requireUnchanged(workspace, folder, name, before);
  await folder.verify();
  await workspace.files.unlink(folder.at(name));
  await folder.sync();
}

async function readAtMost(handle: FileHandle, stats: Stats, maxBytes: number, path: string): Promise<Buffer> {
  if (stats.size > maxBytes) throw tooLarge(path, stats.size, maxBytes);
  const parts: Buffer[] = [];
  let byteCount = 0;
  // It may grow while it is read, and files of /proc say that they are empty: the end is where nothing comes any more.
  for (;;) {
    const part = Buffer.allocUnsafe(Math.max(1, Math.min(65_536, maxBytes + 1 - byteCount)));
    const { bytesRead } = await handle.read(part, 0, part.length, null);
    if (bytesRead === 0) return Buffer.concat(parts, byteCount);
    byteCount += bytesRead;
    if (byteCount > maxBytes) throw tooLarge(path, byteCount, maxBytes);
    parts.push(part.subarray(0, bytesRead));
  }
}

async function requireUnchanged(
  workspace: Workspace,
  folder: OpenFolder,
  name: string,
  before: Stats | undefined,
): Promise<void> {
  const now = await lookAt(workspace, folder, name);
  const isSame =
    before === undefined || now === undefined
      ? before === now
      : isSameFile(before, now) && before.mtimeMs === now.mtimeMs && before.size === now.size;
  if (!isSame) throw changedMeanwhile(shownPath([...folder.names, name]));
}

async function removeLeftovers(workspace: Workspace, folder: OpenFolder): Promise<void> {
  const oldestMs = workspace.ports.clock.wallMs() - LEFTOVER_AGE_MS;
  for (const name of (await workspace.files.readdir(folder.at('.'))).filter(isTemporary)) {
    const stats = await lookAt(workspace, folder, name);
    if (stats?.isFile() === true && stats.mtimeMs < oldestMs) await removeIfThere(workspace, folder.at(name));
  }
}

async function removeIfThere({ files }: Workspace, path: string): Promise<void> {
  try {
    await files.unlink(path);
  } catch (error) {
    // Gone is what was wanted; what else fails here leaves a hidden file, and must not hide the error that led here.
    if (errnoOf(error) === undefined) throw error;
  }
}

function requirePlain(stats: Stats, path: string): void {
  if (stats.isFile()) return;
  const what = stats.isDirectory() ? 'a folder' : 'a device, a pipe or a socket';
  const next = stats.isDirectory()
    ? 'list_dir shows what it holds.'
    : 'Only plain files can be read and written.';
  throw new WorkspaceError('NOT_A_FILE', path, `${JSON.stringify(path)} is ${what}. ${next}`);
}

function tooLarge(path: string, bytes: number, maxBytes: number): WorkspaceError {
  const sentence = `${JSON.stringify(path)} has ${bytes} bytes or more; at most ${maxBytes} are handled. Search it with a command instead.`;
  return new WorkspaceError('TOO_LARGE', path, sentence);
}

function changedMeanwhile(path: string): WorkspaceError {
  const sentence = `Somebody changed ${JSON.stringify(path)} meanwhile. Nothing was written; read it again first.`;
  return new WorkspaceError('CHANGED_MEANWHILE', path, sentence);
}
