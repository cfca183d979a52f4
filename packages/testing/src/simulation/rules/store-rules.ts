/** What may land in the store: by whom, and what it must hold. */
import {
  classifyCheckpointId,
  jsonEqual,
  resultOf,
  type Checkpoint,
  type JsonValue,
  type ToolResultPart,
} from '@lousho/contract';
import { lostBetween } from '../../crash/kept-transcript.ts';
import { transcriptProblems, unfinishedTranscriptProblems } from '../../transcript-problems.ts';
import { callKey, type Facts } from '../facts.ts';
import type { StoreCallSeen } from '../remote-store.ts';

export interface Save {
  readonly call: StoreCallSeen;
  readonly id: string;
  readonly checkpoint: Checkpoint;
  /** Absent: a save without a lease. */
  readonly lease?: { readonly owner: string; readonly fence: number | undefined } | undefined;
}
export interface Taking {
  readonly call: StoreCallSeen;
  readonly id: string;
  readonly owner: string;
  readonly fence: number;
}
export interface Load {
  readonly call: StoreCallSeen;
  readonly id: string;
  readonly found: Checkpoint | null;
}

/** F3: once a take-over has resolved, no save of the former holder becomes visible. */
export function* onlyTheHolderSaves(facts: Facts, { call, id, lease }: Save): Iterable<string> {
  if (lease === undefined) return;
  const { holder } = facts.runOf(id);
  if (holder?.owner === lease.owner && (lease.fence === undefined || holder.fence === lease.fence)) return;
  yield `${call.process.name} saved ${id} under fence ${lease.fence}; ${holder === undefined ? 'nobody holds it' : `${holder.process.name} holds it under fence ${holder.fence}`}.`;
}

/** G15 G12: what is stored once is in every later state. */
export function* nothingIsLost(facts: Facts, { id, checkpoint }: Save): Iterable<string> {
  const { stored } = facts.runOf(id);
  if (stored === undefined) return;
  for (const lost of lostBetween(stored, checkpoint)) yield `A save of ${id} lost ${lost}.`;
  const kept = new Set(checkpoint.inputIds);
  for (const inputId of stored.inputIds)
    if (!kept.has(inputId)) yield `A save of ${id} lost input ${inputId}.`;
}

/** G1 G2: at every moment. */
export function* statesAreWhole(_facts: Facts, { id, checkpoint }: Save): Iterable<string> {
  const problemsOf = checkpoint.status === 'finished' ? transcriptProblems : unfinishedTranscriptProblems;
  for (const problem of problemsOf(checkpoint.messages)) yield `A save of ${id}: ${problem}`;
  const ids = new Set(checkpoint.inputIds);
  if (ids.size < checkpoint.inputIds.length) yield `A save of ${id} has an input twice.`;
}

/** G1 G21: a result that is no failure is what its tool gave. A result is new in the save of its own step. */
export function* resultsAreTrue(facts: Facts, { id, checkpoint }: Save): Iterable<string> {
  const { runId, stepIndex: step } = checkpoint;
  for (const result of newResults(facts.runOf(id).stored, checkpoint)) {
    if (result.kind !== undefined || isOwnTool(result.toolName)) continue;
    const key = callKey({ runId, step, toolCallId: result.toolCallId });
    const values = facts.calls.get(key)?.values ?? [];
    if (!values.some((value) => jsonEqual(value, result.result)))
      yield `A save of ${id} has a result of ${key} that the tool never gave.`;
  }
}

function newResults(
  stored: Checkpoint | undefined,
  { messages, settledResults, runInput }: Checkpoint,
): readonly ToolResultPart[] {
  const lastResponse = messages.findLastIndex(({ role }) => role === 'assistant');
  // What a turn begins with is of the turns before it.
  const known = stored?.messages.length ?? runInput.start;
  const behind = messages.slice(Math.max(lastResponse + 1, known));
  const early = stored?.settledResults.map(({ toolCallId }) => toolCallId) ?? [];
  return [...behind.map(resultOf).filter((result) => result !== undefined), ...settledResults].filter(
    ({ toolCallId }) => !early.includes(toolCallId),
  );
}

/** G10: a decision is made once, and stays as it is. */
export function* decisionsStand(facts: Facts, { id, checkpoint }: Save): Iterable<string> {
  for (const { id: approvalId, decision } of checkpoint.approvals) {
    if (!facts.decidedBy.has(approvalId)) {
      if (decision?.by !== undefined && facts.refused.has(decision.by))
        yield `${decision.by} was refused, and its decision on ${approvalId} counts.`;
      continue;
    }
    if (decision === undefined) yield `A save of ${id} lost the decision on ${approvalId}.`;
    else if (decision.by !== facts.decidedBy.get(approvalId))
      yield `${approvalId} was decided by ${facts.decidedBy.get(approvalId)}, and again by ${decision.by}.`;
  }
}

/** G23: while it runs. A call that was cut may have been answered and never be stored (N4). */
export function* usageIsPlausible(facts: Facts, { id, checkpoint }: Save): Iterable<string> {
  const { usage, stepIndex, runId } = checkpoint;
  const own = usage.modelCalls - (usage.delegated?.modelCalls ?? 0);
  const { asked, dropped } = facts.modelOf(runId);
  if (own < stepIndex) yield `${id} counts ${own} model calls for ${stepIndex} responses.`;
  if (own > asked) yield `${id} counts ${own} model calls, and ${asked} were made.`;
  if (own > stepIndex + dropped)
    yield `${id} counts ${own} model calls for ${stepIndex} responses, and ${dropped} were dropped.`;
}

/** G28: a sub-agent never starts over, and is not there again behind its end. */
export function* subAgentsGoOn(facts: Facts, { id, checkpoint }: Save): Iterable<string> {
  if (classifyCheckpointId(id).kind !== 'child') return;
  const { stored, deleted } = facts.runOf(id);
  if (deleted !== undefined) yield `The sub-agent ${id} was over and is there again.`;
  if (stored !== undefined && stored.runId !== checkpoint.runId) yield `The sub-agent ${id} started over.`;
}

/** L7: a fence is never given out twice, L1: one holder at a time. */
export function* fencesGrow(facts: Facts, { call, id, owner, fence }: Taking): Iterable<string> {
  const { holder, highestFence } = facts.runOf(id);
  const isOwn = holder?.owner === owner && holder.fence === fence;
  if (!isOwn && fence <= highestFence)
    yield `${call.process.name} took ${id} under fence ${fence}; fence ${highestFence} was given out before.`;
}

/** C4 C11: a load gives what was stored last. */
export function* loadsAreTrue(facts: Facts, { call, id, found }: Load): Iterable<string> {
  const { stored } = facts.runOf(id);
  if (found === (stored ?? null)) return;
  if (!jsonEqual((found ?? null) as JsonValue, (stored ?? null) as unknown as JsonValue))
    yield `${call.process.name} loaded ${id} and got something else than was stored last.`;
}

/** Tools of the agent's own: what they give is not made outside. */
function isOwnTool(toolName: string): boolean {
  return toolName === 'task' || toolName.startsWith('handoff_to_');
}
