/** Pure: checkpoint → what has to happen now. Derived from the transcript and the few fields beside it, never from a queue. */
import {
  addDelegated,
  addRun,
  lastStep,
  sumUsage,
  type Checkpoint,
  type CheckpointApproval,
  type DelegatedUsage,
  type Message,
  type ModelUsage,
  type ReachedLimit,
  type RunEnd,
  type RunLimits,
  type RunUsage,
  type ToolCallPart,
} from '@lousho/contract';
import { openTasks } from './task-ledger.ts';

export type NextAction =
  | { readonly type: 'callModel' }
  /** Calls of the last response without a result, in call order, none of which waits for a person. */
  | { readonly type: 'runTools'; readonly calls: readonly OpenCall[] }
  | { readonly type: 'waitForApproval'; readonly approvals: readonly CheckpointApproval[] }
  /** Held-back input enters the transcript: every call has its result. */
  | { readonly type: 'joinInput' }
  /** The run could end, but tasks of it are in the background. */
  | { readonly type: 'endTasks' }
  | { readonly type: 'finish'; readonly finishReason: RunEnd; readonly limit?: ReachedLimit }
  /** The run is over, but input that it took waits: the session goes on with a run of its own for it. */
  | { readonly type: 'startNextRun' }
  | { readonly type: 'done' };

/** A call by its place in the last response; `index` counts the calls that we run, from 0. */
export interface OpenCall {
  readonly call: ToolCallPart;
  readonly index: number;
}

export interface StepPolicy {
  readonly maxSteps: number;
  readonly limits: RunLimits;
  readonly sessionLimits?: SessionLimits | undefined;
}

export interface SessionLimits {
  readonly limits: RunLimits;
  /** Spent by the turns before. */
  readonly usage: ModelUsage;
}

export function nextAction(checkpoint: Checkpoint, policy: StepPolicy): NextAction {
  const action = withoutTasks(checkpoint, policy);
  return action.type === 'finish' && openTasks(checkpoint).length > 0 ? { type: 'endTasks' } : action;
}

function withoutTasks(checkpoint: Checkpoint, policy: StepPolicy): NextAction {
  if (checkpoint.status === 'finished')
    return { type: checkpoint.heldInput.length > 0 ? 'startNextRun' : 'done' };
  const calls = openCalls(checkpoint);
  if (calls.length > 0) {
    const approvals = undecidedApprovals(checkpoint, calls);
    return approvals.length > 0 ? { type: 'waitForApproval', approvals } : { type: 'runTools', calls };
  }
  const answered = checkpoint.messages.at(-1)?.role === 'assistant';
  if (answered && checkpoint.heldInput.length === 0) return { type: 'finish', finishReason: 'stop' };
  if (checkpoint.stepIndex >= policy.maxSteps) return { type: 'finish', finishReason: 'max-steps' };
  const limit = reachedLimit(checkpoint, policy);
  if (limit !== undefined) return { type: 'finish', finishReason: 'limit', limit };
  return { type: checkpoint.heldInput.length > 0 ? 'joinInput' : 'callModel' };
}

/** Calls of the last response that have no result yet, neither in the transcript nor settled early. */
export function openCalls(checkpoint: Checkpoint): readonly OpenCall[] {
  const step = lastStep(checkpoint.messages);
  if (step === undefined || step.answered >= step.calls.length) return [];
  const open: OpenCall[] = [];
  for (let index = step.answered; index < step.calls.length; index += 1) {
    const call = step.calls[index] as ToolCallPart;
    if (!checkpoint.settledResults.some((result) => result.toolCallId === call.toolCallId))
      open.push({ call, index });
  }
  return open;
}

/** Approvals that a person still has to decide, in call order. */
export function undecidedApprovals(
  checkpoint: Checkpoint,
  calls: readonly OpenCall[] = openCalls(checkpoint),
): readonly CheckpointApproval[] {
  return checkpoint.approvals.filter(
    (approval) =>
      approval.decision === undefined && calls.some(({ call }) => call.toolCallId === approval.toolCallId),
  );
}

/** The latest approval of the call itself. Those inside the sub-agent that a call runs are not about this call. */
export function approvalOfCall(
  { approvals }: Pick<Checkpoint, 'approvals'>,
  toolCallId: string,
): CheckpointApproval | undefined {
  return approvals.findLast(
    (approval) => approval.toolCallId === toolCallId && approval.childId === undefined,
  );
}

/** What the run spent, with what is known of unfinished sub-agents. */
export function knownSpend(checkpoint: Pick<Checkpoint, 'usage' | 'delegatedInFlight'>): RunUsage {
  return checkpoint.delegatedInFlight.reduce(
    (usage, child) => addDelegated(usage, child.usage),
    checkpoint.usage,
  );
}

/** What the whole turn spent, when the run is one of a session: also the runs before this one. */
export function turnSpend(
  checkpoint: Pick<Checkpoint, 'usage' | 'delegatedInFlight' | 'spentBefore'>,
): RunUsage {
  const { spentBefore } = checkpoint;
  const spend = knownSpend(checkpoint);
  return spentBefore === undefined ? spend : addRun(spentBefore, spend);
}

/** `knownSpend` for the run's own lead, which does not keep apart what was delegated again. */
export function asDelegated({ delegated: _delegated, ...usage }: RunUsage): DelegatedUsage {
  return usage;
}

function reachedLimit(checkpoint: Checkpoint, policy: StepPolicy): ReachedLimit | undefined {
  const { limits, sessionLimits } = policy;
  const spend = knownSpend(checkpoint);
  const toolCalls = (start: number) => (): number => toolResultCount(checkpoint.messages, start);
  const ofRun = firstReached(limits, spend, toolCalls(checkpoint.runInput.start));
  if (ofRun !== undefined || sessionLimits === undefined) return ofRun;
  const ofSession = sumUsage(sessionLimits.usage, turnSpend(checkpoint));
  // The transcript of a turn is that of the whole session.
  return firstReached(sessionLimits.limits, ofSession, toolCalls(0));
}

function firstReached(
  limits: RunLimits,
  spend: ModelUsage,
  toolCalls: () => number,
): ReachedLimit | undefined {
  const used: { readonly [Name in keyof RunLimits]-?: () => number | undefined } = {
    maxTotalTokens: () => spend.totalTokens,
    maxModelCalls: () => spend.modelCalls,
    maxToolCalls: toolCalls,
    maxCostUsd: () => spend.costUsd,
  };
  for (const name of Object.keys(used) as (keyof RunLimits)[]) {
    const max = limits[name];
    const spent = max === undefined ? undefined : used[name]();
    if (max !== undefined && spent !== undefined && spent >= max) return { name, max, used: spent };
  }
  return undefined;
}

/** Of two sets of limits, each the one that is reached first. */
export function tightest(limits: RunLimits, others: RunLimits | undefined): RunLimits {
  if (others === undefined) return limits;
  const tight: { -readonly [Name in keyof RunLimits]: number } = { ...limits } as Record<string, number>;
  for (const [name, max] of Object.entries(others) as [keyof RunLimits, number][])
    tight[name] = Math.min(tight[name] ?? Infinity, max);
  return tight;
}

function toolResultCount(messages: readonly Message[], start: number): number {
  let count = 0;
  for (let index = start; index < messages.length; index += 1)
    if (messages[index]?.role === 'tool') count += 1;
  return count;
}
