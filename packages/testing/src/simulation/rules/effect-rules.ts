/** What may happen outside: calls of tools and of models. */
import {
  jsonEqual,
  lastStep,
  type Checkpoint,
  type JsonValue,
  type LLMRequest,
  type ToolCallPart,
  type ToolContext,
} from '@lousho/contract';
import { conversation } from '../../crash/kept-transcript.ts';
import { transcriptProblems } from '../../transcript-problems.ts';
import { callKey, type Facts } from '../facts.ts';
import type { VirtualProcess } from '../virtual-process.ts';

/** A tool begins. */
export interface ToolStart {
  readonly process: VirtualProcess;
  readonly ctx: ToolContext;
  readonly args: JsonValue;
  /** How often a call of it may begin: an approved one, and one that must not be repeated, once. */
  readonly isOnce: boolean;
  /** When a person must have said yes. */
  readonly asks: 'always' | 'to repeat' | 'never';
}
/** A model is asked. */
export interface ModelAsk {
  readonly process: VirtualProcess;
  readonly runId: string;
  /** Responses that the run has. */
  readonly step: number;
  readonly request: LLMRequest;
}

/** G13 G14: whoever begins something holds the run. */
export function* onlyTheHolderActs(
  facts: Facts,
  event: { readonly process: VirtualProcess; readonly runId: string },
): Iterable<string> {
  const run = facts.runById(event.runId);
  // Nothing of it is stored yet: nobody else can know of it.
  if (run === undefined || run.holder?.process === event.process) return;
  yield `${event.process.name} acts for ${run.id}; ${run.holder === undefined ? 'nobody' : run.holder.process.name} holds it.`;
}

/** G5: the response that asks for it is stored. G3: its result is not. */
export function* callsAreOpen(facts: Facts, { ctx }: ToolStart): Iterable<string> {
  const stored = facts.runById(ctx.runId)?.stored;
  const key = callKey(ctx);
  const open = stored === undefined ? undefined : openCall(stored, ctx);
  if (open === undefined) yield `${key} began, and the stored run does not ask for it.`;
  else if (open.isRecorded) yield `${key} began, and its result is stored.`;
}

/** N1 G7: a call that was cut begins again in another execution, and one that must not be repeated never. */
export function* callsBeginOnce(facts: Facts, start: ToolStart): Iterable<string> {
  const { process, ctx, isOnce } = start;
  const key = callKey(ctx);
  const call = facts.calls.get(key);
  if (call === undefined) return;
  const fence = facts.runById(ctx.runId)?.holder?.fence;
  if (call.starts.some((earlier) => earlier.process === process && earlier.fence === fence))
    yield `${key} began twice in one execution.`;
  if (isOnce && call.starts.length > 0) yield `${key} (${ctx.toolName}) began a second time.`;
  if (call.starts.length > 0 && !ctx.rerun) yield `${key} is not told that it may have begun before.`;
  if (call.keys.size > 0 && !call.keys.has(ctx.idempotencyKey)) yield `${key} has another idempotency key.`;
}

/** G8 G9: a person said yes to just this call. */
export function* onlyApprovedCallsBegin(facts: Facts, start: ToolStart): Iterable<string> {
  const { ctx, args, asks } = start;
  const isRepeated = (facts.calls.get(callKey(ctx))?.starts.length ?? 0) > 0;
  if (asks === 'never' || (asks === 'to repeat' && !isRepeated)) return;
  const stored = facts.runById(ctx.runId)?.stored;
  const approval = stored?.approvals.find(({ toolCallId }) => toolCallId === ctx.toolCallId);
  const key = callKey(ctx);
  if (approval?.decision?.approved !== true) yield `${key} began, and nobody had approved it.`;
  else if (stored !== undefined) {
    const proposed = openCall(stored, ctx)?.call.args ?? null;
    if (!jsonEqual(args, approval.decision.args ?? proposed))
      yield `${key} began with other arguments than were approved.`;
  }
}

/** G6: every request is one that a provider takes. */
export function* requestsAreValid(_facts: Facts, { runId, request }: ModelAsk): Iterable<string> {
  for (const problem of transcriptProblems(request.messages)) yield `A request of ${runId}: ${problem}`;
}

/** G4: no stored response is asked for again. G5: what the model sees is stored. */
export function* responsesAreAskedOnce(facts: Facts, { runId, step, request }: ModelAsk): Iterable<string> {
  const run = facts.runById(runId);
  const stored = run?.stored;
  if (run === undefined || stored?.runId !== runId) return;
  if (stored.stepIndex > step) yield `${run.id} asks for response ${step + 1}, which is stored.`;
  const seen = conversation(request.messages);
  const kept = conversation(stored.messages);
  const lastResult = seen.findLastIndex(({ role }) => role !== 'user');
  if (lastResult >= 0 && !jsonEqual(seen[lastResult] as never, kept[lastResult] as never))
    yield `${run.id} shows the model what is not stored.`;
}

function openCall(
  { messages, settledResults, runId, stepIndex }: Checkpoint,
  ctx: Pick<ToolContext, 'runId' | 'step' | 'toolCallId'>,
): { readonly call: ToolCallPart; readonly isRecorded: boolean } | undefined {
  const step = lastStep(messages);
  if (step === undefined || runId !== ctx.runId || stepIndex !== ctx.step) return undefined;
  const index = step.calls.findIndex(({ toolCallId }) => toolCallId === ctx.toolCallId);
  const call = step.calls[index];
  if (call === undefined) return undefined;
  const isEarly = settledResults.some(({ toolCallId }) => toolCallId === ctx.toolCallId);
  return { call, isRecorded: index < step.answered || isEarly };
}
