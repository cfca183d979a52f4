/** A conversation as a page shows it: from the messages of the transcript, which are the truth, and what waits for a person. */
import {
  resultOf,
  type ApprovalRequest,
  type AssistantPart,
  type FilePart,
  type JsonValue,
  type Message,
  type ToolCallPart,
  type ToolFailure,
  type ToolResultPart,
  type UserMessage,
} from '@lousho/contract';
import type { UIApprovalData, UIMessage, UIPart, UIToolPart } from './ui-messages.ts';

/**
 * Everything between two user messages is one message of the assistant. Ids count the user messages, so a page that is loaded again, from
 * any process, gets the same ones.
 */
export function uiMessages(
  messages: readonly Message[],
  approvals: readonly ApprovalRequest[] = [],
): readonly UIMessage[] {
  const results = new Map(
    messages.map(resultOf).flatMap((result) => (result === undefined ? [] : [[result.toolCallId, result]])),
  );
  const shown: { id: string; role: UIMessage['role']; parts: UIPart[] }[] = [];
  let userMessages = 0;
  for (const message of messages) {
    if (message.role === 'user') {
      userMessages += 1;
      shown.push({ id: `user-${userMessages}`, role: 'user', parts: userParts(message) });
    } else if (message.role === 'assistant') {
      const id = answerId(userMessages);
      if (shown.at(-1)?.id !== id) shown.push({ id, role: 'assistant', parts: [] });
      shown.at(-1)?.parts.push(...assistantParts(message.content, results, approvals));
    }
  }
  const inner = approvals.filter(isInner).map(approvalPart);
  if (shown.at(-1)?.role === 'assistant') shown.at(-1)?.parts.push(...inner);
  return shown;
}

/** What there is of the newest answer; an empty one when the last word is the user's. */
export function lastAnswerIn(
  messages: readonly Message[],
  approvals: readonly ApprovalRequest[] = [],
): UIMessage {
  const last = uiMessages(messages, approvals).at(-1);
  if (last?.role === 'assistant') return last;
  const userMessages = messages.filter(({ role }) => role === 'user').length;
  return { id: answerId(userMessages), role: 'assistant', parts: [] };
}

/** The message that answers the n-th message of the user, from 1. */
export function answerId(userMessages: number): string {
  return `assistant-${userMessages}`;
}

/** No tool part of the conversation is the call that waits. */
export function isInner({ subagentPath }: Pick<ApprovalRequest, 'subagentPath'>): boolean {
  return subagentPath !== undefined && subagentPath.length > 0;
}

function failureTextOf({ result }: Pick<ToolResultPart, 'result'>): string {
  const { error } = (typeof result === 'object' && result !== null ? result : {}) as Partial<ToolFailure>;
  return typeof error === 'string' ? error : JSON.stringify(result);
}

function userParts({ content }: UserMessage): UIPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : filePart(part)));
}

function filePart({ mediaType, filename, data }: FilePart): UIPart {
  const named = filename === undefined ? undefined : { filename };
  switch (data.type) {
    case 'url':
      return { type: 'file', mediaType, url: data.url, ...named };
    case 'data':
      return { type: 'file', mediaType, url: `data:${mediaType};base64,${data.data}`, ...named };
    case 'text':
      return { type: 'file', mediaType, url: `data:${mediaType},${encodeURIComponent(data.text)}`, ...named };
    case 'reference':
      // It lies with the provider: a page can show nothing but its name.
      return { type: 'text', text: filename ?? mediaType };
  }
}

function assistantParts(
  content: readonly AssistantPart[],
  results: ReadonlyMap<string, ToolResultPart>,
  approvals: readonly ApprovalRequest[],
): UIPart[] {
  const own = new Map(
    content.flatMap((part) => (part.type === 'tool-result' ? [[part.toolCallId, part] as const] : [])),
  );
  const parts = content.flatMap((part): UIPart[] => {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        // A signature without words is for the provider.
        return part.text === '' ? [] : [{ type: part.type, text: part.text, state: 'done' }];
      case 'file':
        return [filePart(part)];
      case 'tool-call':
        return [toolPart(part, own.get(part.toolCallId) ?? results.get(part.toolCallId), approvals)];
      case 'tool-result':
      case 'custom':
        return [];
    }
  });
  return [{ type: 'step-start' }, ...parts];
}

function toolPart(
  { toolName, toolCallId, args, providerExecuted }: ToolCallPart,
  result: ToolResultPart | undefined,
  approvals: readonly ApprovalRequest[],
): UIToolPart {
  const call = {
    type: `tool-${toolName}`,
    toolCallId,
    input: args,
    ...(providerExecuted === undefined ? undefined : { providerExecuted }),
  } as const;
  if (result !== undefined) return { ...call, ...outcomeOf(result) };
  const asked = approvals.find((approval) => !isInner(approval) && approval.toolCallId === toolCallId);
  return asked === undefined
    ? { ...call, state: 'input-available' }
    : { ...call, state: 'approval-requested', approval: { id: asked.id } };
}

function outcomeOf(result: ToolResultPart): Pick<UIToolPart, 'state'> & Partial<UIToolPart> {
  const { approval: audit, kind, isError } = result;
  const approval =
    audit === undefined
      ? undefined
      : {
          approval: {
            id: audit.id,
            approved: audit.approved,
            ...(audit.note === undefined ? undefined : { reason: audit.note }),
          },
        };
  if (approval !== undefined && !approval.approval.approved) return { state: 'output-denied', ...approval };
  return kind === undefined && isError === undefined
    ? { state: 'output-available', output: result.result, ...approval }
    : { state: 'output-error', errorText: failureTextOf(result), ...approval };
}

function approvalPart(request: ApprovalRequest): UIPart {
  return {
    type: 'data-lousho-approval',
    id: request.id,
    data: approvalData({ ...request, approvalId: request.id }),
  };
}

/** What a page needs to ask a person: also from the event of the pause. */
export function approvalData(request: {
  readonly approvalId: string;
  readonly kind: ApprovalRequest['kind'];
  readonly toolName: string;
  readonly args: JsonValue;
  readonly subagentPath?: readonly string[];
  readonly question?: ApprovalRequest['question'];
  readonly expiresAt?: string;
}): UIApprovalData {
  const { approvalId, kind, toolName, args, subagentPath, question, expiresAt } = request;
  return {
    ...{ approvalId, kind, toolName, args },
    ...(subagentPath === undefined ? undefined : { subagentPath }),
    ...(question === undefined ? undefined : { question }),
    ...(expiresAt === undefined ? undefined : { expiresAt }),
  };
}
