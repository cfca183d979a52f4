/** Whether records of two stores have the same content. Entries of a history share their messages: each pair is compared once. */
import type { Checkpoint, Message } from '@lousho/contract';
import { sameValue } from './same-value.ts';

export type SameCheckpoint = (a: Checkpoint, b: Checkpoint) => boolean;

/** For one run: what it remembers goes with it. */
export function checkpointComparison(): SameCheckpoint {
  const same = new WeakMap<Message, Message>();
  const sameMessage = (a: Message, b: Message | undefined): boolean => {
    if (b === undefined) return false;
    if (a === b || same.get(a) === b) return true;
    if (!sameValue(a, b)) return false;
    same.set(a, b);
    return true;
  };
  return (a, b) => {
    const [{ messages, ...rest }, { messages: others, ...otherRest }] = [a, b];
    return (
      messages.length === others.length &&
      a.savedAt === b.savedAt &&
      a.stepIndex === b.stepIndex &&
      sameValue(rest, otherRest) &&
      messages.every((message, index) => sameMessage(message, others[index]))
    );
  };
}
