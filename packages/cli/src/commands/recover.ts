/** `lousho recover`: finds interrupted runs of the configured agents and finishes them, once or until Ctrl-C. */
import { assertNever, storedError } from '@lousho/contract';
import type { Agent, PendingRun } from '@lousho/core';
import type { FinishedResult } from '@lousho/contract';
import { durationMs, wholeNumber, type Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { whileExecuting } from '../executing.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import { bad, dim, good, type Line } from '../terminal/styled-line.ts';
import { count } from '../terminal/words.ts';

interface RecoverOptions {
  readonly once?: boolean;
  readonly every?: number;
  readonly concurrency?: number;
}

export function registerRecover(cli: Cli): void {
  cli.program
    .command('recover')
    .description('find interrupted runs and finish them, until Ctrl-C')
    .option('--once', 'look once, finish what is found, and end: for cron')
    .option('--every <time>', 'from the end of one look to the next (default: 30s)', durationMs)
    .option('--concurrency <runs>', 'runs at a time (default: 4)', wholeNumber(1))
    .action(cli.action((context, options: RecoverOptions) => recover(context, options)));
}

type Told =
  | { readonly type: 'recovered'; readonly run: PendingRun; readonly result: FinishedResult }
  | { readonly type: 'failed'; readonly run: PendingRun | undefined; readonly error: unknown };

/** 1 when a run or a look at the store failed. */
async function recover(context: Context, options: RecoverOptions): Promise<ExitCode> {
  const agents = await chosenAgents(context);
  const { once = false, every: intervalMs, concurrency } = options;
  const counts = { recovered: 0, failed: 0 };
  // One after the other, however many agents tell at once.
  let telling = Promise.resolve();
  const tell = (told: Told): void => {
    counts[told.type] += 1;
    telling = telling.then(() => print(context, told));
    // Nobody reads any more, so nobody wants it to go on; whoever waits for the end hears why.
    telling.catch(() => agents.forEach((agent) => void agent.shutdown()));
  };
  return whileExecuting(context, agents, async () => {
    const loops = agents.map((agent) =>
      agent.recover({
        ...{ once, intervalMs, concurrency },
        onRecovered: (run, result) => tell({ type: 'recovered', run, result }),
        onError: (error, run) => tell({ type: 'failed', run, error }),
      }),
    );
    if (!once) context.out.note(dim('Looking for interrupted runs. Ctrl-C ends.'));
    await Promise.all(loops.map(({ done }) => done));
    await telling;
    context.out.note(`${count(counts.recovered, 'run')} finished, ${counts.failed} failed.`);
    return counts.failed > 0 ? exitCodes.failure : exitCodes.ok;
  });
}

/** All, or that of `--agent`. */
async function chosenAgents(context: Context): Promise<readonly Agent[]> {
  const agents = await context.agents();
  return context.hasAgentOption ? [await context.agent()] : [...new Set(agents.values())];
}

async function print({ out }: Context, told: Told): Promise<void> {
  if (out.json) return out.event(documentOf(told));
  await out.lines([lineOf(told)]);
}

function lineOf(told: Told): Line {
  switch (told.type) {
    case 'recovered':
      return [good('✓ '), `${told.run.sessionId}  ${told.result.finishReason}`];
    case 'failed':
      return [bad('✗ '), `${told.run?.sessionId ?? 'the store'}  `, storedError(told.error).message];
    default:
      return assertNever(told);
  }
}

function documentOf(told: Told): object {
  const run = told.run && { sessionId: told.run.sessionId, checkpointId: told.run.checkpointId };
  if (told.type === 'failed') return { type: told.type, ...run, error: storedError(told.error) };
  const { runId, finishReason, text, steps } = told.result;
  return { type: told.type, ...run, runId, finishReason, text, steps };
}
