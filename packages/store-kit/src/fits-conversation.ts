/** Whether a turn from elsewhere may go on with the conversation that the target has. */
import { classifyCheckpointId, type Checkpoint, type Message, type SessionRecord } from '@lousho/contract';
import { sameValue } from './same-value.ts';

/** The conversation that a checkpoint is a turn of. */
export function conversationOf(id: string): { readonly id: string; readonly turn: number } | undefined {
  const named = classifyCheckpointId(id);
  return named.kind === 'session' ? { id: named.sessionId, turn: named.turn } : undefined;
}

/** It is the next one, and begins with what was said. One that was committed there would come back as if nobody had decided it. */
export function fitsConversation(turn: number, { messages }: Checkpoint, record: SessionRecord): boolean {
  const said = withoutSystem(messages);
  return (
    record.turn === turn &&
    withoutSystem(record.messages).every((message, index) => sameValue(message, said[index]))
  );
}

/** Instructions are those of the agent that began the turn. */
function withoutSystem(messages: readonly Message[]): readonly Message[] {
  return messages.filter(({ role }) => role !== 'system');
}
