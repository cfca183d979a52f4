/** One open call before it runs: arguments, hooks, gate. Says whether it runs, waits for a person, or has its result already. */
import {
  PropagatingToolError,
  deepFreeze,
  jsonEqual,
  storedError,
  toJson,
  validateArgsNow,
  type ApprovalKind,
  type ArgsIssue,
  type BeforeToolOutcome,
  type CheckpointApproval,
  type JsonValue,
  type PersonQuestion,
  type Tool,
  type ToolContext,
  type ToolHookContext,
  type ToolResultPart,
} from '@lousho/contract';
import { answerResult, isQuestionTool, toolAnswer } from './ask-question.ts';
import { hookContext } from './call-model.ts';
import { approvalOfCall, type OpenCall } from './next-action.ts';
import { refusedHandoff } from './hand-over.ts';
import { handoffOf } from './handoff-tool.ts';
import { isRemoteCall, remoteGate, withDecision } from './remote-calls.ts';
import type { Run } from './run.ts';
import { toolContext } from './tool-context.ts';
import { failureResult, failures, valueResult } from './tool-result.ts';

export type PreparedCall =
  /** No need to run it. `replacedByHook`: an application's hook gave the result. */
  | { readonly type: 'settled'; readonly result: ToolResultPart; readonly replacedByHook?: true }
  /** `asked`: the question, where the arguments do not say it. */
  | {
      readonly type: 'gated';
      readonly kind: ApprovalKind;
      readonly args: JsonValue;
      readonly asked?: PersonQuestion;
    }
  | {
      readonly type: 'ready';
      readonly tool: Tool;
      readonly args: JsonValue;
      /** The same, as the tool's schema gives them. */
      readonly parsedArgs: unknown;
      readonly ctx: ToolContext;
      /** It must not begin twice unseen: its mark is saved before. */
      readonly needsMark: boolean;
      /** The decision that lets it run, if there is one. */
      readonly approvalId?: string;
    };

export async function prepareCall(run: Run, open: OpenCall): Promise<PreparedCall> {
  const { call } = open;
  const { checkpoint } = run;
  const approval = approvalOfCall(checkpoint, call.toolCallId);
  const decision = approval?.decision;
  if (isRemoteCall(run.agent, call)) return prepareRemote(open, approval);
  if (decision?.approved === false) return settled(refusedResult(open, approval as CheckpointApproval));
  const tool = run.agent.tools.get(call.toolName);
  if (tool === undefined) return settled(failures.unknownTool(call));
  const refused = refusedHandoff(checkpoint, call, handoffOf(tool));
  if (refused !== undefined) return settled(refused);
  const hasBegun = checkpoint.startedToolCallIds.includes(call.toolCallId);
  if (approval !== undefined && decision !== undefined) {
    // A person said yes once: what may have happened is not done again.
    return hasBegun ? settled(failures.interrupted(call)) : prepareApproved(run, open, tool, approval);
  }
  if (hasBegun && tool.onInterrupted === 'never') return settled(failures.interrupted(call));
  const final = await finalArgs(run, open, tool);
  // Refused now, but it had begun: whether it took effect is not known.
  if (final.type === 'settled')
    return hasBegun && final.result.kind !== undefined ? settled(failures.interrupted(call)) : final;
  const cut = hasBegun ? await afterInterruption(run, open, tool, final) : undefined;
  return cut ?? prepareFree(run, open, tool, final);
}

/** It runs elsewhere, or does not: here it waits for the decision, and its result is that. */
function prepareRemote({ call, ...open }: OpenCall, approval: CheckpointApproval | undefined): PreparedCall {
  if (approval?.decision === undefined) return { type: 'gated', ...remoteGate(call) };
  const result = approval.decision.approved
    ? valueResult(call, { decided: 'yes' })
    : refusedResult({ ...open, call }, approval);
  return settled(withDecision(result, call, approval.decision));
}

function settled(result: ToolResultPart): PreparedCall {
  return { type: 'settled', result };
}

function refusedResult({ call }: OpenCall, { kind, decision, question }: CheckpointApproval): ToolResultPart {
  const note = decision?.note === undefined ? undefined : { note: decision.note };
  const outcome = refusedOutcome(kind, question !== undefined);
  if (decision?.source === 'expiry')
    return failureResult(call, 'denied', {
      error: `The approval expired before anybody decided. ${outcome}`,
    });
  return kind === 'question'
    ? failureResult(call, 'rejected', {
        error: `The user declined to answer.${question === undefined ? '' : ` ${outcome}`}`,
        ...note,
      })
    : failureResult(call, 'rejected', { error: `A person said no. ${outcome}`, ...note });
}

