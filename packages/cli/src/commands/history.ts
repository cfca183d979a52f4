/** `lousho history <id>`: the saves of a run that are kept, newest first: where a fork can begin. */
import {
  getCheckpointHistory,
  lastAssistantText,
  lastStep,
  type CheckpointHistoryEntry,
} from '@lousho/contract';
import { wholeNumber, type Cli } from '../cli.ts';
import { CliError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { findRun } from '../find-run.ts';
import { dim } from '../terminal/styled-line.ts';
import type { Column } from '../terminal/table.ts';
import { ago, count } from '../terminal/words.ts';

interface HistoryOptions {
  readonly limit?: number | undefined;
}

export function registerHistory(cli: Cli): void {
  cli.program
    .command('history')
    .description('the saves of a run that are kept, newest first')
    .argument('<id>', 'of a run, or of a session with a turn under way')
    .option('--limit <n>', 'only the newest so many', wholeNumber(1))
    .action(cli.action((context, id: string, options: HistoryOptions) => showHistory(context, id, options)));
}

async function showHistory(context: Context, id: string, { limit }: HistoryOptions): Promise<void> {
  const { out, nowMs } = context;
  const found = await findRun(await context.store(), id);
  if (found.type === 'session')
    throw new CliError('LOUSHO_CLI_RUN_NOT_FOUND', `The session "${id}" has no turn under way.`, {
      hint: 'The history of a turn is dropped when the turn is committed.',
    });
  const store = await context.checkpoints();
  const entries = await getCheckpointHistory(store, found.checkpointId, limit === undefined ? {} : { limit });
  if (entries === undefined) throw new CliError('LOUSHO_CLI_UNSUPPORTED', 'The store keeps no history.');
  if (out.json) return out.documentOf(entries.map(entryDocument));
  await out.table(columns(nowMs), entries);
  out.note(
    dim(
      `${count(entries.length, 'save')}. ${context.command('fork', id, '--from-step', '<step>')} begins another run at one.`,
    ),
  );
}

function columns(nowMs: number): readonly Column<CheckpointHistoryEntry>[] {
  return [
    { title: 'STEP', cell: ({ step }) => String(step), align: 'right', minWidth: 4 },
    { title: 'SAVED', cell: ({ savedAt }) => dim(ago(savedAt, nowMs)), minWidth: 8 },
    { title: 'STATUS', cell: ({ status }) => status, minWidth: 8 },
    {
      title: 'MESSAGES',
      cell: ({ checkpoint }) => String(checkpoint.messages.length),
      align: 'right',
      minWidth: 8,
    },
    { title: 'LAST', cell: ({ checkpoint }) => lastWords(checkpoint), minWidth: 10 },
  ];
}

function entryDocument({ step, savedAt, status, checkpoint }: CheckpointHistoryEntry): object {
  return { step, savedAt, status, messages: checkpoint.messages.length, last: lastWords(checkpoint) };
}

/** The calls of the step, and how many have their result; else what was said. */
function lastWords({ messages }: CheckpointHistoryEntry['checkpoint']): string {
  const step = lastStep(messages);
  if (step === undefined || step.calls.length === 0) return lastAssistantText(messages);
  const names = step.calls.map(({ toolName }) => toolName).join(', ');
  return `${names} (${step.answered} of ${count(step.calls.length, 'result')})`;
}
