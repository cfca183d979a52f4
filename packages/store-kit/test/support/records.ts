/** Checkpoints, approvals and sessions as real runs make them; each field that a test does not name has a usual value. */
import {
  CHECKPOINT_VERSION,
  appendFrozen,
  deepFreeze,
  emptyUsage,
  type ApprovalRecord,
  type Checkpoint,
  type InProgressCheckpoint,
  type Message,
  type SessionRecord,
} from '@lousho/contract';

const START = '2026-01-01T00:00:00.000Z';
const none: readonly Message[] = deepFreeze([]);

export function says(text: string): Message {
  return deepFreeze({ role: 'assistant', content: [{ type: 'text', text }] });
}

/** A transcript that grew, as an executor makes it. */
export function transcript(count: number): readonly Message[] {
  return appendFrozen(
    none,
    Array.from({ length: count }, (_none, index) => says(`secret ${index}`)),
  );
}

export function inProgress(fields: Partial<InProgressCheckpoint> = {}): InProgressCheckpoint {
  return deepFreeze({
    version: CHECKPOINT_VERSION,
    runId: 'run-0001',
    agentName: 'secret agent',
    status: 'in-progress',
    messages: transcript(2),
    stepIndex: 1,
    usage: emptyUsage,
    businessState: { cart: ['secret book'] },
    runInput: { start: 0, count: 1 },
    heldInput: [{ role: 'user', content: 'secret wait' }],
    inputIds: ['secret-input-1', 'secret-input-2'],
    settledResults: [
      { type: 'tool-result', toolCallId: 'secret_call_2', toolName: 'secret_tool', result: 'secret result' },
    ],
    startedToolCallIds: ['secret_call_1'],
    approvals: [],
    delegatedInFlight: [],
    principal: { id: 'secret user' },
    metadata: { channel: 'secret channel' },
    lastError: { name: 'Error', message: 'secret message', retryable: true },
    savedAt: START,
    ...fields,
  });
}

/** The next step: one more message behind the others. */
export function nextStep(before: InProgressCheckpoint, text: string): InProgressCheckpoint {
  return deepFreeze({
    ...before,
    stepIndex: before.stepIndex + 1,
    messages: appendFrozen(before.messages, [says(text)]),
  });
}

export function approvalRecord(id: string, fields: Partial<ApprovalRecord> = {}): ApprovalRecord {
  return deepFreeze({
    id,
    kind: 'question',
    runId: 'run-0001',
    agentName: 'secret agent',
    toolCallId: 'secret_call',
    toolName: 'secret_tool',
    args: { amount: 'secret 42' },
    principal: { id: 'secret user' },
    argsHash: 'secret hash',
    checkpointId: 'order-7',
    createdAt: START,
    expiresAt: START,
    ...fields,
  });
}

export function sessionRecord(id: string, fields: Partial<SessionRecord> = {}): SessionRecord {
  return deepFreeze({
    id,
    revision: 0,
    turn: 3,
    messages: transcript(3),
    inputIds: ['secret-input-1'],
    businessState: 'secret state',
    usage: emptyUsage,
    savedAt: START,
    ...fields,
  });
}

/** Of a run that waits for a person. */
export function waiting(approvalId: string): Checkpoint {
  const { status: _status, lastError: _error, ...rest } = inProgress();
  const approval = {
    id: approvalId,
    kind: 'tool',
    toolCallId: 'c',
    argsHash: '',
    createdAt: rest.savedAt,
  } as const;
  return {
    ...rest,
    status: 'awaiting-approval',
    approvals: [approval],
    approvalId,
    approvalIds: [approvalId],
  };
}
