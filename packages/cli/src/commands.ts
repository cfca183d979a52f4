/** Every command, in the order of the help. */
import type { Cli } from './cli.ts';
import { registerApprovalsList } from './commands/approvals-list.ts';
import { registerDoctor } from './commands/doctor.ts';
import { registerHistory } from './commands/history.ts';
import { registerLeasesList } from './commands/leases-list.ts';
import { registerPending } from './commands/pending.ts';
import { registerRunsList } from './commands/runs-list.ts';
import { registerShow } from './commands/runs-show.ts';
import { registerWatch } from './commands/runs-watch.ts';

export function registerCommands(cli: Cli): void {
  registerPending(cli);
  registerShow(cli);
  registerRunsList(cli);
  registerWatch(cli);
  registerHistory(cli);
  registerApprovalsList(cli);
  registerLeasesList(cli);
  registerDoctor(cli);
}
