/** `read_file` and `list_dir`. */
import { defineTool, type Tool } from '@lousho/contract';
import { z } from 'zod';
import { splitPath } from './change-file.ts';
import { withFolder } from './open-folder.ts';
import type { ToolDeps } from './options.ts';
import { readPlainFile } from './plain-files.ts';
import { cutBytes, requireText } from './text-file.ts';
import { listEntries } from './walk-files.ts';
import { notFound } from './workspace-error.ts';
import { namesBelowRoot, shownPath } from './workspace-path.ts';

export interface ReadFileResult {
  readonly path: string;
  readonly text: string;
  /** Of the first line of `text`, from 1. */
  readonly line: number;
  readonly totalLines: number;
  /** There is more: read on from this line. */
  readonly nextLine?: number;
  /** This line is longer than what one call gives, and only its begin is here. */
  readonly cutLine?: number;
}
export interface ListFolderResult {
  readonly path: string;
  readonly entries: readonly { readonly name: string; readonly type: 'file' | 'folder' | 'link' | 'other' }[];
  /** Not in the list any more. */
  readonly omittedEntries?: number;
}

export const pathInput = z.string().min(1).describe('Relative to the root folder, such as "src/index.ts".');

export function readFileTool({ workspace, limits }: ToolDeps): Tool {
  return defineTool({
    name: 'read_file',
    description: 'Reads a text file, or a part of it.',
    input: z.object({
      path: pathInput,
      line: z.int().min(1).optional().describe('The first line to read, from 1.'),
      lines: z.int().min(1).optional().describe('How many lines to read. Default: as many as fit.'),
    }),
    async execute({ path, line = 1, lines }): Promise<ReadFileResult> {
      const names = namesBelowRoot(path, workspace.paths);
      const { parent, name } = splitPath(names);
      const content = await withFolder(workspace, parent, (folder) =>
        readPlainFile(workspace, folder, name, limits.fileBytes),
      );
      if (content === undefined) throw notFound(shownPath(names));
      const all = requireText(content.bytes, shownPath(names)).split('\n');
      return { path: shownPath(names), ...pageOf(all, line, lines ?? all.length, limits.readBytes) };
    },
  });
}

export function listFolderTool({ workspace, limits }: ToolDeps): Tool {
  return defineTool({
    name: 'list_dir',
    description: 'Lists the files and folders of one folder.',
    input: z.object({ path: pathInput.default('.') }),
    async execute({ path }): Promise<ListFolderResult> {
      const names = namesBelowRoot(path, workspace.paths);
      const entries = await listEntries(workspace, names);
      const omittedEntries = Math.max(0, entries.length - limits.entries);
      return {
        path: shownPath(names),
        entries: entries.slice(0, limits.entries).map((entry) => {
          if (entry.isFile()) return { name: entry.name, type: 'file' };
          if (entry.isDirectory()) return { name: entry.name, type: 'folder' };
          return { name: entry.name, type: entry.isSymbolicLink() ? 'link' : 'other' };
        }),
        ...(omittedEntries === 0 ? undefined : { omittedEntries }),
      };
    },
  });
}

function pageOf(
  all: readonly string[],
  line: number,
  lineCount: number,
  maxBytes: number,
): Omit<ReadFileResult, 'path'> {
  const wanted = all.slice(line - 1, line - 1 + lineCount);
  const page: string[] = [];
  let leftBytes = maxBytes;
  for (const each of wanted) {
    leftBytes -= Buffer.byteLength(each) + 1;
    if (leftBytes < 0) break;
    page.push(each);
  }
  const first = wanted[0];
  const isCut = first !== undefined && page.length === 0;
  if (isCut) page.push(cutBytes(first, maxBytes));
  const next = line + page.length;
  return {
    text: page.join('\n'),
    line,
    totalLines: all.length,
    ...(next <= all.length && page.length > 0 ? { nextLine: next } : undefined),
    ...(isCut ? { cutLine: line } : undefined),
  };
}
