/** Checkpoints as real runs save them: valid, frozen, each made from the one before with the contract's own helpers. */
import {
  addModelCall,
  appendFrozen,
  CHECKPOINT_VERSION,
  deepFreeze,
  emptyUsage,
  lastStep,
  type ApprovalRecord,
  type AwaitingApprovalCheckpoint,
  type Checkpoint,
  type CheckpointApproval,
  type FinishedCheckpoint,
  type InProgressCheckpoint,
  type Message,
  type SessionRecord,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';

const noMessages: readonly Message[] = deepFreeze([]);

/** The first save of a run: its input is in, nothing has happened yet. */
export function beginRun(savedAt: string, fields: Partial<InProgressCheckpoint> = {}): InProgressCheckpoint {
  return deepFreeze({
    version: CHECKPOINT_VERSION,
    runId: 'run00001-sample',
    agentName: 'shop',
    status: 'in-progress',
    messages: appendFrozen(noMessages, [
      { role: 'system', content: 'You sell books.' },
      { role: 'user', content: 'Two copies of "Emma", please.' },
    ]),
    stepIndex: 0,
    usage: emptyUsage,
    businessState: { cart: ['emma', 'emma'], total: 19.5 },
    runInput: { start: 1, count: 1 },
    heldInput: [],
    inputIds: ['input-1'],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    principal: { id: 'user-7' },
    metadata: { channel: 'web' },
    savedAt,
    ...fields,
  });
}

/**
 * The state after the next thing that happens to the run: a model response with two calls, then the second call's result (early), then
 * both results in their places, then the next response.
 */
export function grow(before: InProgressCheckpoint, savedAt: string): InProgressCheckpoint {
  const step = lastStep(before.messages);
  if (step === undefined || step.calls.length === step.answered) return withResponse(before, savedAt);
  const [first, second] = step.calls;
  if (first === undefined || second === undefined) return withResponse(before, savedAt);
  return before.settledResults.length === 0
    ? deepFreeze({ ...before, settledResults: [resultOf(second)], savedAt })
    : withResults(before, [resultOf(first), ...before.settledResults], savedAt);
}

/** The newest is last. */
export function growingRun(savedAt: string, saves: number, fields?: Partial<InProgressCheckpoint>) {
  const states = [beginRun(savedAt, fields)];
  for (let newest = states[0]; newest !== undefined && states.length < saves; newest = states.at(-1))
    states.push(grow(newest, savedAt));
  return states;
}

/** The run at its end. Open calls get their results first. */
export function finishRun(before: InProgressCheckpoint, savedAt: string): FinishedCheckpoint {
  let current = before;
  while (!isSettled(current)) current = grow(current, savedAt);
  const { status: _status, lastError: _error, finishReason: _reason, ...rest } = current;
  const bye: Message = { role: 'assistant', content: [{ type: 'text', text: 'Thank you!' }] };
  return deepFreeze({
    ...rest,
    status: 'finished',
    finishReason: 'stop',
    messages: appendFrozen(current.messages, [bye]),
    stepIndex: current.stepIndex + 1,
    usage: oneCallMore(current),
    savedAt,
  });
}

/** The run when the first of its open calls waits for a person. */
export function pauseRun(
  before: InProgressCheckpoint,
  approvalId: string,
  savedAt: string,
): AwaitingApprovalCheckpoint {
  const current = isSettled(before) ? withResponse(before, savedAt) : before;
  const { status: _status, lastError: _error, finishReason: _reason, ...rest } = current;
  const approval: CheckpointApproval = {
    id: approvalId,
    kind: 'tool',
    toolCallId: lastStep(current.messages)?.calls[0]?.toolCallId ?? '',
    argsHash: 'a'.repeat(64),
    createdAt: savedAt,
  };
  return deepFreeze({
    ...rest,
    status: 'awaiting-approval',
    approvals: [approval],
    approvalId,
    approvalIds: [approvalId],
    savedAt,
  });
}

/** What stands in the inbox for a pause of the run `checkpointId`. */
export function approvalRecord(
  id: string,
  createdAt: string,
  fields: Partial<ApprovalRecord> = {},
): ApprovalRecord {
  return deepFreeze({
    id,
    kind: 'tool',
    sessionId: 'chat-1',
    runId: 'run00001-sample',
    agentName: 'shop',
    toolCallId: 'call_1',
    toolName: 'charge',
    args: { amount: 19.5, currency: 'EUR' },
    principal: { id: 'user-7' },
    createdAt,
    checkpointId: 'order-1',
    argsHash: 'a'.repeat(64),
    ...fields,
  });
}

export function sessionRecord(
  id: string,
  savedAt: string,
  fields: Partial<SessionRecord> = {},
): SessionRecord {
  return deepFreeze({
    id,
    revision: 0,
    turn: 1,
    messages: appendFrozen(noMessages, [
      { role: 'user', content: 'Do you have "Emma"?' },
      { role: 'assistant', content: [{ type: 'text', text: 'Yes.' }] },
    ]),
    inputIds: ['input-1'],
    usage: oneCallMore({ usage: emptyUsage }),
    savedAt,
    ...fields,
  });
}

function isSettled({ messages }: InProgressCheckpoint): boolean {
  const step = lastStep(messages);
  return step === undefined || step.calls.length === step.answered;
}

function withResponse(before: InProgressCheckpoint, savedAt: string): InProgressCheckpoint {
  const stepIndex = before.stepIndex + 1;
  const calls = ['reserve', 'charge'].map((toolName, index): ToolCallPart => {
    return {
      type: 'tool-call',
      toolCallId: `call_${stepIndex}_${index + 1}`,
      toolName,
      args: { order: stepIndex },
    };
  });
  const response: Message = {
    role: 'assistant',
    content: [{ type: 'text', text: `Step ${stepIndex}.` }, ...calls],
  };
  const messages = appendFrozen(before.messages, [response]);
  return deepFreeze({ ...before, messages, stepIndex, usage: oneCallMore(before), savedAt });
}

function withResults(
  before: InProgressCheckpoint,
  results: readonly ToolResultPart[],
  savedAt: string,
): InProgressCheckpoint {
  const placed = results.map((result): Message => ({ role: 'tool', content: [result] }));
  const messages = appendFrozen(before.messages, placed);
  return deepFreeze({ ...before, messages, settledResults: [], savedAt });
}

function resultOf({ toolCallId, toolName }: ToolCallPart): ToolResultPart {
  return { type: 'tool-result', toolCallId, toolName, result: { ok: true, of: toolName } };
}

function oneCallMore({ usage }: Pick<Checkpoint, 'usage'>) {
  const { byModel: _models, delegated: _delegated, ...nothing } = emptyUsage;
  const call = { inputTokens: 120, outputTokens: 30, totalTokens: 150, costUsd: 0.0015 };
  return addModelCall(usage, 'model-1', { ...nothing, ...call, modelCalls: 1 });
}
