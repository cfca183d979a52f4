/** A `task` call: the run of its sub-agent, whether that is new, interrupted, paused or finished. One loop executes it, as it does its lead. */
import {
  LLMProviderError,
  isCheckpointId,
  isSDKError,
  storedError,
  type DelegatedUsage,
  type ExecutionResult,
  type JsonValue,
  type ReachedLimit,
  type RunLimits,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';
import { inputMessages } from './accept-input.ts';
import { innerPauses, type InnerPause } from './inner-pauses.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import { asDelegated, knownSpend, type OpenCall } from './next-action.ts';
import type { Run } from './run.ts';
import { RunInput } from './run-input.ts';
import type { RunOrder } from './run-order.ts';
import type { TaskPlace } from './task-place.ts';
import { taskIdOf, type TaskArgs } from './task-tool.ts';
import { failureResult, failures, valueResult } from './tool-result.ts';

export type TaskOutcome =
  | {
      readonly type: 'result';
      readonly result: ToolResultPart;
      /** What the sub-agent spent in all. */
      readonly spent?: DelegatedUsage | undefined;
      /** The caller's state, if its tools changed it. */
      readonly businessState?: JsonValue | undefined;
    }
  /** Calls inside it wait for a person, so this one does. */
  | { readonly type: 'waits'; readonly pauses: readonly InnerPause[] }
  /** The run goes on elsewhere, and its sub-agent with it. */
  | { readonly type: 'open' }
  /** It rejects the run instead of having a result. */
  | { readonly type: 'propagated'; readonly error: unknown };

/** Never rejects. */
export async function runTask(run: Run, open: OpenCall, args: TaskArgs): Promise<TaskOutcome> {
  const { call, index } = open;
  const childId = run.childId(index);
  const about: TaskFacts = {
    call,
    name: args.agent,
    taskId: taskIdOf(run.checkpoint.messages, call.toolCallId),
  };
  if (!isCheckpointId(childId)) {
    const error = 'The id of the run is too long for a sub-agent at this depth.';
    return { type: 'result', result: failureResult(call, 'execution', { error }) };
  }
  try {
    const result = await run.executeChild(childOrder(run, open, childId, args));
    if (result === null) throw new Error(`Invariant: the sub-agent ${childId} gave no result`);
    return await outcomeOf(run, result, childId, about);
  } catch (error) {
    const { current } = run.stop;
    if (current !== undefined && current.type !== 'abort') return { type: 'open' };
    // What the sub-agent itself could not do is for the lead's model to know. All else is no matter of the task: a store, a lease, a hook.
    return isOwnFailure(error) ? failed(run, childId, about, error) : { type: 'propagated', error };
  }
}

interface TaskFacts {
  readonly call: ToolCallPart;
  readonly name: string;
  readonly taskId: string;
}

/* ── The run ── */

function childOrder(run: Run, { call, index }: OpenCall, childId: string, args: TaskArgs): RunOrder {
  const subagent = run.agent.subagents.get(args.agent);
  if (subagent === undefined) throw new Error(`Invariant: there is no sub-agent ${args.agent}`);
  const { checkpoint, engine, sessionId, approvals, store, isEphemeral, isStreaming } = run;
  const { toolCallId } = call;
  const place = placeOf(run, index, childId, args.agent);
  const decided = checkpoint.approvals.filter(
    (approval) => approval.childId === childId && approval.decision !== undefined,
  );
  return {
    checkpointId: childId,
    sessionId: sessionId === undefined ? undefined : `${sessionId}/${toolCallId}`,
    request: { type: 'task', messages: inputMessages(args.prompt), decided },
    ...{ store, isEphemeral, approvals, isStreaming },
    source: subagent.source,
    engine: subagent.engine(engine),
    metadata: checkpoint.metadata,
    principal: checkpoint.principal,
    events: run.events.ofTask(place.subagentPath, toolCallId),
    input: new RunInput(),
    stop: run.stop.inside(),
    whenBusy: 'wait',
    // Of a dead process: its lease lasts for two periods after its last renewal, which may be a heartbeat later than that of the lead's.
    leaseWaitMs: engine.lease === undefined ? 0 : 2 * engine.lease.ttlMs + engine.lease.heartbeatMs,
    task: place,
  };
}

function placeOf(run: Run, index: number, childId: string, name: string): TaskPlace {
  return {
    subagentPath: [...(run.task?.subagentPath ?? []), name],
    approvalId: run.approvalId(index),
    businessState: run.businessState,
    async spent(usage) {
      // In the tick in which the sub-agent itself is saved: stores that can write both at once.
      run.fold({ type: 'childSpent', child: { checkpointId: childId, usage } });
      await Promise.all([run.writer.save(), run.task?.spent(asDelegated(knownSpend(run.checkpoint)))]);
    },
    limitsLeft: () => limitsLeft(run, childId),
  };
}

/** What the sub-agent spends is the lead's: it gets what the limits leave beside all others. */
function limitsLeft(run: Run, childId: string): RunLimits {
  const { checkpoint, engine, task } = run;
  const own = checkpoint.delegatedInFlight.find(({ checkpointId }) => checkpointId === childId)?.usage;
  const spend = knownSpend(checkpoint);
  const outer = task?.limitsLeft() ?? {};
  const left = (max: number | undefined, used: number | undefined, mine = 0): number | undefined =>
    max === undefined || used === undefined ? undefined : max - (used - mine);
  const smaller = (a: number | undefined, b: number | undefined): number | undefined =>
    a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
  const { maxTotalTokens, maxModelCalls, maxCostUsd } = engine.limits;
  const limits = {
    maxTotalTokens: left(smaller(maxTotalTokens, outer.maxTotalTokens), spend.totalTokens, own?.totalTokens),
    maxModelCalls: left(smaller(maxModelCalls, outer.maxModelCalls), spend.modelCalls, own?.modelCalls),
    maxCostUsd: left(smaller(maxCostUsd, outer.maxCostUsd), spend.costUsd, own?.costUsd),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, max]) => max !== undefined));
}

