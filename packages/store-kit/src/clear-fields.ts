/** What a store sees of a record: ids, and what it needs to list and to prune. Everything else has one value for all records. */
import {
  CHECKPOINT_VERSION,
  deepFreeze,
  emptyUsage,
  type ApprovalRecord,
  type Checkpoint,
  type SessionRecord,
} from '@lousho/contract';
import { sameValue } from './same-value.ts';

/** Checkpoints of an older format may lack any field. */
export type StoredCheckpoint = Partial<Omit<Checkpoint, 'status'>> & {
  readonly status?: Checkpoint['status'];
  readonly approvalId?: string;
  readonly approvalIds?: readonly string[];
};

const nothing: readonly never[] = deepFreeze([]);
const noInput = deepFreeze({ start: 0, count: 0 });
const START_OF_TIME = '1970-01-01T00:00:00.000Z';

/**
 * Clear: status, step, times, the run's id, the ids of open approvals, where it was forked from. The version is that of the sealed form:
 * the version of what is inside is inside.
 */
export function clearCheckpoint(checkpoint: StoredCheckpoint): object {
  const { status = 'in-progress', runId = '', stepIndex = 0, savedAt = START_OF_TIME } = checkpoint;
  const { forkedFrom, approvalId, approvalIds, approvals = nothing } = checkpoint;
  return {
    ...{ version: CHECKPOINT_VERSION, runId, agentName: '', status, stepIndex, savedAt },
    ...{ usage: emptyUsage, runInput: noInput, startedToolCallIds: nothing, delegatedInFlight: nothing },
    // Pruning keeps what somebody has to decide.
    approvals: approvals
      .filter(({ decision }) => decision === undefined)
      .map(({ id, createdAt }) => ({ id, kind: 'tool', toolCallId: '', argsHash: '', createdAt })),
    ...(forkedFrom === undefined ? undefined : { forkedFrom }),
    ...(status === 'awaiting-approval' ? { approvalId, approvalIds } : undefined),
    ...(status === 'finished' ? { finishReason: 'other' } : undefined),
  };
}

/** Clear: ids and when it was asked. */
export function clearApproval(record: ApprovalRecord): object {
  const { id, sessionId, runId, createdAt, checkpointId, snapshot } = record;
  return {
    ...{ id, kind: 'tool', runId, agentName: '', toolCallId: '', toolName: '', args: null },
    ...{ createdAt, checkpointId, argsHash: '' },
    ...(sessionId === undefined ? undefined : { sessionId }),
    // Pruning keeps a record that is all there is of its run.
    ...(snapshot === undefined ? undefined : { snapshot: { checkpoints: nothing } }),
  };
}

/** Clear: id, revision and the time of the last save. */
export function clearSession({ id, savedAt }: SessionRecord, revision: number): object {
  return { id, revision, turn: 0, usage: emptyUsage, savedAt };
}

/** Whether a record has exactly these fields beside the sealed ones. */
export function hasFields(record: object, clear: object, sealedFields: readonly string[]): boolean {
  const others = Object.fromEntries(Object.entries(record).filter(([key]) => !sealedFields.includes(key)));
  return sameValue(others, clear);
}
