/** What callers may be told. */
import { isSDKError, type ErrorCode, type StoredError } from '@lousho/contract';
import type { Facts } from '../facts.ts';

export interface Told {
  readonly op: string;
  readonly outcome: { readonly type: 'resolved' } | { readonly type: 'rejected'; readonly error: unknown };
  /** Of a decision. */
  readonly approvalId?: string | undefined;
}
/** An event `checkpoint.saved`. */
export interface SavedEvent {
  readonly process: string;
  readonly checkpointId: string;
  readonly status: string;
  readonly step: number;
}

/** What may go wrong in a world like this. Everything else is a defect. */
const fairCodes: readonly ErrorCode[] = [
  'LOUSHO_SESSION_BUSY',
  'LOUSHO_SESSION_AWAITING_APPROVAL',
  'LOUSHO_SESSION_TURN_FAILED',
  'LOUSHO_APPROVAL_DECIDED',
  'LOUSHO_APPROVAL_ORPHANED',
  'LOUSHO_APPROVAL_NOT_FOUND',
  'LOUSHO_TOOL_PROPAGATED',
  'LOUSHO_STORE_READ_FAILED',
  'LOUSHO_STORE_WRITE_FAILED',
  'LOUSHO_PROVIDER_ERROR',
  'LOUSHO_SHUTDOWN',
];
/** Codes that say: your decision changed nothing. */
const refusals: readonly ErrorCode[] = [
  'LOUSHO_APPROVAL_DECIDED',
  'LOUSHO_APPROVAL_ORPHANED',
  'LOUSHO_APPROVAL_NOT_FOUND',
];

/** G27: an error has a code, and one that fits. */
export function* errorsAreFair(_facts: Facts, { op, outcome }: Told): Iterable<string> {
  if (outcome.type === 'rejected' && !fairCodes.some((code) => isSDKError(outcome.error, code)))
    yield `${op} got ${describeError(outcome.error)}`;
}

/** G10: whoever hears that a decision counts made the one that does. */
export function* decisionsAreToldTruly(facts: Facts, { op, outcome, approvalId }: Told): Iterable<string> {
  if (approvalId === undefined) return;
  const decidedBy = facts.decidedBy.get(approvalId);
  if (outcome.type === 'resolved' && decidedBy !== op)
    yield `${op} hears that its decision on ${approvalId} counts, and ${decidedBy ?? 'nobody'} decided it.`;
  if (isRefusal(outcome) && decidedBy === op)
    yield `${op} hears that it decided nothing, and its decision on ${approvalId} counts.`;
}

/** G15: a run tells of a save that the store has acknowledged. */
export function* savesAreToldTruly(
  facts: Facts,
  { process, checkpointId, status, step }: SavedEvent,
): Iterable<string> {
  if (!facts.isAcknowledged(process, checkpointId, status, step))
    yield `${process} tells of a save of ${checkpointId} (${status}, step ${step}) that was not acknowledged.`;
}

export function isRefusal(outcome: Told['outcome']): boolean {
  return outcome.type === 'rejected' && refusals.some((code) => isSDKError(outcome.error, code));
}

export function describeError(error: unknown): string {
  const { code, name, message, stack } = error as Partial<StoredError & Error>;
  return code === undefined
    ? `${name}: ${message} ${stack?.split('\n')[1]?.trim() ?? ''}`
    : `${code}: ${message}`;
}
