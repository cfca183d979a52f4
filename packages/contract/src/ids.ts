/** Which ids callers may choose, and the internal keys that are made from them. One rule on every store. */
import { SDKError } from './errors.ts';

/** What a store may meet: run ids, and the internal keys below them. */
const MAX_CHECKPOINT_ID_LENGTH = 300;
const MAX_RUN_ID_LENGTH = 200;
const SESSION_ID = /^[A-Za-z0-9_-]{1,128}$/;
const CHECKPOINT_ID = /^[A-Za-z0-9_-](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?$/;
/** Compared without regard to case, so that a file system that folds case cannot turn one into the other. */
const RESERVED_ENDING = /\.(?:turn-\d+|transcript|paused|fire)$/i;
const RESERVED_PART = /\.(?:sub|apr)-/i;

/** A run id as callers give it: 1-200 of `A-Za-z0-9_.-`, no dot at an end, none of our own endings. @throws synchronously LOUSHO_SESSION_ID_INVALID. */
export function assertRunId(id: string): void {
  const rule = brokenRunIdRule(id);
  if (rule !== undefined) throw invalidId(id, rule);
}

/** A session id, the stricter rule: 1-128 of `A-Za-z0-9_-`. @throws synchronously LOUSHO_SESSION_ID_INVALID. */
export function assertSessionId(id: string): void {
  if (!isSessionId(id)) throw invalidId(id, 'a session id is 1-128 characters of A-Z a-z 0-9 _ -');
}

export function isSessionId(id: unknown): id is string {
  return typeof id === 'string' && SESSION_ID.test(id);
}

/** An id that a store is asked for: a run id or an internal key. @throws synchronously LOUSHO_SESSION_ID_INVALID. */
export function assertCheckpointId(id: string): void {
  if (!isCheckpointId(id))
    throw invalidId(
      id,
      `a checkpoint id is 1-${MAX_CHECKPOINT_ID_LENGTH} characters of A-Z a-z 0-9 _ . - and has no dot at an end`,
    );
}

export function isCheckpointId(id: unknown): id is string {
  return typeof id === 'string' && id.length <= MAX_CHECKPOINT_ID_LENGTH && CHECKPOINT_ID.test(id);
}

/** Where a session's turn is stored: turn 0 is the first. */
export function turnCheckpointId(sessionId: string, turn: number): string {
  return `${sessionId}.turn-${turn}`;
}

/** Where a session's transcript is stored in a store without a part for sessions. */
export function transcriptCheckpointId(sessionId: string): string {
  return `${sessionId}.transcript`;
}

/** Where the sub-agent of one `task` call is stored, below its lead. */
export function childCheckpointId(leadId: string, call: CallPosition): string {
  return `${leadId}.sub-${positionKey(call)}`;
}

/** The approval of one call: asking again after a crash gives the same id. */
export function approvalIdOf(checkpointId: string, call: CallPosition): string {
  return `${checkpointId}.apr-${positionKey(call)}`;
}

/** The approval of a call inside a sub-agent, below that of the `task` call which runs it: it names the lead, and the way down to the call. */
export function approvalIdInside(
  taskApprovalId: string,
  { step, index }: Omit<CallPosition, 'runId'>,
): string {
  return `${taskApprovalId}-${step}-${index}`;
}

/** The question number `round`, from 1, that the call of this approval asks itself. The steps of a sub-agent begin at 1. */
export function questionApprovalId(approvalId: string, round: number): string {
  return approvalIdInside(approvalId, { step: 0, index: round });
}

/** A call by its place: providers may use one call id twice. `step` and `index` are what the run counts, from 1 and from 0. */
export interface CallPosition {
  readonly runId: string;
  readonly step: number;
  readonly index: number;
}

/** The checkpoint that an approval id names, or `undefined` when it never was one. */
export function checkpointIdOfApproval(approvalId: string): string | undefined {
  const match = /^(.+)\.apr-[a-z0-9]{8}-\d+-\d+(?:-\d+-\d+)*$/.exec(approvalId);
  return match !== null && isCheckpointId(match[1]) ? match[1] : undefined;
}

/** What a key in a store stands for. */
export type CheckpointIdKind =
  | { readonly kind: 'run' }
  | { readonly kind: 'session'; readonly sessionId: string; readonly turn: number }
  /** A sub-agent; it shows through its lead. */
  | { readonly kind: 'child'; readonly leadId: string }
  /** A claim or a mark: never a run. */
  | { readonly kind: 'bookkeeping' };

export function classifyCheckpointId(id: string): CheckpointIdKind {
  const child = /^(.+?)\.sub-[a-z0-9]{8}-\d+-\d+(?:\.sub-.*)?$/.exec(id);
  if (child?.[1] !== undefined) return { kind: 'child', leadId: child[1] };
  const turn = /^([A-Za-z0-9_-]+)\.turn-(\d+)$/.exec(id);
  if (turn?.[1] !== undefined) return { kind: 'session', sessionId: turn[1], turn: Number(turn[2]) };
  return /\.(?:transcript|paused|fire)$/.test(id) ? { kind: 'bookkeeping' } : { kind: 'run' };
}

function positionKey({ runId, step, index }: CallPosition): string {
  const short = runId
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
    .slice(0, 8);
  return `${short.padEnd(8, '0')}-${step}-${index}`;
}

function brokenRunIdRule(id: unknown): string | undefined {
  if (typeof id !== 'string') return 'a run id is a text';
  if (id.length < 1 || id.length > MAX_RUN_ID_LENGTH)
    return `a run id is 1-${MAX_RUN_ID_LENGTH} characters long`;
  if (!/^[A-Za-z0-9_.-]+$/.test(id)) return 'a run id has only A-Z a-z 0-9 _ . -';
  if (id.startsWith('.') || id.endsWith('.')) return 'a run id has no dot at its start or end';
  if (RESERVED_ENDING.test(id))
    return 'a run id does not end in .turn-<n>, .transcript, .paused or .fire: Lousho stores its own records there';
  if (RESERVED_PART.test(id))
    return 'a run id does not contain .sub- or .apr-: Lousho stores its own records there';
  return undefined;
}

function invalidId(id: unknown, rule: string): SDKError {
  const shown = typeof id === 'object' && id !== null ? 'an object' : String(id);
  return new SDKError('LOUSHO_SESSION_ID_INVALID', { sessionId: shown, rule });
}
