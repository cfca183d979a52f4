/** What a call's result looks like: the tool's own value, or why there is none. */
import {
  deepFreeze,
  type ApprovalAudit,
  type CheckpointApproval,
  type JsonValue,
  type ToolCallPart,
  type ToolFailure,
  type ToolFailureKind,
  type ToolResultPart,
} from '@lousho/contract';

export function valueResult(call: ToolCallPart, result: JsonValue): ToolResultPart {
  return { type: 'tool-result', toolCallId: call.toolCallId, toolName: call.toolName, result };
}

export function failureResult(
  call: ToolCallPart,
  kind: ToolFailureKind,
  failure: ToolFailure,
): ToolResultPart {
  return {
    type: 'tool-result',
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    result: failure as unknown as JsonValue,
    isError: true,
    kind,
  };
}

export const failures = {
  unknownTool: (call: ToolCallPart) =>
    failureResult(call, 'not-found', { error: `There is no tool "${call.toolName}".` }),
  noJson: (call: ToolCallPart) => failureResult(call, 'validation', { error: 'The arguments are not JSON.' }),
  interrupted: (call: ToolCallPart) =>
    failureResult(call, 'interrupted', {
      error:
        'The process died while this call ran. It may or may not have taken effect; check before trying again.',
    }),
  cancelledWhileRunning: (call: ToolCallPart) =>
    failureResult(call, 'cancelled', {
      error: 'The run was stopped while this call ran. It may or may not have taken effect.',
    }),
  cancelledBeforeStart: (call: ToolCallPart) =>
    failureResult(call, 'cancelled', {
      error: 'The run was stopped before this call began. It did not run.',
    }),
  steeredAway: (call: ToolCallPart) =>
    failureResult(call, 'not-run', {
      error: 'The user redirected the run before this call began. It did not run.',
    }),
  handedOver: (call: ToolCallPart) =>
    failureResult(call, 'not-run', {
      error: 'Another call of this response handed the conversation over. This one did not run.',
    }),
  leftBehind: (call: ToolCallPart) =>
    failureResult(call, 'not-run', {
      error: 'The run paused before this call, in a release that did not come back to it. It did not run.',
    }),
} as const;

/** The result with the audits of the decisions behind it, which make a second click on one say who decided what, and when. */
export function withAudits(
  result: ToolResultPart,
  approvals: readonly CheckpointApproval[],
  proposedArgs: JsonValue,
): ToolResultPart {
  if (approvals.length === 0) return deepFreeze(result);
  const ofCall = approvals.filter(({ toolCallId }) => toolCallId === result.toolCallId);
  // Whether the call may run at all. What is inside of it: a sub-agent's decisions, and what its tool asked.
  const isOwn = ({ childId, question }: CheckpointApproval): boolean =>
    childId === undefined && question === undefined;
  const [own] = ofCall.filter(isOwn).flatMap((one) => auditOf(one, proposedArgs));
  const inner = ofCall.filter((one) => !isOwn(one)).flatMap((one) => auditOf(one));
  return deepFreeze({
    ...result,
    ...(own === undefined ? undefined : { approval: own }),
    ...(inner.length === 0 ? undefined : { innerApprovals: inner }),
  });
}

/** `proposedArgs` are kept when a person changed them. */
function auditOf({ id, decision }: CheckpointApproval, proposedArgs?: JsonValue): readonly ApprovalAudit[] {
  if (decision === undefined) return [];
  const { approved, source, decidedAt, by, note, args } = decision;
  return [
    {
      id,
      approved,
      decidedAt,
      ...(source === 'person' ? undefined : { source }),
      ...(by === undefined ? undefined : { by }),
      ...(note === undefined ? undefined : { note }),
      ...(args === undefined || proposedArgs === undefined ? undefined : { proposedArgs }),
    },
  ];
}
