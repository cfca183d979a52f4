/** Asks before something is destroyed. */
import { CliError } from './cli-error.ts';
import type { Io } from './node-io.ts';
import { visible } from './terminal/visible-text.ts';

export interface ConfirmOptions {
  readonly io: Io;
  readonly yes: boolean;
}

/**
 * Resolves when it may be done. `question` ends in a question mark.
 * @throws CliError LOUSHO_CLI_NEEDS_YES (nobody can be asked), LOUSHO_CLI_DECLINED, LOUSHO_CLI_INTERRUPTED
 */
export async function confirm(question: string, { io, yes }: ConfirmOptions): Promise<void> {
  if (yes) return;
  if (!canAsk(io))
    throw new CliError('LOUSHO_CLI_NEEDS_YES', `${question} Nobody can be asked here.`, {
      hint: 'Add --yes when it is meant. Nothing was changed.',
    });
  const { confirm: ask, isCancel } = await import('@clack/prompts');
  // stdout is for data.
  const answer = await ask({
    message: visible(question),
    initialValue: false,
    input: io.stdin,
    output: io.stderr,
  });
  if (isCancel(answer)) throw new CliError('LOUSHO_CLI_INTERRUPTED', 'Nothing was changed.');
  if (!answer) throw new CliError('LOUSHO_CLI_DECLINED', 'Nothing was changed.');
}

/** Whether a person sits in front of it. */
function canAsk({ stdin, stdout, stderr }: Io): boolean {
  return stdin.isTTY === true && stdout.isTTY === true && stderr.isTTY === true;
}
