/** Commands in which an agent executes a run: which agent, what Ctrl-C does, and how what came of it is told. */
import { isSDKError, type ExecutionResult } from '@lousho/contract';
import type { Agent } from '@lousho/core';
import { CliError } from './cli-error.ts';
import type { Context } from './context.ts';
import { exitCodes, type ExitCode } from './exit-codes.ts';
import { dim, good, warn } from './terminal/styled-line.ts';
import { count } from './terminal/words.ts';

/**
 * Ctrl-C suspends: nothing new begins, running calls have ten seconds to end and are recorded, the lease is released. Nothing counts as
 * stopped by a person, so the same command, or any process with the store, goes on.
 */
export async function whileExecuting(
  context: Context,
  agents: readonly Agent[],
  work: () => Promise<ExitCode>,
  goesOn = 'the same command goes on from there',
): Promise<ExitCode> {
  const interrupted = context.takeInterrupts();
  let leaving: Promise<unknown> | undefined;
  const leave = (): void => {
    context.out.note('Stopping: running calls have ten seconds to end. Ctrl-C again ends at once.');
    leaving = Promise.all(agents.map((agent) => agent.shutdown()));
  };
  interrupted.addEventListener('abort', leave, { once: true });
  try {
    return await work();
  } catch (error) {
    if (!interrupted.aborted || !isSDKError(error, 'LOUSHO_SHUTDOWN')) throw error;
    context.out.note(`Stopped. What was recorded stays; ${goesOn}.`);
    return exitCodes.interrupted;
  } finally {
    interrupted.removeEventListener('abort', leave);
    await leaving;
  }
}

/** An agent that works on another store than the one that was looked into would act on another run of the same id. */
export function requireSameStore(isSame: boolean): void {
  if (isSame) return;
  throw new CliError(
    'LOUSHO_CLI_USAGE',
    'The agent of the configuration does not have this run: its store is another one.',
    {
      hint: 'Leave --store out, or give the configuration whose agent works on that store.',
    },
  );
}

/** Data: the answer. 4 when it waits for a person. */
export async function printResult(context: Context, id: string, result: ExecutionResult): Promise<ExitCode> {
  const { out } = context;
  const { runId, agentName, finishReason, text, steps, usage } = result;
  if (out.json) {
    const waits = { approvalId: result.approvalId, approvalIds: result.approvalIds };
    await out.document({ sessionId: id, runId, agentName, finishReason, text, steps, usage, ...waits });
  } else if (text !== '') await out.lines(text.split('\n'));
  if (result.finishReason !== 'awaiting-approval') {
    out.note([good('✓ '), `${id} ended: ${finishReason}`, dim(`, ${count(steps, 'step')}`)]);
    return exitCodes.ok;
  }
  const { approvalIds } = result;
  out.note([warn('… '), `${id} waits for ${count(approvalIds.length, 'decision')}:`]);
  for (const approvalId of approvalIds) out.note(`  ${context.command('approvals', 'approve', approvalId)}`);
  return exitCodes.awaitingApproval;
}
