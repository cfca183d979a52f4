/** What a call's result looks like: the tool's own value, or why there is none. */
import {
  deepFreeze,
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
  leftBehind: (call: ToolCallPart) =>
    failureResult(call, 'not-run', {
      error: 'The run paused before this call, in a release that did not come back to it. It did not run.',
    }),
} as const;

/** The result with the audit of the decision behind it, which makes a second click on it say who decided what, and when. */
export function withAudit(
  result: ToolResultPart,
  approval: CheckpointApproval | undefined,
  proposedArgs: JsonValue,
): ToolResultPart {
  const decision = approval?.decision;
  if (approval === undefined || decision === undefined) return deepFreeze(result);
  const { approved, source, decidedAt, by, note, args } = decision;
  return deepFreeze({
    ...result,
    approval: {
      id: approval.id,
      approved,
      decidedAt,
      ...(source === 'person' ? undefined : { source }),
      ...(by === undefined ? undefined : { by }),
      ...(note === undefined ? undefined : { note }),
      ...(args === undefined ? undefined : { proposedArgs }),
    },
  });
}
