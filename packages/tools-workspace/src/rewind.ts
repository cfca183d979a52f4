/** Takes changes back, path by path. The records are the journal: one goes only after its file is what it was. */
import type { Stats } from 'node:fs';
import { loadBackup } from './backups.ts';
import { splitPath } from './change-file.ts';
import { stateBefore, type ChangeFolders } from './change-memory.ts';
import { readRecords, removeRecord, type ChangeRecord } from './change-records.ts';
import { withFolder, type OpenFolder } from './open-folder.ts';
import { sha256 } from './own-folder.ts';
import { readPlainFile, removePlainFile, replacePlainFile } from './plain-files.ts';
import { planRewind } from './rewind-plan.ts';
import type { RewindResult } from './workspace-checkpoints.ts';
import type { Workspace } from './workspace.ts';
import { WorkspaceError, errnoOf } from './workspace-error.ts';
import { namesBelowRoot } from './workspace-path.ts';

export interface ResolvedRewindOptions {
  readonly to: number;
  readonly sessionId: string | undefined;
  readonly dryRun: boolean;
  readonly force: boolean;
}
type SkipReason = RewindResult['skipped'][number]['reason'];
type Outcome = 'restored' | 'deleted' | 'unchanged';

/** More than any file that the tools write: what is larger was not written by them. */
const MAX_COMPARED_BYTES = 256 * 1024 * 1024;

export async function rewindChanges(
  workspace: Workspace,
  folders: ChangeFolders,
  options: ResolvedRewindOptions,
): Promise<RewindResult> {
  const { to, sessionId, dryRun, force } = options;
  const records = (await readRecords(folders.records)).filter(
    (record) => record.number >= to && (sessionId === undefined || record.sessionId === sessionId),
  );
  const lists: Record<Outcome, string[]> = { restored: [], deleted: [], unchanged: [] };
  const skipped: { path: string; reason: SkipReason }[] = [];
  for (const [path, newestFirst] of byPath(records.reverse())) {
    const current = await readCurrent(workspace, path);
    if (current.type === 'blocked') {
      skipped.push({ path, reason: current.reason });
      continue;
    }
    const plan = planRewind(newestFirst, current.state, force);
    if (plan.target !== undefined) {
      const content = await contentBefore(folders, plan.target);
      if (content === 'damaged') {
        skipped.push({ path, reason: 'backup-damaged' });
        continue;
      }
      lists[outcomeOf(plan.target, current.state)].push(path);
      if (!dryRun) {
        // 1. The file. Crash here: the next rewind finds it as it was before the oldest of these changes, which is as good as done.
        await takeBack(workspace, path, plan.target, content, current);
        // 2. The records, newest first: those that are left always reach back to the oldest.
        for (const record of plan.undone) await removeRecord(folders.records, record);
      }
    }
    if (plan.isCutShort) skipped.push({ path, reason: 'changed-since' });
  }
  return { dryRun, ...lists, skipped };
}

function byPath(records: readonly ChangeRecord[]): Map<string, ChangeRecord[]> {
  const groups = new Map<string, ChangeRecord[]>();
  for (const record of records) {
    const group = groups.get(record.path);
    if (group === undefined) groups.set(record.path, [record]);
    else group.push(record);
  }
  return groups;
}

type Current =
  | { readonly type: 'known'; readonly state: string; readonly stats: Stats | undefined }
  | { readonly type: 'blocked'; readonly reason: SkipReason };

async function readCurrent(workspace: Workspace, path: string): Promise<Current> {
  const { parent, name } = splitPath(namesBelowRoot(path, workspace.paths));
  try {
    const content = await withFolder(workspace, parent, (folder) =>
      readPlainFile(workspace, folder, name, MAX_COMPARED_BYTES),
    );
    if (content === undefined) return absent;
    return { type: 'known', state: sha256(content.bytes), stats: content.stats };
  } catch (error) {
    if (!(error instanceof WorkspaceError)) throw error;
    switch (error.code) {
      case 'NOT_FOUND':
        return absent;
      case 'TOO_LARGE':
        return { type: 'blocked', reason: 'too-large' };
      case 'SYMBOLIC_LINK':
      case 'NOT_A_FILE':
      case 'NOT_A_FOLDER':
        return { type: 'blocked', reason: 'not-a-file' };
      default:
        throw error;
    }
  }
}
const absent: Current = { type: 'known', state: 'absent', stats: undefined };

async function contentBefore(
  { backups }: ChangeFolders,
  { before }: ChangeRecord,
): Promise<Buffer | 'absent' | 'damaged'> {
  if (before.kind === 'absent') return 'absent';
  return (await loadBackup(backups, before.sha256)) ?? 'damaged';
}

function outcomeOf(target: ChangeRecord, state: string): Outcome {
  if (stateBefore(target) === state) return 'unchanged';
  return target.before.kind === 'absent' ? 'deleted' : 'restored';
}

async function takeBack(
  workspace: Workspace,
  path: string,
  { before }: ChangeRecord,
  content: Buffer | 'absent',
  current: Extract<Current, { type: 'known' }>,
): Promise<void> {
  const { parent, name } = splitPath(namesBelowRoot(path, workspace.paths));
  if (before.kind === 'absent' || content === 'absent') {
    const { stats } = current;
    if (stats !== undefined)
      await withFolder(workspace, parent, (folder) => removePlainFile(workspace, folder, name, stats));
    if (before.kind === 'absent') await removeEmptyFolders(workspace, before.madeFolders);
    return;
  }
  if (current.state === before.sha256) return;
  const replace = (folder: OpenFolder): Promise<void> =>
    replacePlainFile(workspace, folder, name, { bytes: content, mode: before.mode, before: current.stats });
  await withFolder(workspace, parent, replace, { create: true });
}

/** Innermost first. One that holds something else by now stays. */
async function removeEmptyFolders(workspace: Workspace, paths: readonly string[]): Promise<void> {
  for (const path of paths.toReversed()) {
    const { parent, name } = splitPath(namesBelowRoot(path, workspace.paths));
    try {
      await withFolder(workspace, parent, async (folder) => {
        await folder.verify();
        await workspace.files.rmdir(folder.at(name));
      });
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
  }
}

function isExpected(error: unknown): boolean {
  if (!(error instanceof WorkspaceError)) return false;
  const isKept = ['ENOTEMPTY', 'EEXIST'].includes(errnoOf(error.cause) ?? '');
  return isKept || ['NOT_FOUND', 'NOT_A_FOLDER', 'SYMBOLIC_LINK'].includes(error.code);
}
