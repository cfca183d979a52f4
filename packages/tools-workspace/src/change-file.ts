/** The one way in which a tool changes a file: read it, decide, remember it, write it. */
import type { ToolContext } from '@lousho/contract';
import { inTurn } from './mutation-queue.ts';
import { withFolder } from './open-folder.ts';
import { readPlainFile, replacePlainFile, type FileContent } from './plain-files.ts';
import type { ChangeMemory } from './change-memory.ts';
import type { Workspace } from './workspace.ts';
import { WorkspaceError, asWorkspaceError } from './workspace-error.ts';
import { shownPath } from './workspace-path.ts';

export interface ChangeDeps {
  readonly workspace: Workspace;
  readonly memory: ChangeMemory | undefined;
  readonly maxFileBytes: number;
}
export interface BeforeChange {
  readonly names: readonly string[];
  readonly content: FileContent | undefined;
  /** Folders that the change makes, outermost first. */
  readonly madeFolders: readonly (readonly string[])[];
}
export type Change<Result> =
  | { readonly type: 'write'; readonly bytes: Uint8Array; readonly result: Result }
  | { readonly type: 'nothing'; readonly result: Result };

/** @throws WorkspaceError */
export async function changeFile<Result>(
  { workspace, memory, maxFileBytes }: ChangeDeps,
  names: readonly string[],
  ctx: ToolContext,
  decide: (before: FileContent | undefined) => Change<Result> | Promise<Change<Result>>,
): Promise<Result> {
  return inTurn(workspace.root, async () => {
    const before = await readBefore(workspace, names, maxFileBytes);
    const change = await decide(before.content);
    ctx.signal.throwIfAborted();
    if (change.type === 'nothing') return change.result;
    // 1. Remember what was there. Crash here: a record of a change that did not happen; a rewind finds the file as it was.
    await memory?.remember(before, change.bytes, ctx);
    // 2. Make its folders, then put the new content there. Crash before, in between, after: the run calls again, and the record stays the first one.
    await writeChange(workspace, before, change.bytes);
    return change.result;
  });
}

async function readBefore(
  workspace: Workspace,
  names: readonly string[],
  maxBytes: number,
): Promise<BeforeChange> {
  const { parent, name } = splitPath(names);
  const madeFolders = await missingFolders(workspace, parent);
  if (madeFolders.length > 0) return { names, content: undefined, madeFolders };
  const content = await withFolder(workspace, parent, (folder) =>
    readPlainFile(workspace, folder, name, maxBytes),
  );
  return { names, content, madeFolders };
}

async function writeChange(
  workspace: Workspace,
  { names, content }: BeforeChange,
  bytes: Uint8Array,
): Promise<void> {
  const { parent, name } = splitPath(names);
  try {
    await withFolder(
      workspace,
      parent,
      (folder) =>
        replacePlainFile(workspace, folder, name, {
          bytes,
          mode: content?.stats.mode,
          before: content?.stats,
        }),
      { create: true },
    );
  } catch (error) {
    throw asWorkspaceError(error, shownPath(names));
  }
}

/** @throws WorkspaceError NOT_A_FILE for the root itself. */
export function splitPath(names: readonly string[]): {
  readonly parent: readonly string[];
  readonly name: string;
} {
  const name = names.at(-1);
  if (name !== undefined) return { parent: names.slice(0, -1), name };
  throw new WorkspaceError(
    'NOT_A_FILE',
    '.',
    '"." is the root folder. Give the path of a file; list_dir shows what there is.',
  );
}

async function missingFolders(
  workspace: Workspace,
  parent: readonly string[],
): Promise<(readonly string[])[]> {
  for (let depth = 1; depth <= parent.length; depth += 1) {
    try {
      await withFolder(workspace, parent.slice(0, depth), async () => {});
    } catch (error) {
      if (!(error instanceof WorkspaceError && error.code === 'NOT_FOUND')) throw error;
      return parent.slice(depth - 1).map((_, index) => parent.slice(0, depth + index));
    }
  }
  return [];
}
