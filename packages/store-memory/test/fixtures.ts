/** Checkpoints, approvals and sessions to store; each field that a test does not name has a usual value. */
import {
  CHECKPOINT_VERSION,
  deepFreeze,
  emptyUsage,
  type ApprovalRecord,
  type AwaitingApprovalCheckpoint,
  type CheckpointApproval,
  type FinishedCheckpoint,
  type InProgressCheckpoint,
  type Message,
  type SessionRecord,
} from '@lousho/contract';

export const hello: Message = { role: 'user', content: 'Hello' };

export function inProgress(fields: Partial<InProgressCheckpoint> = {}): InProgressCheckpoint {
  return deepFreeze({
    version: CHECKPOINT_VERSION,
    runId: 'run-0001',
    agentName: 'agent',
    status: 'in-progress',
    messages: [hello],
    stepIndex: 0,
    usage: emptyUsage,
    runInput: { start: 0, count: 1 },
    heldInput: [],
    inputIds: [],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    savedAt: '2026-01-01T00:00:00.000Z',
    ...fields,
  });
}

export function finished(fields: Partial<FinishedCheckpoint> = {}): FinishedCheckpoint {
  const { status: _status, ...base } = inProgress();
  return deepFreeze({ ...base, status: 'finished', finishReason: 'stop', ...fields });
}

export function awaitingApproval(
  id: string,
  fields: Partial<AwaitingApprovalCheckpoint> = {},
): AwaitingApprovalCheckpoint {
  const { status: _status, ...base } = inProgress();
  const approval: CheckpointApproval = {
    id,
    kind: 'tool',
    toolCallId: 'call_1',
    argsHash: '',
    createdAt: base.savedAt,
  };
  return deepFreeze({
    ...base,
    status: 'awaiting-approval',
    approvals: [approval],
    approvalId: id,
    approvalIds: [id],
    ...fields,
  });
}

export function approvalRecord(id: string, fields: Partial<ApprovalRecord> = {}): ApprovalRecord {
  return deepFreeze({
    id,
    kind: 'tool',
    runId: 'run-0001',
    agentName: 'agent',
    toolCallId: 'call_1',
    toolName: 'charge',
    args: {},
    argsHash: '',
    checkpointId: 'order-7',
    createdAt: '2026-01-01T00:00:00.000Z',
    ...fields,
  });
}

export function sessionRecord(id: string, fields: Partial<SessionRecord> = {}): SessionRecord {
  return deepFreeze({
    id,
    revision: 0,
    turn: 0,
    messages: [hello],
    inputIds: [],
    usage: emptyUsage,
    savedAt: '2026-01-01T00:00:00.000Z',
    ...fields,
  });
}
