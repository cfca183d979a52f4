/** The instructions of the agent that answers: a system message at the head of the transcript, marked as ours. */
import { appendFrozen, deepFreeze, type Message, type SystemMessage } from '@lousho/contract';

/** The transcript with these instructions at its head. System messages that came with the input stay behind them. */
export function refreshedMessages(
  messages: readonly Message[],
  { instructions }: { readonly instructions: string | undefined },
): readonly Message[] {
  const [first, ...rest] = messages;
  const isOurs = first?.role === 'system' && isInstructions(first);
  if (instructions === undefined) return isOurs ? rest : messages;
  if (isOurs && first.content === instructions) return messages;
  return appendFrozen([instructionsMessage(instructions)], isOurs ? rest : messages);
}

/** Whether it is the agent's own instructions, not a system message that came with the input. */
export function isInstructions(message: SystemMessage): boolean {
  return message.providerMetadata?.lousho !== undefined;
}

/** Marked as ours, so that it can be told from a system message that came with the input. */
function instructionsMessage(instructions: string): SystemMessage {
  return deepFreeze({
    role: 'system',
    content: instructions.toWellFormed(),
    providerMetadata: { lousho: { instructions: true } },
  });
}
