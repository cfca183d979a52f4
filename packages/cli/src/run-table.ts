/** A run as a row, and as JSON in the words of `agent.pending()`. */
import { reasonOf, statePiece, type RunState } from './run-state.ts';
import type { StoredRun } from './stored-runs.ts';
import { dim } from './terminal/styled-line.ts';
import type { Column } from './terminal/table.ts';
import { ago } from './terminal/words.ts';

export interface ListedRun extends StoredRun {
  readonly state: RunState;
}

export function runColumns(nowMs: number): readonly Column<ListedRun>[] {
  return [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'STATE', cell: ({ state }) => statePiece(state), minWidth: 8 },
    { title: 'AGENT', cell: ({ header }) => header?.agentName ?? '', minWidth: 6 },
    { title: 'STEP', cell: ({ header }) => String(header?.stepIndex ?? ''), align: 'right', minWidth: 4 },
    { title: 'SAVED', cell: ({ header }) => dim(ago(header?.savedAt, nowMs)), minWidth: 8 },
    { title: 'WHY', cell: reasonOf, minWidth: 8 },
  ];
}

export function runDocument({ id, kind, checkpointId, status, state, header, error }: ListedRun): object {
  const base = { sessionId: id, kind, checkpointId, status, state };
  if (header === null) return { ...base, step: 0, lastError: error };
  const { runId, agentName, stepIndex: step, savedAt } = header;
  return { ...base, runId, agentName, step, savedAt, ...stateFields(header) };
}

function stateFields(header: NonNullable<StoredRun['header']>): object {
  if (header.status === 'awaiting-approval') return { approvalIds: header.approvalIds };
  if (header.status === 'finished') return { finishReason: header.finishReason };
  const { lastError, attempts, finishReason, parkedAt } = header;
  return { lastError, attempts, aborted: finishReason === 'aborted' || undefined, parkedAt };
}
