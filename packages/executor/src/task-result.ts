/** What the run of a sub-agent came to → the result of the `task` call, or that it waits. */
import {
  LLMProviderError,
  deepFreeze,
  isSDKError,
  storedError,
  type DelegatedUsage,
  type ExecutionResult,
  type FinishReason,
  type JsonValue,
  type StoredBackgroundTask,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';
import { innerPauses, type InnerPause } from './inner-pauses.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { asDelegated, knownSpend } from './next-action.ts';
import type { Run } from './run.ts';
import { keepTask, metadataOf } from './task-records.ts';
import { failureResult, failures, valueResult } from './tool-result.ts';

export type TaskOutcome =
  | {
      readonly type: 'result';
      readonly result: ToolResultPart;
      /** What the sub-agent spent in all. */
      readonly spent?: DelegatedUsage | undefined;
      /** The caller's state, if its tools changed it. */
      readonly businessState?: JsonValue | undefined;
      /** In the background: the call has its result, and the task begins. */
      readonly given?: StoredBackgroundTask;
      /** Tasks in the background that are over with this result. */
      readonly ended?: readonly StoredBackgroundTask[];
    }
  /** Calls inside it wait for a person, so this one does. */
  | { readonly type: 'waits'; readonly pauses: readonly InnerPause[] }
  /** The run goes on elsewhere, and its sub-agent with it. */
  | { readonly type: 'open' }
  /** It rejects the run instead of having a result. */
  | { readonly type: 'propagated'; readonly error: unknown };

export interface TaskFacts {
  readonly call: ToolCallPart;
  readonly childId: string;
  /** The name of the sub-agent. */
  readonly agent: string;
  readonly taskId: string;
}

/** The sub-agent does not begin. */
export function refused({ call }: TaskFacts, error: string, code?: string): TaskOutcome {
  const failure = { error, ...(code === undefined ? undefined : { code }) };
  return { type: 'result', result: failureResult(call, 'execution', failure) };
}

/** @throws what the store throws */
export async function outcomeOf(run: Run, result: ExecutionResult, about: TaskFacts): Promise<TaskOutcome> {
  const { text, finishReason, businessState } = result;
  const { call, childId } = about;
  const spent = asDelegated(result.usage);
  if (finishReason === 'awaiting-approval') {
    // Saved with the pause.
    run.fold({ type: 'childSpent', child: { checkpointId: childId, usage: spent } });
    return { type: 'waits', pauses: await innerPauses(run.store, childId) };
  }
  const error = whyNotFinished(result);
  const part =
    error === undefined
      ? valueResult(call, `${text}\n\n${footer(about, result.steps, finishReason)}`)
      : failureResult(call, finishReason === 'aborted' ? 'cancelled' : 'execution', {
          error: notFinished(about, error, result),
        });
  const record = keptReasons.has(finishReason) ? await keepTask(run, childId, result) : undefined;
  const task = {
    taskId: about.taskId,
    agent: about.agent,
    ...(record === undefined ? undefined : { record }),
  };
  return {
    type: 'result',
    result: deepFreeze({ ...part, providerMetadata: metadataOf(task) }),
    ...{ spent, businessState },
  };
}

/** Of these ends a conversation can go on. */
const keptReasons: ReadonlySet<FinishReason> = new Set(['stop', 'length', 'max-steps']);

export function whyNotFinished(result: ExecutionResult): string | undefined {
  switch (result.finishReason) {
    case 'aborted':
      return 'was stopped with the run';
    case 'max-steps':
      return 'used up its steps';
    case 'limit':
      return result.limit === undefined
        ? 'reached a limit'
        : `reached the limit ${result.limit.name} (${result.limit.used} of ${result.limit.max})`;
    default:
      return undefined;
  }
}

function notFinished(
  about: TaskFacts,
  how: string,
  {
    steps,
    finishReason,
    text,
  }: { readonly steps: number; readonly finishReason: string; readonly text: string },
): string {
  const last = text === '' ? '' : ` Its last words: ${text}`;
  return `The sub-agent "${about.agent}" ${how}.${last}\n\n${footer(about, steps, finishReason)}`;
}

function footer({ agent, taskId }: TaskFacts, steps: number, reason: string): string {
  return `[sub-agent: ${agent}, steps: ${steps}, finish reason: ${reason}, taskId: ${taskId}]`;
}

/* ── It threw ── */

/** What the sub-agent itself could not do is for the lead's model to know. All else is no matter of the task: a store, a lease, a hook. */
export async function outcomeOfError(run: Run, error: unknown, about: TaskFacts): Promise<TaskOutcome> {
  const { current } = run.stop;
  if (current !== undefined && current.type !== 'abort') return { type: 'open' };
  if (!isOwnFailure(error)) return { type: 'propagated', error };
  try {
    const stored = await loadCheckpoint(run.store, about.childId);
    const spent = stored === null ? undefined : asDelegated(knownSpend(stored));
    if (current !== undefined)
      return { type: 'result', result: failures.cancelledWhileRunning(about.call), spent };
    const how = `failed: ${storedError(error).message.replace(/\.$/, '')}`;
    const end = { steps: stored?.stepIndex ?? 0, finishReason: 'error', text: '' };
    const code = isSDKError(error, 'LOUSHO_REMOTE_FAILED') ? { code: error.code } : undefined;
    const failure = { error: notFinished(about, how, end), ...code };
    return { type: 'result', result: failureResult(about.call, 'execution', failure), spent };
  } catch (loadError) {
    return { type: 'propagated', error: loadError };
  }
}

/** A task in the background goes on with another one, and that was pruned before it began. */
export class TaskForgotten extends Error {}

/** Its model does not answer, or it cannot be made, or is not to be had where it is. */
export function isOwnFailure(error: unknown): boolean {
  return (
    error instanceof LLMProviderError ||
    error instanceof TaskForgotten ||
    isSDKError(error, 'LOUSHO_CONFIG_RESOLVER_FAILED') ||
    isSDKError(error, 'LOUSHO_REMOTE_FAILED')
  );
}
