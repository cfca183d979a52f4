/** One word for how a run stands, its colour, and the sentence behind it. */
import type { CheckpointHeader } from '@lousho/contract';
import type { StoredRun } from './stored-runs.ts';
import { accent, bad, dim, good, warn, type Piece } from './terminal/styled-line.ts';

export const runStates = [
  'running',
  'interrupted',
  'failed',
  'parked',
  'aborted',
  'awaiting-approval',
  'finished',
  'damaged',
] as const;
export type RunState = (typeof runStates)[number];

/** `isHeld`: somebody holds the lease; `undefined` when the store does not tell. */
export function stateOf({ header }: Pick<StoredRun, 'header'>, isHeld: boolean | undefined): RunState {
  if (header === null) return 'damaged';
  if (header.status !== 'in-progress') return header.status;
  if (isHeld === true) return 'running';
  if (header.finishReason === 'aborted') return 'aborted';
  if (header.parkedAt !== undefined) return 'parked';
  return header.lastError === undefined ? 'interrupted' : 'failed';
}

export function statePiece(state: RunState): Piece {
  return paints[state](state);
}

const paints: { readonly [S in RunState]: (text: string) => Piece } = {
  running: accent,
  interrupted: warn,
  failed: bad,
  parked: bad,
  aborted: warn,
  'awaiting-approval': warn,
  finished: good,
  damaged: bad,
};

/** Why it is not over, or how it ended; short enough for a row. */
export function reasonOf({ header, error }: Pick<StoredRun, 'header' | 'error'>): Piece {
  if (header === null) return error?.message ?? 'damaged';
  switch (header.status) {
    case 'finished':
      return dim(header.finishReason);
    case 'awaiting-approval':
      return waitsFor(header);
    case 'in-progress':
      return header.lastError?.message ?? '';
  }
}

function waitsFor({
  approvals,
  approvalIds,
}: Extract<CheckpointHeader, { status: 'awaiting-approval' }>): string {
  const kinds = approvals.filter(({ id }) => approvalIds.includes(id)).map(({ kind }) => kind);
  const what = kinds.every((kind) => kind === 'question') ? 'answer' : 'decision';
  return approvalIds.length === 1 ? `1 ${what}` : `${approvalIds.length} ${what}s`;
}
