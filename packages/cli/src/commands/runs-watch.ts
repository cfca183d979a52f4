/** `lousho runs watch [id]`: what changes in the store, as it is saved. With an id until that run is over or needs somebody. */
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import { findRun } from '../find-run.ts';
import { runDocument, type ListedRun } from '../run-table.ts';
import { reasonOf, statePiece, type RunState } from '../run-state.ts';
import { timeline } from '../timeline.ts';
import { dim, strong, type Line } from '../terminal/styled-line.ts';
import { count } from '../terminal/words.ts';
import { listedRuns } from './runs-list.ts';

/** Quick for a person, and nothing to a store: headers only. */
const INTERVAL_MS = 1_000;

export function registerWatch(cli: Cli): void {
  cli
    .group('runs', 'the runs of a store')
    .command('watch')
    .description('what changes, as it is saved; with an id until that run is over or waits for a person')
    .argument('[id]', 'of a run or a session')
    .action(cli.action((context, id: string | undefined) => watchRuns(context, id)));
}

/** 0: it is finished. 4: it waits for a person. 1: it failed, was aborted or parked. Without an id it ends with Ctrl-C only. */
async function watchRuns(context: Context, id: string | undefined): Promise<ExitCode> {
  const signal = context.takeInterrupts();
  const wanted = id === undefined ? undefined : await findRun(await context.store(), id);
  if (wanted?.type === 'session') return exitCodes.ok;
  const seen = new Map<string, string>();
  let shownMessages = 0;
  let isFirst = true;
  while (!signal.aborted) {
    const runs = await listedRuns(context);
    const changed = runs.filter((run) => isNews(run, seen));
    const news =
      wanted === undefined ? changed : changed.filter((run) => run.checkpointId === wanted.checkpointId);
    if (isFirst && wanted === undefined)
      context.out.note(dim(`${count(runs.length, 'run')}. Watching; Ctrl-C ends it.`));
    for (const run of isFirst && wanted === undefined ? [] : news) {
      await tell(context, run);
      if (wanted !== undefined) shownMessages = await tellSteps(context, run, shownMessages);
    }
    isFirst = false;
    const own = wanted && runs.find(({ checkpointId }) => checkpointId === wanted.checkpointId);
    // The checkpoint of a turn goes when the turn is committed: it is over.
    if (wanted !== undefined && own === undefined) return exitCodes.ok;
    const end = own && endOf(own.state);
    if (end !== undefined) return end;
    await pause(context, signal);
  }
  return exitCodes.interrupted;
}

function endOf(state: RunState): ExitCode | undefined {
  switch (state) {
    case 'finished':
      return exitCodes.ok;
    case 'awaiting-approval':
      return exitCodes.awaitingApproval;
    case 'failed':
    case 'parked':
    case 'aborted':
    case 'damaged':
      return exitCodes.failure;
    case 'running':
    case 'interrupted':
      return undefined;
  }
}

/** Notes what it is now; whether that is something else than before. */
function isNews({ checkpointId, state, header }: ListedRun, seen: Map<string, string>): boolean {
  const now = [state, header?.stepIndex, header?.messageCount, header?.runId].join(' ');
  if (seen.get(checkpointId) === now) return false;
  seen.set(checkpointId, now);
  return true;
}

async function tell({ out }: Context, run: ListedRun): Promise<void> {
  if (out.json) return out.event(runDocument(run));
  const { id, state, header } = run;
  const time = dim(header?.savedAt ?? '');
  await out.lines([
    [time, ' ', strong(id), ' ', statePiece(state), ` step ${header?.stepIndex ?? '?'} `, reasonOf(run)],
  ]);
}

/** What was said and done since the last look. Gives the number of messages that are told now. */
async function tellSteps(context: Context, run: ListedRun, shownMessages: number): Promise<number> {
  const { out } = context;
  const checkpoint = await (await context.checkpoints()).load(run.checkpointId);
  if (!checkpoint || out.json) return shownMessages;
  const { messages, runInput } = checkpoint;
  const start = Math.max(shownMessages, runInput.start);
  const entries = timeline(checkpoint, start, { full: false, width: out.columns });
  await out.lines(
    entries.flatMap(({ lines }): readonly Line[] => lines.map((line) => ['  ', ...[line].flat()])),
  );
  // The last step is told again when its calls have their results.
  const lastStepAt = messages.findLastIndex(({ role }) => role === 'assistant');
  const isOpen = checkpoint.status !== 'finished' && lastStepAt !== -1;
  return isOpen ? lastStepAt : messages.length;
}

function pause({ clock }: Context, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.setTimer(done, INTERVAL_MS);
    function done(): void {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}
