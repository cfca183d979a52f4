/** Checkpoints for tests of pure functions; each field that a test does not name has a usual value. */
import {
  CHECKPOINT_VERSION,
  deepFreeze,
  emptyUsage,
  type AssistantMessage,
  type Checkpoint,
  type CheckpointApproval,
  type Decision,
  type FinishedCheckpoint,
  type InProgressCheckpoint,
  type JsonValue,
  type Message,
  type ModelUsage,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';

export const user = (text: string): Message => ({ role: 'user', content: text });
export const system = (text: string): Message => ({ role: 'system', content: text });
export const assistant = (text: string, ...calls: readonly ToolCallPart[]): AssistantMessage => ({
  role: 'assistant',
  content: [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...calls],
});
/** `call('a')` has the id `a` and the tool `a`. */
export const call = (id: string, args: JsonValue = {}): ToolCallPart => ({
  type: 'tool-call',
  toolCallId: id,
  toolName: id,
  args,
});
export const result = (id: string, value: JsonValue = 'ok'): ToolResultPart => ({
  type: 'tool-result',
  toolCallId: id,
  toolName: id,
  result: value,
});
export const tool = (id: string, value: JsonValue = 'ok'): Message => ({
  role: 'tool',
  content: [result(id, value)],
});

export const noSavedAt = '2026-01-01T00:00:00.000Z';
export const oneCall: ModelUsage = {
  inputTokens: 1,
  outputTokens: 1,
  totalTokens: 2,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  modelCalls: 1,
};

export function inProgress(fields: Partial<InProgressCheckpoint> = {}): InProgressCheckpoint {
  return deepFreeze({
    version: CHECKPOINT_VERSION,
    status: 'in-progress',
    runId: 'run00001',
    agentName: 'agent',
    messages: [user('go')],
    stepIndex: 0,
    usage: emptyUsage,
    runInput: { start: 0, count: 1 },
    heldInput: [],
    inputIds: [],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    savedAt: noSavedAt,
    ...fields,
  });
}

export function finished(fields: Partial<FinishedCheckpoint> = {}): FinishedCheckpoint {
  const { status: _status, ...base } = inProgress();
  return deepFreeze({ ...base, status: 'finished', finishReason: 'stop', ...fields });
}

export function waiting(
  fields: Partial<InProgressCheckpoint> & { readonly approvals: readonly CheckpointApproval[] },
): Checkpoint {
  const { status: _status, ...base } = inProgress(fields);
  const approvalIds = fields.approvals.filter(({ decision }) => decision === undefined).map(({ id }) => id);
  return deepFreeze({ ...base, status: 'awaiting-approval', approvalId: approvalIds[0] ?? '', approvalIds });
}

export const yes: Decision = { approved: true, source: 'person', decidedAt: noSavedAt };
export const no: Decision = { approved: false, source: 'person', decidedAt: noSavedAt };

export function approvalOf(toolCallId: string, fields: Partial<CheckpointApproval> = {}): CheckpointApproval {
  return {
    id: `order-7.apr-run00001-1-${toolCallId}`,
    kind: 'tool',
    toolCallId,
    argsHash: '',
    createdAt: noSavedAt,
    ...fields,
  };
}
