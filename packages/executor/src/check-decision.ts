/** A person's decision before it is stored: its arguments fit the tool, and what was seen is what would run. */
import {
  SDKError,
  deepFreeze,
  toJson,
  validateArgs,
  type Checkpoint,
  type CheckpointApproval,
  type Decision,
  type JsonValue,
} from '@lousho/contract';
import { argsHash } from './approval-gate.ts';
import { requireAnswer } from './ask-question.ts';
import { decisionOf, type GivenDecision } from './decide-approval.ts';
import { openCalls } from './next-action.ts';
import type { ResolvedAgent } from './resolved-agent.ts';

export interface DecisionContext {
  readonly approval: CheckpointApproval;
  readonly stored: Checkpoint;
  readonly agent: ResolvedAgent;
  readonly nowMs: number;
}

/** @throws LOUSHO_TOOL_ARGS_INVALID, LOUSHO_APPROVAL_ORPHANED; the approval stays pending */
export async function checkDecision(
  given: GivenDecision | undefined,
  context: DecisionContext,
): Promise<Decision> {
  const { approval, stored, agent, nowMs } = context;
  if (given === undefined) throw new Error('Invariant: a decision is opened without one');
  const open = openCalls(stored).find(({ call }) => call.toolCallId === approval.toolCallId);
  if (open === undefined) throw new Error(`Invariant: approval ${approval.id} has no open call`);
  const { toolName, args } = open.call;
  // The stored call is not the one that the person was shown: nobody agreed to this one.
  if ((await argsHash(toolName, approval.args ?? args)) !== approval.argsHash) {
    throw new SDKError('LOUSHO_APPROVAL_ORPHANED', { approvalId: approval.id });
  }
  const decision = decisionOf(given, approval, nowMs);
  if (approval.kind === 'question' && decision.approved)
    requireAnswer(given, approval, { toolName, args: approval.args ?? args });
  if (approval.kind !== 'question' && given.answer !== undefined) refuseAnswer(toolName, approval);
  if (decision.args === undefined) return deepFreeze(decision);
  return deepFreeze({ ...decision, args: await fittingArgs(decision.args, { approval, toolName, agent }) });
}

async function fittingArgs(
  given: unknown,
  {
    approval,
    toolName,
    agent,
  }: { readonly approval: CheckpointApproval; readonly toolName: string; readonly agent: ResolvedAgent },
): Promise<JsonValue> {
  const json = toJson(given);
  if (!json.ok) throw invalidArgs(toolName, approval, [{ path: json.path, message: 'This is no JSON.' }]);
  const tool = agent.tools.get(toolName);
  const checked = tool === undefined ? { ok: true as const } : await validateArgs(tool.input, json.json);
  if (!checked.ok) throw invalidArgs(toolName, approval, checked.issues);
  return json.json;
}

function refuseAnswer(toolName: string, approval: CheckpointApproval): never {
  throw invalidArgs(toolName, approval, [{ path: 'answer', message: 'Only a question takes an answer.' }]);
}

function invalidArgs(
  toolName: string,
  { id }: CheckpointApproval,
  issues: readonly { readonly path: string; readonly message: string }[],
): SDKError {
  return new SDKError('LOUSHO_TOOL_ARGS_INVALID', { toolName, approvalId: id, issues });
}
