/** Whether the engine can go on from a transcript: what somebody rewrote by hand is checked before it is stored. */
import { ownCalls, resultOf, type Message, type ToolCallPart } from '@lousho/contract';

/** What is wrong with it, or `undefined`. Calls of the last step may be open. */
export function transcriptProblem(messages: readonly Message[]): string | undefined {
  let open: readonly ToolCallPart[] = [];
  let answered = 0;
  let hasConversation = false;
  for (const [index, message] of messages.entries()) {
    const due = open[answered];
    if (message.role === 'tool') {
      const result = resultOf(message);
      if (due === undefined || result?.toolCallId !== due.toolCallId || result.toolName !== due.toolName)
        return `message ${index} holds a result that no call before it waits for`;
      answered += 1;
      continue;
    }
    if (due !== undefined)
      return `the call "${due.toolCallId}" before message ${index} has no result behind it`;
    if (message.role === 'system' && hasConversation)
      return `message ${index} is a system message behind the conversation's first`;
    if (message.role === 'assistant' && !hasConversation)
      return `message ${index} comes from the assistant, before any user has said something`;
    hasConversation ||= message.role !== 'system';
    open = message.role === 'assistant' ? ownCalls(message) : [];
    answered = 0;
    const ids = open.map(({ toolCallId }) => toolCallId);
    if (new Set(ids).size < ids.length) return `message ${index} has two calls with one id`;
  }
  return hasConversation ? undefined : 'there is no message of a user';
}
