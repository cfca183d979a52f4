/** `lousho fork <id>`: a new run that begins with what this one was at a step, changed or not. Needs a store alone. */
import type { ForkPatch } from '@lousho/core';
import { CliError } from '../cli-error.ts';
import { wholeNumber, type Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { findRun } from '../find-run.ts';
import { jsonArgument } from '../json-argument.ts';
import { storeAgent } from '../store-agent.ts';
import { dim } from '../terminal/styled-line.ts';

interface ForkCommandOptions {
  readonly fromStep: number;
  readonly toolResult?: string;
  readonly input?: string;
  readonly newId?: string;
}

export function registerFork(cli: Cli): void {
  cli.program
    .command('fork <id>')
    .description('a new run from what this one was at a step; the old one stays as it is')
    .requiredOption('--from-step <n>', 'model responses that it keeps: lousho history <id>', wholeNumber(0))
    .option('--tool-result <callId=json|@file>', 'what this call is said to have returned')
    .option('--input <text>', 'sent after the calls that are still open')
    .option('--new-id <id>', 'of the fork (default: <id>.fork-<n>, of a session <id>-fork-<n>)')
    .action(cli.action((context, id: string, options: ForkCommandOptions) => fork(context, id, options)));
}

async function fork(context: Context, id: string, options: ForkCommandOptions): Promise<void> {
  const store = await context.store();
  const { fromStep, newId: newSessionId } = options;
  const patch = patchOf(context, options);
  const agent = await storeAgent(store);
  const found = await findRun(store, id);
  const isSession = found.type === 'session' || found.kind === 'session';
  if (isSession && patch !== undefined)
    throw new CliError('LOUSHO_CLI_USAGE', `"${id}" is a session: its forks begin unchanged.`, {
      hint: 'Leave --tool-result and --input out, and send to the fork instead.',
    });
  const forkId = isSession
    ? (await agent.session({ id }).fork({ fromStep, newSessionId })).id
    : (await agent.fork(id, { fromStep, newSessionId, patch })).sessionId;
  const { out } = context;
  if (out.json) return out.document({ sessionId: forkId, forkedFrom: { sessionId: id, step: fromStep } });
  await out.lines([forkId]);
  out.note(dim(isSession ? 'Send to it to go on.' : `${context.command('resume', forkId)} goes on with it.`));
}

function patchOf(context: Context, { toolResult, input }: ForkCommandOptions): ForkPatch | undefined {
  if (toolResult === undefined && input === undefined) return undefined;
  return {
    ...(toolResult === undefined ? undefined : { toolResult: toolResultOf(context, toolResult) }),
    ...(input === undefined ? undefined : { appendInput: input }),
  };
}

function toolResultOf({ cwd }: Context, given: string): NonNullable<ForkPatch['toolResult']> {
  const equals = given.indexOf('=');
  if (equals < 1)
    throw new CliError('LOUSHO_CLI_USAGE', '--tool-result needs the id of a call, "=", and its result.', {
      hint: 'For example --tool-result call_1=@result.json, or --tool-result call_1=\'{"ok":true}\'.',
    });
  const toolCallId = given.slice(0, equals);
  return { toolCallId, result: jsonArgument(given.slice(equals + 1), '--tool-result', cwd) };
}
