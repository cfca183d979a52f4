/** `lousho runs list`: every run of the store, the one that was saved last at the end. */
import type { CheckpointStatus } from '@lousho/contract';
import { wholeNumber, type Cli } from '../cli.ts';
import { CliError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { heldLeases, runningIds } from '../leases.ts';
import { runStates, stateOf, type RunState } from '../run-state.ts';
import { runColumns, runDocument, type ListedRun } from '../run-table.ts';
import { storedRuns, unfinished } from '../stored-runs.ts';
import { dim } from '../terminal/styled-line.ts';
import { count } from '../terminal/words.ts';

interface ListOptions {
  /** States, with commas between. */
  readonly status?: string | undefined;
  readonly agent?: string | undefined;
  readonly limit?: number | undefined;
}

export function registerRunsList(cli: Cli): void {
  cli
    .group('runs', 'the runs of a store')
    .command('list')
    .description('all runs, and conversations with a turn under way; the one that was saved last at the end')
    .option('--status <states>', `only these, with commas between: ${runStates.join(', ')}`)
    .option('--limit <n>', 'only so many, those that were saved last', wholeNumber(1))
    .action(cli.action((context, options: ListOptions) => listRuns(context, options)));
}

async function listRuns(context: Context, { status, limit = Infinity }: ListOptions): Promise<void> {
  const { out } = context;
  const wanted = status === undefined ? undefined : parseStates(status);
  const runs = await listedRuns(context, wanted && statusesOf(wanted));
  const matching = wanted === undefined ? runs : runs.filter(({ state }) => wanted.has(state));
  const shown = limit < matching.length ? matching.slice(-limit) : matching;
  if (out.json) return out.documentOf(mapped(shown, runDocument));
  if (shown.length === 0)
    return out.note(matching === runs ? 'The store has no runs.' : 'No run is like that.');
  await out.table(runColumns(context.nowMs), shown);
  const more = matching.length - shown.length;
  out.note(
    dim(`${count(shown.length, 'run')}${more === 0 ? '' : `, ${count(more, 'older one')} not shown`}`),
  );
}

/** Oldest save first. */
export async function listedRuns(
  context: Context,
  statuses?: readonly CheckpointStatus[],
): Promise<readonly ListedRun[]> {
  const store = await context.checkpoints();
  const runs = await storedRuns(store, statuses);
  const running = runningIds(await heldLeases(store, context.nowMs));
  return runs.map((run) => ({ ...run, state: stateOf(run, running?.has(run.checkpointId)) }));
}

function parseStates(text: string): ReadonlySet<RunState> {
  const words = text.split(',').map((word) => word.trim());
  const unknown = words.find((word) => !(runStates as readonly string[]).includes(word));
  if (unknown === undefined) return new Set(words as RunState[]);
  throw new CliError('LOUSHO_CLI_USAGE', `No run is ever "${unknown}".`, {
    hint: `States are ${runStates.join(', ')}.`,
  });
}

/** What the store has to be asked for. */
function statusesOf(states: ReadonlySet<RunState>): readonly CheckpointStatus[] {
  const isFinishedAsked = states.has('finished');
  if (!isFinishedAsked) return unfinished;
  return states.size === 1 ? ['finished'] : ['finished', ...unfinished];
}

function* mapped<From, To>(items: readonly From[], map: (item: From) => To): Iterable<To> {
  for (const item of items) yield map(item);
}
