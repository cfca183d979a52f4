/** Stored headers → what an operator has to know: which runs are unfinished, since when, and why. */
import {
  ConfigurationError,
  checkpointHeader,
  classifyCheckpointId,
  type Checkpoint,
  type CheckpointHeader,
  type CheckpointHeaderEntry,
  type CheckpointStore,
  type StoredError,
} from '@lousho/contract';
import type { PendingRun } from './agent.ts';

/** @throws LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE, LOUSHO_CONFIG_INVALID */
export async function pendingRuns(store: CheckpointStore | undefined): Promise<readonly PendingRun[]> {
  const found = await unfinishedRuns(requireListable(store, 'agent.pending()'));
  return found.map(({ run }) => run);
}

/** @throws synchronously LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE, LOUSHO_CONFIG_INVALID */
export function requireListable(store: CheckpointStore | undefined, operation: string): CheckpointStore {
  if (store === undefined)
    throw new ConfigurationError('LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE', { operation });
  if (store.listHeaders === undefined && store.list === undefined) {
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: 'store.checkpoints.list',
      want: `a function: ${operation} lists the store`,
    });
  }
  return store;
}

/** A run that is not over, as an operator sees it, with what is decided from; `null` when its record is damaged. */
export interface UnfinishedRun {
  readonly run: PendingRun;
  readonly header: UnfinishedHeader | null;
}

export async function unfinishedRuns(store: CheckpointStore): Promise<readonly UnfinishedRun[]> {
  const entries = await unfinishedHeaders(store);
  return entries.flatMap(({ sessionId, header, error }) => {
    const id = idOf(sessionId);
    // A store of somebody else may list more than it was asked for.
    if (id === undefined || header?.status === 'finished') return [];
    return [{ run: header === null ? damagedRun(id, error) : pendingRun(id, header), header }];
  });
}

async function unfinishedHeaders(store: CheckpointStore): Promise<readonly CheckpointHeaderEntry[]> {
  const options = { status: ['in-progress', 'awaiting-approval'] as const };
  if (store.listHeaders !== undefined) return store.listHeaders(options);
  const entries = (await store.list?.(options)) ?? [];
  return entries.map(({ checkpoint, ...entry }) => ({
    ...entry,
    header: checkpoint === null ? null : checkpointHeader(checkpoint),
  }));
}

interface PendingId {
  readonly sessionId: string;
  readonly kind: 'session' | 'run';
  readonly checkpointId: string;
}

/** A sub-agent shows through its lead, a claim not at all. */
function idOf(checkpointId: string): PendingId | undefined {
  const classified = classifyCheckpointId(checkpointId);
  switch (classified.kind) {
    case 'run':
      return { sessionId: checkpointId, kind: 'run', checkpointId };
    case 'session':
      return { sessionId: classified.sessionId, kind: 'session', checkpointId };
    case 'child':
    case 'bookkeeping':
      return undefined;
  }
}

/** What an operator has to know of this run. `undefined` for what is no run of its own, and for one that is over. */
export function pendingOf(checkpointId: string, checkpoint: Checkpoint): PendingRun | undefined {
  const id = idOf(checkpointId);
  const header = checkpointHeader(checkpoint);
  return id === undefined || header.status === 'finished' ? undefined : pendingRun(id, header);
}

function damagedRun(id: PendingId, error: StoredError | undefined): PendingRun {
  const lastError = error === undefined ? undefined : { lastError: error };
  return { ...id, step: 0, status: 'in-progress', ...lastError };
}

export type UnfinishedHeader = Exclude<CheckpointHeader, { status: 'finished' }>;

function pendingRun(id: PendingId, header: UnfinishedHeader): PendingRun {
  const { runId, agentName, stepIndex: step, savedAt } = header;
  const base = { ...id, runId, agentName, step, savedAt };
  return header.status === 'awaiting-approval'
    ? { ...base, ...pausedOn(header) }
    : { ...base, ...interruptedBy(header) };
}

function pausedOn({
  approvalId,
  approvalIds,
  approvals,
}: Extract<CheckpointHeader, { status: 'awaiting-approval' }>) {
  const approvalKind = approvals.find(({ id }) => id === approvalId)?.kind ?? 'tool';
  return { status: 'awaiting-approval', approvalId, approvalIds, approvalKind } as const;
}

function interruptedBy(header: Exclude<UnfinishedHeader, { status: 'awaiting-approval' }>) {
  const { lastError, attempts, finishReason, parkedAt } = header;
  return {
    status: 'in-progress',
    ...(lastError === undefined ? undefined : { lastError }),
    ...(attempts === undefined ? undefined : { attempts }),
    ...(finishReason === 'aborted' ? { aborted: true as const } : undefined),
    ...(parkedAt === undefined ? undefined : { parked: true as const }),
  } as const;
}
