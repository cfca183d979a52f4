/** An answer that is made elsewhere (in another process, or by a recovery of this one), as the store has it: for a page that comes back to it. */
import type { ApprovalRequest, Clock, Message } from '@lousho/contract';
import type { PendingRun } from '@lousho/core';
import { chunksOf, partChunks } from './answer-chunks.ts';
import type { Answer } from './answers.ts';
import { lastAnswerIn } from './transcript-ui.ts';
import type { UIChunk, UIMessage } from './ui-messages.ts';

export interface WatchedChat {
  /** Of the unfinished turn, if there is one. */
  status(): Promise<PendingRun['status'] | undefined>;
  /** The conversation as it is stored now. */
  messages(): Promise<readonly Message[]>;
  approvals(): Promise<readonly ApprovalRequest[]>;
  /** Goes on with the answer here once nobody does elsewhere; until then `undefined`. */
  takeOver(): Promise<Answer | undefined>;
}

/** How soon what was stored is shown. A page that watches costs the store three reads each time. */
const POLL_MS = 1_000;

/** Step by step instead of word by word: what is not stored yet is not told. */
export async function* watchAnswer(
  chat: WatchedChat,
  clock: Clock,
): AsyncGenerator<UIChunk, void, undefined> {
  let shown = lastAnswerIn(await chat.messages());
  yield { type: 'start', messageId: shown.id };
  yield* chunksOf(shown);
  for (;;) {
    // In this order: what belongs to a status is stored before it is.
    const status = await chat.status();
    const asked = status === 'awaiting-approval' ? await chat.approvals() : [];
    const now = lastAnswerIn(await chat.messages(), asked);
    // The conversation went on: that is another answer.
    const isOver = status !== 'in-progress' || now.id !== shown.id;
    if (now.id === shown.id) {
      yield* chunksBehind(shown, now);
      shown = now;
    }
    if (isOver) {
      yield { type: 'finish', finishReason: status === 'awaiting-approval' ? 'tool-calls' : 'stop' };
      return;
    }
    const answer = await chat.takeOver();
    if (answer !== undefined) {
      yield* chunksBehind(shown, answer.message);
      yield* answer.log.read(answer.ownFrom);
      return;
    }
    await pause(clock);
  }
}

/** What a page lacks of a message that it has so far; a call whose state has changed is told again. */
function chunksBehind(shown: UIMessage, { id, parts }: UIMessage): readonly UIChunk[] {
  return parts.flatMap((part, index) => {
    const before = shown.parts[index];
    const isShown =
      before !== undefined && (!('state' in part) || !('state' in before) || before.state === part.state);
    return isShown ? [] : partChunks(part, `${id}-${index}`, index > 0);
  });
}

function pause(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.setTimer(resolve, POLL_MS, { keepAlive: false }));
}
