/** What a tool throws when it refuses or fails: the model reads a code, the path, and what to do next. */

export type WorkspaceErrorCode =
  | 'OUTSIDE_WORKSPACE'
  | 'PROTECTED_PATH'
  | 'INVALID_PATH'
  | 'SYMBOLIC_LINK'
  | 'NOT_FOUND'
  | 'NOT_A_FILE'
  | 'NOT_A_FOLDER'
  | 'NOT_TEXT'
  | 'TOO_LARGE'
  | 'TEXT_NOT_FOUND'
  | 'TEXT_NOT_UNIQUE'
  | 'CHANGED_MEANWHILE'
  | 'INVALID_PATTERN'
  | 'TIMED_OUT'
  | 'FILE_SYSTEM';

/** The message starts with the code, because the message is all that a tool result keeps of an error. */
export class WorkspaceError extends Error {
  readonly code: WorkspaceErrorCode;
  /** As it was given, or relative to the root. */
  readonly path: string;

  constructor(
    code: WorkspaceErrorCode,
    path: string,
    sentence: string,
    options?: { readonly cause: unknown },
  ) {
    super(`${code}: ${sentence}`, options);
    this.name = 'WorkspaceError';
    this.code = code;
    this.path = path;
  }
}

/** A system error in words that name the path in the workspace, not the place of the workspace on this machine. Others pass through. */
export function asWorkspaceError(error: unknown, path: string): unknown {
  const code = errnoOf(error);
  if (error instanceof WorkspaceError || code === undefined) return error;
  const shown = JSON.stringify(path);
  switch (code) {
    case 'ENOENT':
      return notFound(path, error);
    case 'ELOOP':
      return new WorkspaceError(
        'SYMBOLIC_LINK',
        path,
        `${shown} is or contains a symbolic link, and links are not followed.`,
        {
          cause: error,
        },
      );
    case 'ENOTDIR':
      return notAFolder(path, error);
    case 'EISDIR':
      return new WorkspaceError(
        'NOT_A_FILE',
        path,
        `${shown} is a folder. Give the path of a file; list_dir shows what it holds.`,
        {
          cause: error,
        },
      );
    case 'ENAMETOOLONG':
      return new WorkspaceError('INVALID_PATH', path, `${shown} is too long. Choose a shorter path.`, {
        cause: error,
      });
    default:
      return new WorkspaceError('FILE_SYSTEM', path, `${shown} cannot be used (${code}).`, { cause: error });
  }
}

export function notFound(path: string, cause?: unknown): WorkspaceError {
  const sentence = `${JSON.stringify(path)} does not exist. Look with list_dir or glob.`;
  return new WorkspaceError('NOT_FOUND', path, sentence, { cause });
}

export function notAFolder(path: string, cause?: unknown): WorkspaceError {
  const sentence = `${JSON.stringify(path)} is not a folder, or leads through one that is a file. Look with list_dir.`;
  return new WorkspaceError('NOT_A_FOLDER', path, sentence, { cause });
}

export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error instanceof WorkspaceError) return undefined;
  const code: unknown = Reflect.get(error, 'code');
  return typeof code === 'string' ? code : undefined;
}
