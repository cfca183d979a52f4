/** The way back: which files the tools changed, and the workspace as it was before. */
import { mkdirSync, realpathSync } from 'node:fs';
import nodePath from 'node:path';
import { ConfigurationError, resolvePorts } from '@lousho/contract';
import { pruneBackups } from './backups.ts';
import { changeMemory, type ChangeFolders, type ChangeMemory } from './change-memory.ts';
import { readRecords, removeRecord, type ChangeRecord } from './change-records.ts';
import { nodeFiles } from './file-calls.ts';
import { inTurn } from './mutation-queue.ts';
import type { OwnFolder } from './own-folder.ts';
import { rewindChanges } from './rewind.ts';
import { openWorkspace, realFolder, type Workspace, type WorkspaceInternals } from './workspace.ts';

export interface WorkspaceCheckpointsOptions {
  /** The same folder as that of the tools. */
  readonly root: string;
  /** Where the copies are kept. Made when it is missing. Below `root` it is closed to the tools. It must be used for this root only. */
  readonly dir: string;
}
/** One change that a tool made, or was about to make when its process died. */
export interface WorkspaceChange {
  /** What `rewind({ to })` takes. Grows with each change. */
  readonly number: number;
  readonly path: string;
  /** What was there before. */
  readonly before: 'absent' | 'file';
  readonly toolName: string;
  readonly toolCallId: string;
  readonly runId: string;
  readonly sessionId?: string | undefined;
  readonly step: number;
  /** ISO 8601. */
  readonly changedAt: string;
}
export interface RewindOptions {
  /** Undoes the change of this number and all later ones. Default: all. */
  readonly to?: number | undefined;
  /** Only the changes of this session. */
  readonly sessionId?: string | undefined;
  /** Only says what would be done. Default `false`. */
  readonly dryRun?: boolean | undefined;
  /** Also takes back files that somebody else changed since: what they wrote is lost. Default `false`. */
  readonly force?: boolean | undefined;
}
/** Paths relative to the root, each in one of the lists; a file that was taken back in part is also in `skipped`. */
export interface RewindResult {
  readonly dryRun: boolean;
  /** Have the content from before again. */
  readonly restored: readonly string[];
  /** Were made by the tools, and are gone. */
  readonly deleted: readonly string[];
  /** Were as before already. */
  readonly unchanged: readonly string[];
  readonly skipped: readonly {
    readonly path: string;
    /** `not-a-file`: a link, a folder or a device stands there now. `too-large`: it cannot be compared. Neither is forced. */
    readonly reason: 'changed-since' | 'not-a-file' | 'too-large' | 'backup-damaged';
  }[];
}
export interface PruneChangesResult {
  readonly changes: number;
  readonly backups: number;
}

/** What it holds, for the tools of this package. */
const opened = new WeakMap<
  WorkspaceCheckpoints,
  { readonly workspace: Workspace; readonly folders: ChangeFolders }
>();

export class WorkspaceCheckpoints {
  readonly root: string;
  readonly dir: string;

  /** @throws ConfigurationError LOUSHO_CONFIG_INVALID when a folder cannot be used. */
  constructor({ root, dir }: WorkspaceCheckpointsOptions, internals: WorkspaceInternals = {}) {
    const folders = makeFolders(dir, internals);
    this.dir = realpathSync.native(dir);
    this.root = realFolder(root, 'root');
    if (this.root === this.dir || this.root.startsWith(this.dir + nodePath.sep))
      throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
        option: 'dir',
        got: dir,
        want: 'a folder beside the root or below it',
      });
    opened.set(this, { workspace: openWorkspace(root, [this.dir], internals), folders });
  }

  /** Oldest first. @throws SDKError LOUSHO_STORE_READ_FAILED, LOUSHO_STORE_VERSION_UNSUPPORTED */
  async list({ sessionId }: { readonly sessionId?: string | undefined } = {}): Promise<
    readonly WorkspaceChange[]
  > {
    const records = await readRecords(partsOf(this).folders.records);
    return records
      .filter((record) => sessionId === undefined || record.sessionId === sessionId)
      .map(shownChange);
  }

  /**
   * Gives every file that the tools changed the content it had before, and removes those that they made. Safe to call again when a
   * crash cut it off.
   *
   * @throws SDKError LOUSHO_STORE_READ_FAILED, LOUSHO_STORE_VERSION_UNSUPPORTED; WorkspaceError FILE_SYSTEM
   */
  async rewind({
    to = 1,
    sessionId,
    dryRun = false,
    force = false,
  }: RewindOptions = {}): Promise<RewindResult> {
    if (!Number.isInteger(to) || to < 1)
      throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
        option: 'to',
        got: to,
        want: 'the number of a change',
      });
    const { workspace, folders } = partsOf(this);
    return inTurn(workspace.root, () => rewindChanges(workspace, folders, { to, sessionId, dryRun, force }));
  }

  /**
   * Forgets changes that are older than this: they cannot be taken back any more. Then removes copies that no change needs.
   *
   * @throws ConfigurationError LOUSHO_CONFIG_INVALID for a negative age
   */
  async prune({ olderThanMs }: { readonly olderThanMs: number }): Promise<PruneChangesResult> {
    if (!(olderThanMs >= 0))
      throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
        option: 'olderThanMs',
        got: olderThanMs,
        want: '>= 0',
      });
    const { workspace, folders } = partsOf(this);
    return inTurn(workspace.root, () => pruneChanges(workspace, folders, olderThanMs));
  }
}

export function memoryOf(checkpoints: WorkspaceCheckpoints): ChangeMemory {
  const { folders, workspace } = partsOf(checkpoints);
  return changeMemory(folders, workspace);
}

function partsOf(checkpoints: WorkspaceCheckpoints): {
  readonly workspace: Workspace;
  readonly folders: ChangeFolders;
} {
  const parts = opened.get(checkpoints);
  if (parts === undefined) throw new TypeError('Make WorkspaceCheckpoints with `new`.');
  return parts;
}

function makeFolders(
  dir: string,
  { files = nodeFiles, ports = resolvePorts() }: WorkspaceInternals,
): ChangeFolders {
  const folder = (name: string): OwnFolder => {
    const path = nodePath.join(nodePath.resolve(dir), name);
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
    } catch (error) {
      const details = { option: 'dir', got: dir, want: 'a folder that can be written' };
      throw new ConfigurationError('LOUSHO_CONFIG_INVALID', details, { cause: error });
    }
    return { path, files, ids: ports.ids, canSync: process.platform !== 'win32' };
  };
  return { records: folder('changes'), backups: folder('contents') };
}

async function pruneChanges(
  { ports }: Workspace,
  { records, backups }: ChangeFolders,
  olderThanMs: number,
): Promise<PruneChangesResult> {
  const nowMs = ports.clock.wallMs();
  const needed = new Set<string>();
  let changeCount = 0;
  for (const record of await readRecords(records)) {
    if (Date.parse(record.changedAt) < nowMs - olderThanMs) {
      await removeRecord(records, record);
      changeCount += 1;
    } else if (record.before.kind === 'file') needed.add(record.before.sha256);
  }
  return { changes: changeCount, backups: await pruneBackups(backups, needed, nowMs) };
}

function shownChange(record: ChangeRecord): WorkspaceChange {
  const { number, path, before, toolName, toolCallId, runId, sessionId, step, changedAt } = record;
  const session = sessionId === undefined ? undefined : { sessionId };
  return { number, path, before: before.kind, toolName, toolCallId, runId, ...session, step, changedAt };
}
