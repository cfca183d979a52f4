/** `lousho prune`: removes what is old, says before how much that is. Ctrl-C ends it at once: what is not removed yet, the next one removes. */
import type { CheckpointStatus, PruneOptions, PruneResult } from '@lousho/contract';
import { InvalidArgumentError } from 'commander';
import { CliError } from '../cli-error.ts';
import { durationMs, type Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { count, duration } from '../terminal/words.ts';

interface PruneCommandOptions {
  readonly olderThan: number;
  readonly status?: readonly CheckpointStatus[];
  readonly dryRun?: boolean;
}

export function registerPrune(cli: Cli): void {
  cli.program
    .command('prune')
    .description('remove runs whose last save is old; never one that executes or waits for a decision')
    .requiredOption('--older-than <time>', 'age of the last save, for example 30d', durationMs)
    .option('--status <statuses>', 'finished, in-progress, awaiting-approval (default: finished)', statuses)
    .option('--dry-run', 'count, remove nothing')
    .action(cli.action((context, options: PruneCommandOptions) => prune(context, options)));
}

async function prune(context: Context, options: PruneCommandOptions): Promise<void> {
  const { olderThan: olderThanMs, status: statuses, dryRun = false } = options;
  const pruneStore = await pruning(context);
  const request = { olderThanMs, statuses };
  const expected = await pruneStore({ ...request, dryRun: true });
  const age = `whose last save is older than ${duration(olderThanMs)}`;
  if (!dryRun && !isNothing(expected))
    await context.confirm(`Remove ${words(expected)} ${age}? They cannot be brought back.`);
  const result = dryRun || isNothing(expected) ? expected : await pruneStore(request);
  const { out } = context;
  if (out.json) return out.document({ ...result, dryRun });
  if (isNothing(result)) return out.note(`There is nothing ${age}.`);
  await out.lines([`${dryRun ? 'would remove' : 'removed'} ${words(result)}`]);
}

async function pruning(context: Context): Promise<(options: PruneOptions) => Promise<PruneResult>> {
  const store = await context.store();
  const { checkpoints } = store;
  if (store.prune !== undefined) return store.prune.bind(store);
  if (checkpoints?.prune !== undefined) return checkpoints.prune.bind(checkpoints);
  throw new CliError('LOUSHO_CLI_UNSUPPORTED', 'The store has no prune.');
}

function words({ checkpoints, historyEntries, approvals, sessions }: PruneResult): string {
  return [
    count(checkpoints, 'run'),
    count(historyEntries, 'history entry', 'history entries'),
    count(approvals, 'approval'),
    count(sessions, 'session'),
  ].join(', ');
}

function isNothing(result: PruneResult): boolean {
  return Object.values(result).every((amount) => amount === 0);
}

const known: readonly CheckpointStatus[] = ['finished', 'in-progress', 'awaiting-approval'];

function statuses(text: string): readonly CheckpointStatus[] {
  return text.split(',').map((word) => {
    const status = known.find((candidate) => candidate === word.trim());
    if (status === undefined)
      throw new InvalidArgumentError(`It must be of ${known.join(', ')}, with commas.`);
    return status;
  });
}
