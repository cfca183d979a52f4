/** What `lousho` exits with, and from which errors that follows. */
import { SDKError, type ErrorCode } from '@lousho/contract';
import { CliError, type CliErrorCode } from './cli-error.ts';

export const exitCodes = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  awaitingApproval: 4,
  busy: 5,
  drift: 6,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
type ExitName = keyof typeof exitCodes;

/** Every code that is not a plain failure. */
const exitOfCode: { readonly [C in ErrorCode | CliErrorCode]?: ExitName } = {
  LOUSHO_SESSION_BUSY: 'busy',
  LOUSHO_SESSION_AWAITING_APPROVAL: 'awaitingApproval',
  LOUSHO_AGENT_DRIFT: 'drift',

  LOUSHO_CHECKPOINT_NOT_FOUND: 'notFound',
  LOUSHO_APPROVAL_NOT_FOUND: 'notFound',
  LOUSHO_APPROVAL_ORPHANED: 'notFound',
  LOUSHO_CLI_STORE_NOT_FOUND: 'notFound',
  LOUSHO_CLI_RUN_NOT_FOUND: 'notFound',

  LOUSHO_SESSION_ID_INVALID: 'usage',
  LOUSHO_INPUT_EMPTY: 'usage',
  LOUSHO_TOOL_ARGS_INVALID: 'usage',
  LOUSHO_CONFIG_INVALID: 'usage',
  LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE: 'usage',
  LOUSHO_CONFIG_MISSING_APPROVAL_STORE: 'usage',
  LOUSHO_SCHEDULE_INVALID: 'usage',
  LOUSHO_CLI_USAGE: 'usage',
  LOUSHO_CLI_CONFIG_INVALID: 'usage',
  LOUSHO_CLI_PACKAGE_MISSING: 'usage',
  LOUSHO_CLI_UNSUPPORTED: 'usage',
  LOUSHO_CLI_NEEDS_YES: 'usage',

  LOUSHO_SHUTDOWN: 'interrupted',
  LOUSHO_CLI_INTERRUPTED: 'interrupted',
};

export function exitCodeOf(error: unknown): ExitCode {
  if (!(error instanceof SDKError) && !(error instanceof CliError)) return exitCodes.failure;
  return exitCodes[exitOfCode[error.code] ?? 'failure'];
}