/** Of a call that had begun, "it did not run" would be a guess. */
function refusedOutcome(kind: ApprovalKind, hasAsked: boolean): string {
  if (kind === 'interrupted')
    return 'The process died while the call ran: it may or may not have taken effect. It was not run again.';
  return hasAsked ? 'The call had begun, and did not go on.' : 'The call did not run.';
}

/* ── Never decided ── */

/** What the call would run with: valid, and as the hooks leave it. */
type FinalArgs = { readonly type: 'final'; readonly args: JsonValue; readonly parsedArgs: unknown };
type Settled = Extract<PreparedCall, { type: 'settled' }>;

async function finalArgs(run: Run, open: OpenCall, tool: Tool): Promise<FinalArgs | Settled> {
  const { args } = open.call;
  const checked = await checkArgs(tool, open, args);
  if (checked.type === 'settled') return checked;
  if (run.engine.hooks.length === 0) return { type: 'final', args, parsedArgs: checked.parsedArgs };
  const hooked = await runBeforeHooks(run, open, args, false);
  if (hooked.type === 'settled') return hooked;
  if (hooked.args === args) return { type: 'final', args, parsedArgs: checked.parsedArgs };
  const again = await checkArgs(tool, open, hooked.args);
  return again.type === 'settled'
    ? again
    : { type: 'final', args: hooked.args, parsedArgs: again.parsedArgs };
}

function prepareFree(
  run: Run,
  open: OpenCall,
  tool: Tool,
  { args, parsedArgs }: FinalArgs,
): PreparedCall | Promise<PreparedCall> {
  const ctx = toolContext(run, open, { args, rerun: run.mayHaveBegun(), signal: run.stop.signal });
  const { needsApproval = false } = tool;
  const after = (verdict: GateVerdict): PreparedCall =>
    pastGate(verdict, open, { tool, args, parsedArgs, ctx });
  return typeof needsApproval === 'boolean'
    ? after(needsApproval)
    : askGate(needsApproval, parsedArgs, ctx).then(after);
}

type GateVerdict = boolean | { readonly deny: string };

function pastGate(
  verdict: GateVerdict,
  open: OpenCall,
  call: Pick<Extract<PreparedCall, { type: 'ready' }>, 'tool' | 'args' | 'parsedArgs' | 'ctx'>,
): PreparedCall {
  const { tool, args } = call;
  if (verdict === true) return { type: 'gated', kind: isQuestionTool(tool) ? 'question' : 'tool', args };
  if (verdict !== false) return settled(failureResult(open.call, 'denied', { error: verdict.deny }));
  return { type: 'ready', ...call, needsMark: !isRetried(tool) };
}

function isRetried({ onInterrupted = 'retry' }: Tool): boolean {
  return onInterrupted === 'retry';
}

/** A predicate that throws counts as a yes to asking: nothing runs ungated because its gate is broken. */
async function askGate(
  needsApproval: Exclude<NonNullable<Tool['needsApproval']>, boolean>,
  parsedArgs: unknown,
  ctx: ToolContext,
): Promise<GateVerdict> {
  try {
    const verdict: unknown = await needsApproval(parsedArgs, ctx);
    if (verdict === false) return false;
    const deny =
      typeof verdict === 'object' && verdict !== null ? (verdict as { deny?: unknown }).deny : undefined;
    return typeof deny === 'string' ? { deny } : true;
  } catch {
    return true;
  }
}

type CheckedArgs =
  | { readonly type: 'valid'; readonly parsedArgs: unknown }
  | { readonly type: 'settled'; readonly result: ToolResultPart };

async function checkArgs(tool: Tool, { call }: OpenCall, args: JsonValue): Promise<CheckedArgs> {
  let issues: readonly ArgsIssue[];
  try {
    const checking = validateArgsNow(tool.input, args);
    const checked = checking instanceof Promise ? await checking : checking;
    if (checked.ok) return { type: 'valid', parsedArgs: checked.args };
    ({ issues } = checked);
  } catch (error) {
    // A check of the application's own that throws has not agreed to these arguments.
    issues = [{ path: '', message: `The check failed: ${storedError(error).message}` }];
  }
  return {
    type: 'settled',
    result: failureResult(call, 'validation', { error: 'The arguments do not fit the tool.', issues }),
  };
}

/* ── Decided: approved ── */

