/** The tools of one folder, ready for an agent. */
import type { Tool } from '@lousho/contract';
import { editFileTool, writeFileTool } from './changing-tools.ts';
import { resolveToolsOptions, type WorkspaceToolsOptions } from './options.ts';
import { listFolderTool, readFileTool } from './reading-tools.ts';
import { globTool, grepTool } from './searching-tools.ts';
import { shellTool } from './shell-tool.ts';
import type { WorkspaceInternals } from './workspace.ts';

/**
 * `read_file`, `list_dir`, `glob` and `grep`; unless `readOnly`, also `write_file` and `edit_file`; unless `shell: false`, also `shell`.
 *
 * No file tool reads or writes outside of `root`. What one refuses is an `execution` failure whose text begins with a `WorkspaceErrorCode`.
 *
 * @throws ConfigurationError LOUSHO_CONFIG_INVALID
 */
export function workspaceTools(options: WorkspaceToolsOptions): readonly Tool[] {
  return makeTools(options, {});
}

export function makeTools(options: WorkspaceToolsOptions, internals: WorkspaceInternals): readonly Tool[] {
  const deps = resolveToolsOptions(options, internals);
  const reading = [readFileTool(deps), listFolderTool(deps), globTool(deps), grepTool(deps)];
  if (deps.readOnly) return reading;
  const shell = deps.shell === undefined ? [] : [shellTool(deps, deps.shell)];
  return [...reading, writeFileTool(deps), editFileTool(deps), ...shell];
}
