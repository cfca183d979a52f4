/** `lousho approvals list`: what waits for a person, oldest first. */
import type { ApprovalRecord } from '@lousho/contract';
import type { Cli } from '../cli.ts';
import { CliError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { accent, dim } from '../terminal/styled-line.ts';
import type { Column } from '../terminal/table.ts';
import { ago, count } from '../terminal/words.ts';
import { waitingApprovals } from '../waiting-approvals.ts';

export function registerApprovalsList(cli: Cli): void {
  cli
    .group('approvals', 'what waits for a person')
    .command('list')
    .description('what waits for a person, oldest first')
    .action(cli.action((context) => listApprovals(context)));
}

async function listApprovals(context: Context): Promise<void> {
  const { out } = context;
  const store = await context.store();
  if (store.approvals === undefined)
    throw new CliError('LOUSHO_CLI_UNSUPPORTED', 'The store keeps no approvals.');
  const waiting = await waitingApprovals(store);
  if (out.json) return out.documentOf(waiting.map(requestOf));
  if (waiting.length === 0) return out.note('Nobody waits for a decision.');
  await out.table(columns(context.nowMs), waiting);
  const hint = `${context.command('show', '<id>')} shows what it is about and how to decide.`;
  out.note(dim(`${count(waiting.length, 'decision')}. ${hint}`));
}

function columns(nowMs: number): readonly Column<ApprovalRecord>[] {
  return [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'KIND', cell: ({ kind }) => kind, minWidth: 4 },
    { title: 'TOOL', cell: ({ toolName }) => accent(toolName), minWidth: 8 },
    { title: 'SINCE', cell: ({ createdAt }) => dim(ago(createdAt, nowMs)), minWidth: 8 },
    {
      title: 'EXPIRES',
      cell: ({ expiresAt }) => dim(expiresAt === undefined ? 'never' : ago(expiresAt, nowMs)),
      minWidth: 7,
    },
    { title: 'FOR', cell: ({ principal }) => principal?.id ?? '', minWidth: 3 },
    { title: 'ARGUMENTS', cell: argumentsOf, minWidth: 10 },
  ];
}

function argumentsOf({ args, question }: ApprovalRecord): string {
  return question?.text ?? JSON.stringify(args);
}

/** What `agent.approvals.list()` gives: a snapshot of a run is no business of a reader. */
function requestOf({
  checkpointId: _id,
  argsHash: _hash,
  snapshot: _snapshot,
  ...request
}: ApprovalRecord): object {
  return request;
}
