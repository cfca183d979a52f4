/** What a decision may still do: the checkpoint says whether its call waits, was decided, or is gone. */
import {
  SDKError,
  approvalIdOf,
  resultOf,
  type ApprovalDecision,
  type Checkpoint,
  type CheckpointApproval,
  type Decision,
  type Message,
  type ToolResultPart,
} from '@lousho/contract';
import { openCalls } from './next-action.ts';

export type FoundApproval =
  | { readonly type: 'open'; readonly checkpoint: Checkpoint; readonly approval: CheckpointApproval }
  | { readonly type: 'closed'; readonly error: SDKError };

/**
 * The approval in its run's checkpoint, or why nobody can decide it any more.
 * @param said by a conversation that the run was a turn of, when the turn's checkpoint is gone
 */
export function findApproval(
  checkpoint: Checkpoint | null,
  approvalId: string,
  said: readonly Message[] = [],
): FoundApproval {
  const approval = checkpoint?.approvals.find((candidate) => candidate.id === approvalId);
  if (checkpoint !== null && approval !== undefined && approval.decision === undefined)
    return { type: 'open', checkpoint, approval };
  const audit = approval?.decision ?? auditOf(checkpoint, approvalId) ?? auditAmong(said, approvalId);
  return {
    type: 'closed',
    error: audit === undefined ? orphaned(checkpoint, approvalId) : decidedBefore(approvalId, audit),
  };
}

/** Whether a run in progress may come to wait on this approval: its call, or the one inside of which it lies, is open and was not asked about. */
export function isAboutToAsk(checkpoint: Checkpoint, checkpointId: string, approvalId: string): boolean {
  const { status, runId, stepIndex: step, approvals } = checkpoint;
  if (status !== 'in-progress' || approvals.some(({ id }) => id === approvalId)) return false;
  return openCalls(checkpoint).some(({ index }) => {
    const id = approvalIdOf(checkpointId, { runId, step, index });
    return approvalId === id || approvalId.startsWith(`${id}-`);
  });
}

type Audit = Pick<Decision, 'approved' | 'by' | 'decidedAt'>;

/** A decided call keeps its audit in its result, for as long as the transcript shows it. */
function auditOf(checkpoint: Checkpoint | null, approvalId: string): Audit | undefined {
  if (checkpoint === null) return undefined;
  for (const result of checkpoint.settledResults) {
    const audit = auditIn(result, approvalId);
    if (audit !== undefined) return audit;
  }
  return auditAmong(checkpoint.messages, approvalId);
}

function auditAmong(messages: readonly Message[], approvalId: string): Audit | undefined {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    const audit = message === undefined ? undefined : auditIn(resultOf(message), approvalId);
    if (audit !== undefined) return audit;
  }
  return undefined;
}

/** The decision was about the call itself, or about one inside the sub-agent that it ran. */
function auditIn(result: ToolResultPart | undefined, approvalId: string): Audit | undefined {
  if (result?.approval?.id === approvalId) return result.approval;
  return result?.innerApprovals?.find(({ id }) => id === approvalId);
}

function decidedBefore(approvalId: string, { approved, by, decidedAt }: Audit): SDKError {
  return new SDKError('LOUSHO_APPROVAL_DECIDED', {
    approvalId,
    approved,
    decidedAt,
    ...(by === undefined ? undefined : { by }),
  });
}

function orphaned(checkpoint: Checkpoint | null, approvalId: string): SDKError {
  const sessionId = checkpoint === null ? undefined : { sessionId: approvalId.replace(/\.apr-[^.]*$/, '') };
  return new SDKError('LOUSHO_APPROVAL_ORPHANED', { approvalId, ...sessionId });
}

/** A decision on its way to the run, with who made it: a person, the agent's `approve`, or nobody in time. */
export type GivenDecision = ApprovalDecision & { readonly source: Decision['source'] };

/** The decision as the checkpoint keeps it. Too late is a denial, whatever was said. */
export function decisionOf(given: GivenDecision, approval: CheckpointApproval, nowMs: number): Decision {
  const decidedAt = new Date(nowMs).toISOString();
  const by = given.by === undefined ? undefined : { by: given.by };
  if (given.source === 'expiry' || isExpired(approval, nowMs))
    return { approved: false, source: 'expiry', decidedAt, ...by };
  return {
    approved: given.approved,
    source: given.source,
    decidedAt,
    ...by,
    ...(given.note === undefined ? undefined : { note: given.note }),
    ...(given.args === undefined || !given.approved ? undefined : { args: given.args }),
    ...(given.answer === undefined ? undefined : { answer: given.answer }),
  };
}

/** A time that cannot be read never comes. */
export function isExpired(approval: Pick<CheckpointApproval, 'expiresAt'>, nowMs: number): boolean {
  return approval.expiresAt !== undefined && Date.parse(approval.expiresAt) <= nowMs;
}
