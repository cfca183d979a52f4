/** `glob` and `grep`. */
import { defineTool, type Tool } from '@lousho/contract';
import { z } from 'zod';
import { splitPath } from './change-file.ts';
import { globFilter } from './glob-pattern.ts';
import { startLineSearch, type LineSearch } from './line-search.ts';
import { lookAt, withFolder } from './open-folder.ts';
import type { ToolDeps } from './options.ts';
import { readPlainFile } from './plain-files.ts';
import { pathInput } from './reading-tools.ts';
import { textOfBytes } from './text-file.ts';
import { walkFiles } from './walk-files.ts';
import { WorkspaceError, notFound } from './workspace-error.ts';
import { namesBelowRoot, shownPath } from './workspace-path.ts';

export interface GlobResult {
  /** Relative to the root. */
  readonly paths: readonly string[];
  /** There may be more. */
  readonly isCut?: true;
}
export interface GrepResult {
  readonly matches: readonly { readonly path: string; readonly line: number; readonly text: string }[];
  /** There may be more. */
  readonly isCut?: true;
  /** No text, too large, or unreadable. */
  readonly skippedFiles?: number;
}

export function globTool(deps: ToolDeps): Tool {
  const { workspace, limits } = deps;
  return defineTool({
    name: 'glob',
    description:
      'Finds files by their names. Knows *, ?, [a-z], ** and {a,b}; without a slash it looks at every depth.',
    input: z.object({ pattern: z.string().min(1), path: pathInput.default('.') }),
    async execute({ pattern, path }, { signal }): Promise<GlobResult> {
      const start = namesBelowRoot(path, workspace.paths);
      const isWanted = globFilter(pattern);
      const paths: string[] = [];
      let seenCount = 0;
      for await (const names of walkFiles(workspace, start, { skipFolders: deps.skipFolders, signal })) {
        seenCount += 1;
        if (seenCount > limits.files) return { paths, isCut: true };
        if (!isWanted(names.slice(start.length))) continue;
        if (paths.length === limits.matches) return { paths, isCut: true };
        paths.push(shownPath(names));
      }
      return { paths };
    },
  });
}

export function grepTool(deps: ToolDeps): Tool {
  const { workspace, limits } = deps;
  return defineTool({
    name: 'grep',
    description:
      'Finds lines by a regular expression (JavaScript), in one file or in all files below a folder.',
    input: z.object({
      pattern: z.string().min(1),
      path: pathInput.default('.'),
      glob: z.string().min(1).optional().describe('Only files whose path matches, such as "*.ts".'),
      literal: z.boolean().default(false).describe('Take the pattern as plain text.'),
      ignore_case: z.boolean().default(false),
    }),
    async execute(
      { pattern, path, glob, literal, ignore_case: ignoreCase },
      { signal },
    ): Promise<GrepResult> {
      const start = namesBelowRoot(path, workspace.paths);
      const isWanted = glob === undefined ? () => true : globFilter(glob);
      const { clock } = workspace.ports;
      const expression = { pattern, isLiteral: literal, ignoreCase };
      const search = startLineSearch(expression, { clock, timeoutMs: limits.searchMs, signal });
      try {
        return await searchFiles(deps, start, isWanted, search, signal);
      } finally {
        await search.end();
      }
    },
  });
}

async function searchFiles(
  deps: ToolDeps,
  start: readonly string[],
  isWanted: (names: readonly string[]) => boolean,
  search: LineSearch,
  signal: AbortSignal,
): Promise<GrepResult> {
  const { limits } = deps;
  const matches: GrepResult['matches'][number][] = [];
  let seenCount = 0;
  let skippedFiles = 0;
  const result = (isCut: boolean): GrepResult => ({
    matches: matches.slice(0, limits.matches),
    ...(isCut ? { isCut } : undefined),
    ...(skippedFiles === 0 ? undefined : { skippedFiles }),
  });
  for await (const names of filesFrom(deps, start, signal)) {
    if (names !== start && !isWanted(names.slice(start.length))) continue;
    seenCount += 1;
    if (seenCount > limits.files) return result(true);
    const text = await textOf(deps, names, names === start);
    if (text === undefined) {
      skippedFiles += 1;
      continue;
    }
    // One more than is given tells whether there are more.
    const found = await search.linesOf(text, limits.matches + 1 - matches.length);
    matches.push(...found.map((line) => ({ path: shownPath(names), ...line })));
    if (matches.length > limits.matches) return result(true);
  }
  return result(false);
}

/** The file itself, when it is one. */
async function* filesFrom(
  deps: ToolDeps,
  start: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<readonly string[]> {
  if (await isFile(deps, start)) yield start;
  else yield* walkFiles(deps.workspace, start, { skipFolders: deps.skipFolders, signal });
}

async function isFile({ workspace }: ToolDeps, names: readonly string[]): Promise<boolean> {
  if (names.length === 0) return false;
  const { parent, name } = splitPath(names);
  const stats = await withFolder(workspace, parent, (folder) => lookAt(workspace, folder, name));
  if (stats === undefined) throw notFound(shownPath(names));
  return !stats.isDirectory();
}

async function textOf(
  { workspace, limits }: ToolDeps,
  names: readonly string[],
  isNamed: boolean,
): Promise<string | undefined> {
  const { parent, name } = splitPath(names);
  try {
    const content = await withFolder(workspace, parent, (folder) =>
      readPlainFile(workspace, folder, name, limits.fileBytes),
    );
    return content === undefined ? undefined : textOfBytes(content.bytes);
  } catch (error) {
    // One of many that cannot be read does not hold back the others.
    if (error instanceof WorkspaceError && !isNamed) return undefined;
    throw error;
  }
}