/* ── What it came to ── */

async function outcomeOf(
  run: Run,
  result: ExecutionResult,
  childId: string,
  about: TaskFacts,
): Promise<TaskOutcome> {
  const { text, steps, finishReason, businessState } = result;
  const spent = asDelegated(result.usage);
  const ended = (part: ToolResultPart): TaskOutcome => ({
    type: 'result',
    result: part,
    spent,
    businessState,
  });
  const fail = (how: string): TaskOutcome =>
    ended(
      failureResult(about.call, 'execution', { error: notFinished(about, how, steps, finishReason, text) }),
    );
  switch (finishReason) {
    case 'awaiting-approval':
      // Saved with the pause.
      run.fold({ type: 'childSpent', child: { checkpointId: childId, usage: spent } });
      return { type: 'waits', pauses: await innerPauses(run.store, childId) };
    case 'aborted':
      return ended(
        failureResult(about.call, 'cancelled', {
          error: notFinished(about, 'was stopped with the run', steps, finishReason, text),
        }),
      );
    case 'max-steps':
      return fail('used up its steps');
    case 'limit':
      return fail(`reached the limit ${limitText(result.limit)}`);
    default:
      return ended(valueResult(about.call, `${text}\n\n${footer(about, steps, finishReason)}`));
  }
}

function limitText(limit: ReachedLimit | undefined): string {
  return limit === undefined ? '' : `${limit.name} (${limit.used} of ${limit.max})`;
}

function notFinished(about: TaskFacts, how: string, steps: number, reason: string, text: string): string {
  const last = text === '' ? '' : ` Its last words: ${text}`;
  return `The sub-agent "${about.name}" ${how}.${last}\n\n${footer(about, steps, reason)}`;
}

function footer({ name, taskId }: TaskFacts, steps: number, reason: string): string {
  return `[sub-agent: ${name}, steps: ${steps}, finish reason: ${reason}, taskId: ${taskId}]`;
}

/** Its model does not answer, or it cannot be made. */
function isOwnFailure(error: unknown): boolean {
  return error instanceof LLMProviderError || isSDKError(error, 'LOUSHO_CONFIG_RESOLVER_FAILED');
}

async function failed(run: Run, childId: string, about: TaskFacts, error: unknown): Promise<TaskOutcome> {
  try {
    const stored = await loadCheckpoint(run.store, childId);
    const { message } = storedError(error);
    const how = `failed: ${message.replace(/\.$/, '')}`;
    const result =
      run.stop.current === undefined
        ? failureResult(about.call, 'execution', {
            error: notFinished(about, how, stored?.stepIndex ?? 0, 'error', ''),
          })
        : failures.cancelledWhileRunning(about.call);
    return { type: 'result', result, spent: stored ? asDelegated(knownSpend(stored)) : undefined };
  } catch (loadError) {
    return { type: 'propagated', error: loadError };
  }
}
