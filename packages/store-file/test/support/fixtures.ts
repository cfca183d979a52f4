/** Checkpoints, approvals and sessions to store; each field that a test does not name has a usual value. */
import {
  CHECKPOINT_VERSION,
  appendFrozen,
  deepFreeze,
  emptyUsage,
  type ApprovalRecord,
  type AwaitingApprovalCheckpoint,
  type Checkpoint,
  type FinishedCheckpoint,
  type InProgressCheckpoint,
  type Message,
  type SessionRecord,
} from '@lousho/contract';

const START = '2026-01-01T00:00:00.000Z';
export const hello: Message = deepFreeze({ role: 'user', content: 'Hello' });

export function says(text: string): Message {
  return deepFreeze({ role: 'assistant', content: [{ type: 'text', text }] });
}

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
    savedAt: START,
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
  return deepFreeze({
    ...base,
    status: 'awaiting-approval',
    approvals: [{ id, kind: 'tool', toolCallId: 'call_1', argsHash: '', createdAt: START }],
    approvalId: id,
    approvalIds: [id],
    ...fields,
  });
}

/** The next step of a run: one more message behind the others, as an executor makes it. */
export function nextStep<C extends Checkpoint>(checkpoint: C, text: string, fields: Partial<C> = {}): C {
  return deepFreeze({
    ...checkpoint,
    stepIndex: checkpoint.stepIndex + 1,
    messages: appendFrozen(checkpoint.messages, [says(text)]),
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
    createdAt: START,
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
    savedAt: START,
    ...fields,
  });
}

/** The value as JSON gives it back, and nothing of the original in it. */
export function copyOf<Value>(value: Value): Value {
  return deepFreeze(JSON.parse(JSON.stringify(value)) as Value);
}
