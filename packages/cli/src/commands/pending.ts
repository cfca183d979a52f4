/** `lousho pending`: every run that is not over, and why. */
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { runColumns, runDocument } from '../run-table.ts';
import { unfinished } from '../stored-runs.ts';
import { dim } from '../terminal/styled-line.ts';
import { count } from '../terminal/words.ts';
import { listedRuns } from './runs-list.ts';

export function registerPending(cli: Cli): void {
  cli.program
    .command('pending')
    .description('runs that are not over, oldest first, and why')
    .action(cli.action((context) => showPending(context)));
}

async function showPending(context: Context): Promise<void> {
  const { out } = context;
  const runs = await listedRuns(context, unfinished);
  if (out.json) return out.documentOf(runs.map(runDocument));
  if (runs.length === 0) return out.note('Nothing is pending.');
  await out.table(runColumns(context.nowMs), runs);
  out.note(dim(`${count(runs.length, 'run')}. ${context.command('show', '<id>')} tells more about one.`));
}
