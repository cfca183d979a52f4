/** Errors of the command line itself; those of Lousho pass through with their own codes. */

export type CliErrorCode =
  /** An option or argument is wrong. */
  | 'LOUSHO_CLI_USAGE'
  /** `lousho.config` or a module cannot be loaded, or exports the wrong thing. */
  | 'LOUSHO_CLI_CONFIG_INVALID'
  /** A package that the command needs is not installed. */
  | 'LOUSHO_CLI_PACKAGE_MISSING'
  /** There is no store at this place; nothing was created. */
  | 'LOUSHO_CLI_STORE_NOT_FOUND'
  /** The store is there, the run is not. */
  | 'LOUSHO_CLI_RUN_NOT_FOUND'
  /** The store has no such part, for example no list. */
  | 'LOUSHO_CLI_UNSUPPORTED'
  /** It would destroy something, nobody can be asked, and `--yes` was not given. */
  | 'LOUSHO_CLI_NEEDS_YES'
  /** A person was asked and said no. */
  | 'LOUSHO_CLI_DECLINED'
  /** Ctrl-C. */
  | 'LOUSHO_CLI_INTERRUPTED';

export interface CliErrorOptions {
  /** What to do next. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
}

export class CliError extends Error {
  readonly code: CliErrorCode;
  readonly hint: string | undefined;

  constructor(code: CliErrorCode, message: string, { hint, cause }: CliErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CliError';
    this.code = code;
    this.hint = hint;
  }
}
