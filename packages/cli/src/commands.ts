/** Every command, in the order of the help. */
import { registerPending } from './commands/pending.ts';
import type { Cli } from './cli.ts';

export function registerCommands(cli: Cli): void {
  registerPending(cli);
}
