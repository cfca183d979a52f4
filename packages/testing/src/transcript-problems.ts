/** Whether a provider would take a transcript, and if not, why. */
import { ownCalls, resultOf, type Message, type ToolCallPart } from '@lousho/contract';

/**
 * What is wrong with a transcript, one sentence each; empty when a provider would take it. Calls of the last message without a result
 * count as wrong: no provider takes those.
 */
export function transcriptProblems(messages: readonly Message[]): readonly string[] {
  return findProblems(messages, { openCallsAllowed: false });
}

/** The same for a run that is not over: calls of its last step may still be open. */
export function unfinishedTranscriptProblems(messages: readonly Message[]): readonly string[] {
  return findProblems(messages, { openCallsAllowed: true });
}

interface OpenStep {
  readonly position: string;
  readonly calls: readonly ToolCallPart[];
  /** Results so far. */
  answered: number;
}

function findProblems(
  messages: readonly Message[],
  { openCallsAllowed }: { readonly openCallsAllowed: boolean },
): string[] {
  const problems: string[] = [];
  let step: OpenStep | undefined;
  let hasConversation = false;
  messages.forEach((message, index) => {
    const position = `messages[${index}]`;
    if (message.role === 'tool') {
      problems.push(...resultProblems(message, position, step));
      if (step !== undefined) step.answered += 1;
    } else {
      problems.push(...unansweredProblems(step));
      problems.push(...orderProblems(message, position, hasConversation));
      step = message.role === 'assistant' ? { position, calls: ownCalls(message), answered: 0 } : undefined;
    }
    hasConversation ||= message.role !== 'system';
  });
  if (!openCallsAllowed) problems.push(...unansweredProblems(step));
  if (messages.length > 0 && !hasConversation)
    problems.push('There is no message behind the system messages.');
  return problems;
}

function* orderProblems(message: Message, position: string, hasConversation: boolean): Iterable<string> {
  if (message.role === 'system' && hasConversation)
    yield `${position} is a system message, which may only stand in front of all others.`;
  if (message.role === 'assistant' && !hasConversation)
    yield `${position} is the first message of the conversation and comes from the assistant instead of the user.`;
  if (message.role !== 'assistant') return;
  const seen = new Set<string>();
  for (const part of message.content) {
    if (part.type !== 'tool-call') continue;
    if (seen.has(part.toolCallId)) yield `${position} has two calls with the id "${part.toolCallId}".`;
    seen.add(part.toolCallId);
  }
}

function* resultProblems(message: Message, position: string, step: OpenStep | undefined): Iterable<string> {
  const result = resultOf(message);
  if (result === undefined) {
    yield `${position} is a tool message without a result.`;
    return;
  }
  const { toolCallId, toolName } = result;
  const due = step?.calls[step.answered];
  if (step === undefined || due === undefined)
    yield `${position} is a result of "${toolCallId}", and no call before it waits for one.`;
  else if (due.toolCallId !== toolCallId)
    yield `${position} is a result of "${toolCallId}" where the result of "${due.toolCallId}" belongs.`;
  else if (due.toolName !== toolName)
    yield `${position} is a result of the tool "${toolName}", and the call "${toolCallId}" asked for "${due.toolName}".`;
}

function* unansweredProblems(step: OpenStep | undefined): Iterable<string> {
  if (step === undefined) return;
  for (const { toolCallId, toolName } of step.calls.slice(step.answered))
    yield `${step.position} calls "${toolName}" (${toolCallId}), and its result does not follow.`;
}
