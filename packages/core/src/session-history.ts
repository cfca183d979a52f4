/** Pure: a transcript → its steps, for people who look at a conversation or branch off from it. */
import { callRecords, textOf, type Message, type ToolCallRecord } from '@lousho/contract';

export interface SessionHistoryEntry {
  /** 1-based over the session. */
  readonly step: number;
  /** 0-based: the user message that it answers. */
  readonly turn: number;
  readonly text: string;
  readonly toolCalls: readonly ToolCallRecord[];
}

export interface TranscriptStep extends SessionHistoryEntry {
  /** How many messages of the transcript there are up to its last result. */
  readonly messageCount: number;
}

/** One entry a model response, oldest first. */
export function stepsOf(messages: readonly Message[]): readonly TranscriptStep[] {
  const steps: TranscriptStep[] = [];
  let inputs = 0;
  messages.forEach((message, index) => {
    if (message.role === 'user') inputs += 1;
    if (message.role !== 'assistant') return;
    const messageCount = endOfStep(messages, index);
    steps.push({
      step: steps.length + 1,
      turn: Math.max(0, inputs - 1),
      text: textOf(message),
      toolCalls: callRecords(messages.slice(index, messageCount)),
      messageCount,
    });
  });
  return steps;
}

function endOfStep(messages: readonly Message[], index: number): number {
  let end = index + 1;
  while (messages[end]?.role === 'tool') end += 1;
  return end;
}
