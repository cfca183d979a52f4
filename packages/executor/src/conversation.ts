/** The conversation that a run is a turn of, kept outside of the run: what the run begins with, and where its end is recorded. */
import type { Checkpoint, Message } from '@lousho/contract';
import type { HeldLease } from './lease-keeper.ts';

/** What a new turn goes on from. */
export type ConversationState = Pick<Checkpoint, 'messages' | 'inputIds' | 'businessState'>;

export interface Conversation {
  /** What it holds, read under the turn's lease. `undefined`: this turn is over already, and another one is next. */
  open(): Promise<ConversationState | undefined>;
  /** What was said in all turns that are over. */
  said(): Promise<readonly Message[]>;
  /**
   * The turn is over or waits for a person, and stored so. `lease`: the turn's, `undefined` on a store without leases.
   * @throws what rejects the caller, the turn then stays stored
   */
  settle(checkpoint: Checkpoint, lease: HeldLease | undefined): Promise<void>;
}

/** A turn that ended and is not recorded in its conversation: it was cut in between. An aborted one is over, too. */
export function isOver(checkpoint: Checkpoint): boolean {
  return (
    checkpoint.status === 'finished' ||
    (checkpoint.status === 'in-progress' && checkpoint.finishReason === 'aborted')
  );
}
