/** `lousho resume <id>`: goes on with an unfinished run, also with one that was parked or stopped by a person. */
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { printResult, requireSameStore, whileExecuting } from '../executing.ts';
import { exitCodes, type ExitCode } from '../exit-codes.ts';
import { findRun } from '../find-run.ts';

export function registerResume(cli: Cli): void {
  cli.program
    .command('resume <id>')
    .description('go on with an unfinished run, with the agent of the configuration')
    .action(cli.action((context, id: string) => resume(context, id)));
}

async function resume(context: Context, typed: string): Promise<ExitCode> {
  const found = await findRun(await context.store(), typed);
  const { id } = found;
  if (found.type === 'session') return nothingLeft(context, `Session "${id}" has no unfinished turn`);
  const { checkpoint } = found;
  if (checkpoint.status === 'finished' && found.kind === 'run')
    return nothingLeft(context, `"${id}" is finished (${checkpoint.finishReason})`);
  // A sub-agent goes on with its lead.
  const kind = found.kind === 'session' ? 'session' : 'run';
  const agent = await context.agent(found.kind === 'child' ? undefined : checkpoint.agentName);
  return whileExecuting(context, [agent], async () => {
    const store = await context.checkpoints();
    // A store that cannot be listed cannot be asked.
    if (store.list !== undefined || store.listHeaders !== undefined) {
      const pending = await agent.pending();
      const isSame = (runId: string | undefined) => found.kind === 'child' || runId === checkpoint.runId;
      requireSameStore(pending.some(({ sessionId, runId }) => sessionId === id && isSame(runId)));
    }
    const result = await agent.resume(id, { kind });
    if (result === null) return nothingLeft(context, `"${id}" was finished meanwhile`);
    return printResult(context, id, result);
  });
}

function nothingLeft({ out }: Context, because: string): ExitCode {
  out.note(`${because}: there is nothing to resume.`);
  return exitCodes.ok;
}
