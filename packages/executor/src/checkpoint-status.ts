/** The status of a checkpoint follows from its content: awaiting approval while a call waits for a person, else in progress. */
import type { Checkpoint, InProgressCheckpoint, StoredError } from '@lousho/contract';
import { undecidedApprovals } from './next-action.ts';

export type FailureFields = Pick<InProgressCheckpoint, 'lastError' | 'attempts' | 'startsWithoutProgress'>;

/** Awaiting approval while a call waits for a person, else in progress. Without `failure` this outcome is progress. */
export function withStatus(checkpoint: Checkpoint, failure: FailureFields = {}): Checkpoint {
  const waiting = checkpoint.approvals.length === 0 ? [] : undecidedApprovals(checkpoint);
  const [first] = waiting;
  if (first === undefined) return inProgress(checkpoint, failure);
  return {
    ...content(checkpoint),
    status: 'awaiting-approval',
    approvalId: first.id,
    approvalIds: waiting.map((approval) => approval.id),
  };
}

export function inProgress(checkpoint: Checkpoint, failure: FailureFields): InProgressCheckpoint {
  if (isPlain(checkpoint) && isEmpty(failure)) return checkpoint;
  return { ...content(checkpoint), status: 'in-progress', ...failure };
}

function isEmpty(failure: FailureFields): boolean {
  for (const _field in failure) return false;
  return true;
}

export type Content = Omit<InProgressCheckpoint, StatusField>;

type StatusField =
  | 'status'
  | 'finishReason'
  | 'limit'
  | 'lastError'
  | 'attempts'
  | 'startsWithoutProgress'
  | 'parkedAt'
  | 'approvalId'
  | 'approvalIds';

/** The checkpoint without the fields that belong to one status only. */
export function content(checkpoint: Checkpoint): Content {
  if (isPlain(checkpoint)) return checkpoint;
  const {
    status: _status,
    finishReason: _finishReason,
    limit: _limit,
    lastError: _lastError,
    attempts: _attempts,
    startsWithoutProgress: _starts,
    parkedAt: _parkedAt,
    approvalId: _approvalId,
    approvalIds: _approvalIds,
    ...rest
  } = checkpoint as Content & { readonly [field in StatusField]?: unknown };
  return rest;
}

/** The usual case while a run makes progress: nothing to take out, so nothing to copy twice. */
function isPlain(checkpoint: Checkpoint): checkpoint is InProgressCheckpoint {
  return (
    checkpoint.status === 'in-progress' &&
    checkpoint.finishReason === undefined &&
    checkpoint.lastError === undefined &&
    checkpoint.attempts === undefined &&
    checkpoint.startsWithoutProgress === undefined &&
    checkpoint.parkedAt === undefined
  );
}

function failureOf(checkpoint: Checkpoint): FailureFields {
  return checkpoint.status === 'in-progress' ? checkpoint : {};
}

export function keepFailure(checkpoint: Checkpoint): FailureFields {
  const { lastError, attempts, startsWithoutProgress } = failureOf(checkpoint);
  return {
    ...(lastError === undefined ? undefined : { lastError }),
    ...(attempts === undefined ? undefined : { attempts }),
    ...(startsWithoutProgress === undefined ? undefined : { startsWithoutProgress }),
  };
}

export function failedAgain(checkpoint: Checkpoint, lastError: StoredError): FailureFields {
  const { attempts = 0, startsWithoutProgress } = failureOf(checkpoint);
  return {
    lastError,
    attempts: Math.min(attempts + 1, Number.MAX_SAFE_INTEGER),
    ...(startsWithoutProgress === undefined ? undefined : { startsWithoutProgress }),
  };
}

/** One more start. Whoever starts a parked run has mended something: it counts anew. */
export function begunAgain(checkpoint: Checkpoint, forgiven = 0): FailureFields {
  const isParked = checkpoint.status === 'in-progress' && checkpoint.parkedAt !== undefined;
  const before = isParked ? 0 : Math.max(0, (failureOf(checkpoint).startsWithoutProgress ?? 0) - forgiven);
  return {
    ...keepFailure(checkpoint),
    startsWithoutProgress: Math.min(before + 1, Number.MAX_SAFE_INTEGER),
  };
}

export function begunOnceLess(checkpoint: Checkpoint): FailureFields {
  const { startsWithoutProgress = 0, ...failure } = keepFailure(checkpoint);
  return startsWithoutProgress > 1
    ? { ...failure, startsWithoutProgress: startsWithoutProgress - 1 }
    : failure;
}