async function prepareApproved(
  run: Run,
  open: OpenCall,
  tool: Tool,
  approval: CheckpointApproval,
): Promise<PreparedCall> {
  const { call } = open;
  const { decision } = approval;
  const args = decision?.args ?? approval.args ?? call.args;
  const answer = toolAnswer(approval);
  if (approval.kind === 'question' && answer === undefined)
    return settled(deepFreeze(answerResult(call, args, approval)));
  const hooked = await runBeforeHooks(run, open, args, true);
  if (hooked.type === 'settled') return hooked;
  if (!jsonEqual(hooked.args, args)) {
    return settled(
      failureResult(call, 'validation', {
        error: 'A hook changed the arguments after a person had approved them. The call did not run.',
      }),
    );
  }
  const checked = await checkArgs(tool, open, args);
  if (checked.type === 'settled') return checked;
  const agreed = answer === undefined ? approval : agreedBefore(run, call);
  const ctx = toolContext(run, open, {
    args,
    // What asked has begun before; and asked about a call that had begun, it is that one which runs again.
    rerun: answer !== undefined || approval.kind === 'interrupted',
    signal: run.stop.signal,
    ...(agreed === undefined ? undefined : { approval: agreementOf(agreed) }),
    ...(answer === undefined ? undefined : { answer }),
  });
  // A handoff has no effect before the save of its result: a crash leaves nothing that could have happened.
  const needsMark = handoffOf(tool) === undefined && (agreed !== undefined || !isRetried(tool));
  const { id: approvalId } = approval;
  return { type: 'ready', tool, args, parsedArgs: checked.parsedArgs, ctx, needsMark, approvalId };
}

/** The call was let run, and asked then. */
function agreedBefore(run: Run, { toolCallId }: OpenCall['call']): CheckpointApproval | undefined {
  return run.checkpoint.approvals.find(
    (one) => one.toolCallId === toolCallId && one.childId === undefined && one.question === undefined,
  );
}

function agreementOf({ id, decision }: CheckpointApproval): NonNullable<ToolContext['approval']> {
  return {
    id,
    ...(decision?.by === undefined ? undefined : { by: decision.by }),
    ...(decision?.note === undefined ? undefined : { note: decision.note }),
  };
}

/* ── Had begun when the process died ── */

/** `undefined`: run it like any call. */
async function afterInterruption(
  run: Run,
  open: OpenCall,
  tool: Tool,
  { args, parsedArgs }: FinalArgs,
): Promise<PreparedCall | undefined> {
  const { call } = open;
  const { onInterrupted } = tool;
  if (onInterrupted === 'ask') return { type: 'gated', kind: 'interrupted', args };
  if (typeof onInterrupted !== 'function') return undefined;
  const ctx = toolContext(run, open, { args, rerun: true, signal: run.stop.signal });
  try {
    const outcome = await onInterrupted(parsedArgs, ctx);
    if (outcome === 'retry') return undefined;
    const json = toJson(outcome.result);
    return settled(json.ok ? valueResult(call, deepFreeze(json.json)) : failures.interrupted(call));
  } catch (error) {
    if (error instanceof PropagatingToolError) throw error;
    // Nobody could tell whether it happened: not done again, and the model hears so.
    return settled(failures.interrupted(call));
  }
}

/* ── Hooks ── */

type Hooked = { readonly type: 'go'; readonly args: JsonValue } | Extract<PreparedCall, { type: 'settled' }>;

async function runBeforeHooks(
  run: Run,
  open: OpenCall,
  given: JsonValue,
  isApproved: boolean,
): Promise<Hooked> {
  let args = given;
  for (const hooks of run.engine.hooks) {
    if (hooks.beforeTool === undefined) continue;
    const outcome: BeforeToolOutcome = await hooks.beforeTool(toolHookContext(run, open, args, isApproved));
    if (outcome === undefined) continue;
    if ('deny' in outcome)
      return { type: 'settled', result: failureResult(open.call, 'denied', { error: outcome.deny }) };
    if ('result' in outcome)
      return { type: 'settled', result: hookResult(open, outcome.result), replacedByHook: true };
    args = outcome.args;
  }
  return { type: 'go', args };
}

export function toolHookContext(
  run: Run,
  { call }: OpenCall,
  args: JsonValue,
  isApproved: boolean,
): ToolHookContext {
  return {
    ...hookContext(run),
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    args,
    ...(isApproved ? { resumedAfterApproval: true as const } : undefined),
  };
}

export function hookResult({ call }: OpenCall, value: unknown): ToolResultPart {
  const json = toJson(value);
  if (json.ok) return valueResult(call, deepFreeze(json.json));
  return failureResult(call, 'execution', {
    error: `A hook gave a result that JSON cannot say${json.path === '' ? '' : ` (${json.path})`}.`,
  });
}
