/** `lousho approvals approve` and `reject`: a person decides, once, and the run goes on when nothing else waits. */
import {
  checkpointIdOfApproval,
  type ApprovalDecision,
  type ApprovalRecord,
  type Checkpoint,
} from '@lousho/contract';
import type { Agent } from '@lousho/core';
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { printResult, requireSameStore, whileExecuting } from '../executing.ts';
import type { ExitCode } from '../exit-codes.ts';
import { jsonArgument } from '../json-argument.ts';
import { good, strong } from '../terminal/styled-line.ts';

interface DecideOptions {
  readonly note?: string;
  readonly by?: string;
}
interface ApproveOptions extends DecideOptions {
  readonly args?: string;
  readonly answer?: string;
}

export function registerApprovalDecisions(cli: Cli): void {
  const approvals = cli.group('approvals', 'what waits for a person');
  approvals
    .command('approve <id>')
    .description('let the call run; the run goes on when it was the last one')
    .option('--args <json|@file>', 'run the call with these arguments instead')
    .option('--answer <text>', 'the answer, when it is a question')
    .option('--note <text>', 'stored with the decision')
    .option('--by <name>', 'who decides; stored')
    .action(cli.action((context, id: string, options: ApproveOptions) => approve(context, id, options)));
  approvals
    .command('reject <id>')
    .description('refuse the call; the model is told')
    .option('--note <text>', 'why: the model reads it')
    .option('--by <name>', 'who decides; stored')
    .action(cli.action((context, id: string, options: DecideOptions) => reject(context, id, options)));
}

async function approve(context: Context, id: string, options: ApproveOptions): Promise<ExitCode> {
  const { args, answer, note, by } = options;
  const json = args === undefined ? undefined : jsonArgument(args, '--args', context.cwd);
  return decide(context, { id, approved: true, args: json, answer, note, by });
}

async function reject(context: Context, id: string, { note, by }: DecideOptions): Promise<ExitCode> {
  return decide(context, { id, approved: false, note, by });
}

/** Whether it can still be decided is for the agent to say, under the lease of the run. */
async function decide(context: Context, decision: ApprovalDecision): Promise<ExitCode> {
  const { id, approved } = decision;
  const { record, run } = await findApproval(context, id);
  const agentName = record?.agentName ?? run?.agentName;
  const agent = agentName === undefined ? await anyAgent(context) : await context.agent(agentName);
  if (record !== undefined && run?.status === 'awaiting-approval' && run.approvalIds.includes(id))
    requireSameStore((await agent.approvals.get(id))?.runId === run.runId);
  const runId = record?.sessionId ?? record?.checkpointId ?? id;
  const work = async (): Promise<ExitCode> => {
    const result = await agent.approvals.resolve(decision);
    const what = record === undefined ? id : record.toolName;
    context.out.note([good('✓ '), approved ? 'Approved ' : 'Rejected ', strong(what)]);
    return printResult(context, result.sessionId ?? runId, result);
  };
  // The decision is among what was recorded: made again, it would be refused.
  return whileExecuting(context, [agent], work, `${context.command('resume', runId)} goes on from there`);
}

interface FoundApproval {
  readonly record: ApprovalRecord | undefined;
  /** The run that waits for it, or waited. */
  readonly run: Checkpoint | undefined;
}

/** People paste ids: one that never was one is the agent's to refuse. */
async function findApproval(context: Context, id: string): Promise<FoundApproval> {
  const { approvals, checkpoints } = await context.store();
  const checkpointId = checkpointIdOfApproval(id);
  if (checkpointId === undefined) return { record: undefined, run: undefined };
  const record = (await approvals?.load(id)) ?? undefined;
  return { record, run: (await checkpoints?.load(checkpointId)) ?? undefined };
}

/** Nothing is stored under this id, so nothing will run: each agent can say why. */
async function anyAgent(context: Context): Promise<Agent> {
  const [first] = (await context.agents()).values();
  return first ?? context.agent();
}
