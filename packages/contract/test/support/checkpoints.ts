/** Checkpoints and messages for tests: valid ones, with only what a test is about spelled out. */
import {
  CHECKPOINT_VERSION,
  deepFreeze,
  emptyUsage,
  type AssistantMessage,
  type AwaitingApprovalCheckpoint,
  type Checkpoint,
  type CheckpointApproval,
  type FinishedCheckpoint,
  type InProgressCheckpoint,
  type JsonValue,
  type ToolMessage,
  type ToolResultPart,
  type UserMessage,
} from '../../src/index.ts';

export function aCheckpoint(over: Partial<InProgressCheckpoint> = {}): InProgressCheckpoint {
  return deepFreeze({
    version: CHECKPOINT_VERSION,
    status: 'in-progress',
    runId: '0b9f6c1e-8f2e-4d53-9a70-3c5a54a3f9b1',
    agentName: 'agent',
    messages: [],
    stepIndex: 0,
    usage: emptyUsage,
    runInput: { start: 0, count: 0 },
    heldInput: [],
    inputIds: [],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    savedAt: '2024-05-01T12:00:00.000Z',
    ...over,
  });
}

export function aFinishedCheckpoint(over: Partial<FinishedCheckpoint> = {}): FinishedCheckpoint {
  return deepFreeze({ ...aCheckpoint(), status: 'finished', finishReason: 'stop', ...over });
}

export function aPausedCheckpoint(
  approvals: readonly CheckpointApproval[],
  over: Partial<AwaitingApprovalCheckpoint> = {},
): AwaitingApprovalCheckpoint {
  const approvalIds = approvals.filter((one) => one.decision === undefined).map((one) => one.id);
  const [approvalId = ''] = approvalIds;
  return deepFreeze({
    ...aCheckpoint(),
    status: 'awaiting-approval',
    approvals,
    approvalId,
    approvalIds,
    ...over,
  });
}

export function anApproval(id: string, over: Partial<CheckpointApproval> = {}): CheckpointApproval {
  return {
    id,
    kind: 'tool',
    toolCallId: `call of ${id}`,
    argsHash: 'f00d',
    createdAt: '2024-05-01T12:00:00.000Z',
    ...over,
  };
}

export function userSays(content: string): UserMessage {
  return { role: 'user', content };
}

/** A model response that asks for the calls with these ids. */
export function modelCalls(...toolCallIds: readonly string[]): AssistantMessage {
  return {
    role: 'assistant',
    content: toolCallIds.map((toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 'look', args: {} })),
  };
}

export function modelSays(text: string): AssistantMessage {
  return { role: 'assistant', content: [{ type: 'text', text }] };
}

export function resultFor(toolCallId: string, result: JsonValue = 'done'): ToolResultPart {
  return { type: 'tool-result', toolCallId, toolName: 'look', result };
}

export function toolMessage(result: ToolResultPart): ToolMessage {
  return { role: 'tool', content: [result] };
}

/** The value as a store gives it back. */
export function stored<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

/** As `stored`, for a checkpoint that is saved next: frozen, and no object of the original in it. */
export function reloaded<C extends Checkpoint>(checkpoint: C): C {
  return deepFreeze(stored(checkpoint));
}
