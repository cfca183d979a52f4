/** The committed transcript of a conversation, saved by compare-and-swap. */
import type { JsonValue } from './json.ts';
import type { Message } from './messages.ts';
import type { RunUsage } from './usage.ts';

export interface SessionRecord {
  readonly id: string;
  /** 0 for "not stored"; each save stores the revision before plus 1. */
  readonly revision: number;
  /** Turns committed so far. */
  readonly turn: number;
  readonly messages: readonly Message[];
  readonly inputIds: readonly string[];
  readonly businessState?: JsonValue;
  /** Spend of the whole session. */
  readonly usage: RunUsage;
  readonly savedAt: string;
}
/** Transcripts of `agent.session()`. Without one, they are kept in the checkpoint store. */
export interface SessionStore {
  load(id: string): Promise<SessionRecord | null | undefined>;
  /** Compare and swap, atomic: stores `record` only if the stored revision is `expectedRevision` (0 = none stored). */
  saveIfRevision(record: SessionRecord, expectedRevision: number): Promise<boolean>;
  delete(id: string): Promise<void>;
  list?(): Promise<readonly string[]>;
}
