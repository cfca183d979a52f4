/** Checkpoint → what callers get. */
import {
  callRecords,
  lastAssistantText,
  type BackgroundTask,
  type Checkpoint,
  type ExecutionResult,
  type FinishedCheckpoint,
  type FinishedResult,
  type ResultBase,
  type StoredBackgroundTask,
  type TurnSummary,
} from '@lousho/contract';
import type { ConversationState } from './conversation.ts';
import { knownSpend } from './next-action.ts';
import { shownTasks } from './task-ledger.ts';

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

/** What the last turn of a session came to. */
export function turnResult(
  { messages, businessState }: ConversationState,
  { finishReason, limit, ...turn }: TurnSummary,
  sessionId: string,
): ExecutionResult {
  const facts = {
    ...turn,
    messages,
    delegatedInFlight: [],
    ...(businessState === undefined ? undefined : { businessState }),
  };
  return finishReason === 'aborted'
    ? abortedResult(facts, sessionId, undefined)
    : finishedResult({ ...facts, finishReason, ...(limit === undefined ? undefined : { limit }) }, sessionId);
}

/** What of a checkpoint its result is made from. */
type ResultFacts = Pick<
  Checkpoint,
  | 'runId'
  | 'agentName'
  | 'activeAgent'
  | 'messages'
  | 'stepIndex'
  | 'usage'
  | 'delegatedInFlight'
  | 'runInput'
  | 'businessState'
> & { readonly backgroundTasks?: readonly (BackgroundTask & Partial<StoredBackgroundTask>)[] };

function finishedResult(
  checkpoint: ResultFacts & Pick<FinishedCheckpoint, 'finishReason' | 'limit'>,
  sessionId: string | undefined,
): FinishedResult {
  const { finishReason, limit } = checkpoint;
  return Object.freeze({
    ...resultBase(checkpoint, sessionId),
    finishReason,
    ...(limit === undefined ? undefined : { limit }),
  });
}

export function abortedResult(
  checkpoint: ResultFacts,
  sessionId: string | undefined,
  reason: unknown,
): ExecutionResult {
  return Object.freeze({
    ...resultBase(checkpoint, sessionId),
    finishReason: 'aborted',
    abortReason: describeAbort(reason),
  });
}

function resultBase(checkpoint: ResultFacts, sessionId: string | undefined): ResultBase {
  const { runId, agentName, activeAgent, messages, stepIndex, businessState, backgroundTasks } = checkpoint;
  return {
    runId,
    ...(sessionId === undefined ? undefined : { sessionId }),
    agentName: activeAgent ?? agentName,
    text: lastAssistantText(messages),
    messages,
    steps: stepIndex,
    usage: knownSpend(checkpoint),
    toolCalls: Object.freeze(callRecords(messages.slice(checkpoint.runInput.start))),
    ...(businessState === undefined ? undefined : { businessState }),
    ...(backgroundTasks === undefined
      ? undefined
      : { backgroundTasks: Object.freeze(shownTasks(backgroundTasks)) }),
  };
}

function describeAbort(reason: unknown): { readonly name: string; readonly message: string } {
  if (reason instanceof Error) return { name: reason.name, message: reason.message };
  return { name: 'AbortError', message: typeof reason === 'string' ? reason : 'The run was aborted.' };
}
