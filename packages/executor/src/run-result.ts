/** Checkpoint → what callers get. */
import {
  answeredCalls,
  lastAssistantText,
  type Checkpoint,
  type ExecutionResult,
  type FinishedCheckpoint,
  type FinishedResult,
  type ResultBase,
  type ToolCallRecord,
} from '@lousho/contract';
import { knownSpend } from './next-action.ts';

export function pausedOrFinished(
  checkpoint: Exclude<Checkpoint, { status: 'in-progress' }>,
  sessionId: string | undefined,
): ExecutionResult {
  if (checkpoint.status === 'finished') return finishedResult(checkpoint, sessionId);
  const { approvalId, approvalIds } = checkpoint;
  return Object.freeze({
    ...resultBase(checkpoint, sessionId),
    finishReason: 'awaiting-approval',
    approvalId,
    approvalIds,
  });
}

function finishedResult(checkpoint: FinishedCheckpoint, sessionId: string | undefined): FinishedResult {
  const { finishReason, limit } = checkpoint;
  return Object.freeze({
    ...resultBase(checkpoint, sessionId),
    finishReason,
    ...(limit === undefined ? undefined : { limit }),
  });
}

export function abortedResult(
  checkpoint: Checkpoint,
  sessionId: string | undefined,
  reason: unknown,
): ExecutionResult {
  return Object.freeze({
    ...resultBase(checkpoint, sessionId),
    finishReason: 'aborted',
    abortReason: describeAbort(reason),
  });
}

function resultBase(checkpoint: Checkpoint, sessionId: string | undefined): ResultBase {
  const { runId, agentName, activeAgent, messages, stepIndex, businessState } = checkpoint;
  return {
    runId,
    ...(sessionId === undefined ? undefined : { sessionId }),
    agentName: activeAgent ?? agentName,
    text: lastAssistantText(messages),
    messages,
    steps: stepIndex,
    usage: knownSpend(checkpoint),
    toolCalls: Object.freeze(callsOfRun(checkpoint)),
    ...(businessState === undefined ? undefined : { businessState }),
  };
}

function callsOfRun({ messages, runInput }: Checkpoint): ToolCallRecord[] {
  const records: ToolCallRecord[] = [];
  for (const { call, result } of answeredCalls(messages.slice(runInput.start))) {
    records.push({
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      args: call.args,
      result: result.result,
      ...(result.isError === undefined ? undefined : { isError: result.isError }),
      ...(result.kind === undefined ? undefined : { kind: result.kind }),
    });
  }
  return records;
}

function describeAbort(reason: unknown): { readonly name: string; readonly message: string } {
  if (reason instanceof Error) return { name: reason.name, message: reason.message };
  return { name: 'AbortError', message: typeof reason === 'string' ? reason : 'The run was aborted.' };
}
