/** What `workspaceTools` takes, checked and with every default filled in. */
import { ConfigurationError, requireKnownOptions, type NeedsApproval } from '@lousho/contract';
import type { ChangeMemory } from './change-memory.ts';
import { safeEnvironment } from './process-group-ports.ts';
import { memoryOf, type WorkspaceCheckpoints } from './workspace-checkpoints.ts';
import { openWorkspace, realFolder, type Workspace, type WorkspaceInternals } from './workspace.ts';

export interface WorkspaceToolsOptions {
  /** The one folder that the tools see. It must exist. */
  readonly root: string;
  /** Remembers each file before a tool changes it. Made for the same root. */
  readonly checkpoints?: WorkspaceCheckpoints | undefined;
  /** Leaves out the tools that change something: `write_file`, `edit_file` and `shell`. Default `false`. */
  readonly readOnly?: boolean | undefined;
  /** `false` leaves it out. It is not confined: a command may do whatever this process may do. */
  readonly shell?: ShellOptions | false | undefined;
  /** Who must agree before `write_file` and `edit_file` run. Default `true`: a person. */
  readonly needsApproval?:
    { readonly write?: NeedsApproval | undefined; readonly edit?: NeedsApproval | undefined } | undefined;
  /** Names of folders that `glob` and `grep` leave out. Default `.git` and `node_modules`. */
  readonly skipFolders?: readonly string[] | undefined;
  readonly limits?: WorkspaceLimits | undefined;
}
export interface ShellOptions {
  /** Default `true`: a person sees each command before it runs. */
  readonly needsApproval?: NeedsApproval | undefined;
  /** The environment of the commands. Default: `PATH`, `HOME`, the language and the like; no keys. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Default 120,000. */
  readonly timeoutMs?: number | undefined;
  /** Of both outputs together; the middle is left out. Default 32 KB. */
  readonly maxOutputBytes?: number | undefined;
}
export interface WorkspaceLimits {
  /** Larger files are neither read nor changed. Default 4 MB. */
  readonly fileBytes?: number | undefined;
  /** What one `read_file` gives. Default 64 KB. */
  readonly readBytes?: number | undefined;
  /** What one `list_dir` gives. Default 500. */
  readonly entries?: number | undefined;
  /** What one `glob` or `grep` gives. Default 200. */
  readonly matches?: number | undefined;
  /** What one `glob` or `grep` looks at. Default 20,000. */
  readonly files?: number | undefined;
  /** Of one `grep`. Default 10,000. */
  readonly searchMs?: number | undefined;
}

export interface ToolDeps {
  readonly workspace: Workspace;
  readonly memory: ChangeMemory | undefined;
  readonly limits: Required<{ readonly [Name in keyof WorkspaceLimits]: number }>;
  readonly skipFolders: ReadonlySet<string>;
  readonly needsApproval: { readonly write: NeedsApproval; readonly edit: NeedsApproval };
  readonly readOnly: boolean;
  readonly shell: ResolvedShellOptions | undefined;
}
export interface ResolvedShellOptions {
  readonly needsApproval: NeedsApproval;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
}

/** @throws ConfigurationError LOUSHO_CONFIG_INVALID */
export function resolveToolsOptions(
  options: WorkspaceToolsOptions,
  internals: WorkspaceInternals = {},
): ToolDeps {
  const {
    root,
    checkpoints,
    readOnly = false,
    shell,
    needsApproval = {},
    skipFolders = ['.git', 'node_modules'],
  } = options;
  requireKnown(options);
  if (checkpoints !== undefined && checkpoints.root !== realFolder(root, 'root')) {
    const details = {
      option: 'checkpoints',
      got: checkpoints.root,
      want: `checkpoints of the same root, ${root}`,
    };
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', details);
  }
  const {
    fileBytes = 4_194_304,
    readBytes = 65_536,
    entries = 500,
    matches = 200,
    files = 20_000,
    searchMs = 10_000,
  } = options.limits ?? {};
  const limits = { fileBytes, readBytes, entries, matches, files, searchMs };
  for (const [name, value] of Object.entries(limits)) requireCount(`limits.${name}`, value);
  return {
    workspace: openWorkspace(root, checkpoints === undefined ? [] : [checkpoints.dir], internals),
    memory: checkpoints === undefined ? undefined : memoryOf(checkpoints),
    limits,
    skipFolders: new Set(skipFolders),
    needsApproval: { write: needsApproval.write ?? true, edit: needsApproval.edit ?? true },
    readOnly,
    shell: shell === false ? undefined : resolveShellOptions(shell ?? {}),
  };
}

/** `readonly` would leave the tools that change something in the list. */
function requireKnown(options: WorkspaceToolsOptions): void {
  requireKnownOptions<WorkspaceToolsOptions>('', options, {
    root: true,
    checkpoints: true,
    readOnly: true,
    shell: true,
    needsApproval: true,
    skipFolders: true,
    limits: true,
  });
  const { needsApproval, limits, shell } = options;
  requireKnownOptions<Gates>('needsApproval.', needsApproval ?? {}, { write: true, edit: true });
  requireKnownOptions<WorkspaceLimits>('limits.', limits ?? {}, {
    fileBytes: true,
    readBytes: true,
    entries: true,
    matches: true,
    files: true,
    searchMs: true,
  });
  requireKnownOptions<ShellOptions>('shell.', shell === false ? {} : (shell ?? {}), {
    needsApproval: true,
    env: true,
    timeoutMs: true,
    maxOutputBytes: true,
  });
}

type Gates = NonNullable<WorkspaceToolsOptions['needsApproval']>;

function resolveShellOptions(options: ShellOptions): ResolvedShellOptions {
  const {
    needsApproval = true,
    env = safeEnvironment(),
    timeoutMs = 120_000,
    maxOutputBytes = 32_768,
  } = options;
  requireCount('shell.timeoutMs', timeoutMs);
  requireCount('shell.maxOutputBytes', maxOutputBytes);
  return { needsApproval, env, timeoutMs, maxOutputBytes };
}

function requireCount(option: string, got: number): void {
  if (Number.isInteger(got) && got >= 1) return;
  throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
    option,
    got,
    want: 'a whole number of at least 1',
  });
}
