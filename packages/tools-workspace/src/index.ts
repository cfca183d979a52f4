/** Tools for the files of one folder, and the way back from what they changed. */
export { workspaceTools } from './workspace-tools.ts';
export { type WorkspaceToolsOptions, type ShellOptions, type WorkspaceLimits } from './options.ts';
export {
  WorkspaceCheckpoints,
  type WorkspaceCheckpointsOptions,
  type WorkspaceChange,
  type RewindOptions,
  type RewindResult,
  type PruneChangesResult,
} from './workspace-checkpoints.ts';
export { WorkspaceError, type WorkspaceErrorCode } from './workspace-error.ts';
export { type ReadFileResult, type ListFolderResult } from './reading-tools.ts';
export { type WriteFileResult, type EditFileResult } from './changing-tools.ts';
export { type GlobResult, type GrepResult } from './searching-tools.ts';
export { type CommandOutcome } from './run-command.ts';
