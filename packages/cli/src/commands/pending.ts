/** `lousho pending`: every run that is not over, and why. */
import type { Cli } from '../cli.ts';
import type { Context } from '../context.ts';
import { reasonOf, stateOf, statePiece } from '../run-state.ts';
import { storedRuns, unfinished, type StoredRun } from '../stored-runs.ts';
import { dim } from '../terminal/styled-line.ts';
import type { Column } from '../terminal/table.ts';
import { ago, count } from '../terminal/words.ts';

export function registerPending(cli: Cli): void {
  cli.program
    .command('pending')
    .description('runs that are not over, oldest first, and why')
    .action(cli.action((context) => showPending(context)));
}

export async function showPending(context: Context): Promise<void> {
  const { out } = context;
  const runs = await storedRuns(await context.checkpoints(), unfinished);
  if (out.json) return out.documentOf(runs.map(pendingDocument));
  if (runs.length === 0) return out.note('Nothing is pending.');
  await out.table(columns(context.nowMs), runs);
  out.note(dim(`${count(runs.length, 'run')}. lousho show <id> tells more about one.`));
}

function columns(nowMs: number): readonly Column<StoredRun>[] {
  return [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'STATE', cell: (run) => statePiece(stateOf(run, undefined)), minWidth: 8 },
    { title: 'AGENT', cell: ({ header }) => header?.agentName ?? '', minWidth: 6 },
    { title: 'STEP', cell: ({ header }) => String(header?.stepIndex ?? ''), align: 'right', minWidth: 4 },
    { title: 'SAVED', cell: ({ header }) => dim(ago(header?.savedAt, nowMs)), minWidth: 8 },
    { title: 'WHY', cell: reasonOf, minWidth: 8 },
  ];
}

/** The words of `agent.pending()`. */
function pendingDocument({ id, kind, checkpointId, status, header, error }: StoredRun): object {
  const base = { sessionId: id, kind, checkpointId, status };
  if (header === null) return { ...base, step: 0, lastError: error, damaged: true };
  const { runId, agentName, stepIndex: step, savedAt } = header;
  return { ...base, runId, agentName, step, savedAt, ...stateFields(header) };
}

function stateFields(header: NonNullable<StoredRun['header']>): object {
  if (header.status === 'awaiting-approval') return { approvalIds: header.approvalIds };
  if (header.status === 'finished') return { finishReason: header.finishReason };
  const { lastError, attempts, finishReason, parkedAt } = header;
  return { lastError, attempts, aborted: finishReason === 'aborted' || undefined, parkedAt };
}
