/** The committed transcript of a conversation, saved by compare-and-swap. */
import type { BackgroundTask } from './background-task.ts';
import type { JsonValue } from './json.ts';
import type { Message } from './messages.ts';
import type { ReachedLimit, RunEnd } from './run.ts';
import type { RunUsage } from './usage.ts';

/** What is kept of the turn that was committed last, so that a retry of its input gets what it came to. */
export interface TurnSummary {
  readonly runId: string;
  readonly agentName: string;
  readonly activeAgent?: string;
  readonly stepIndex: number;
  readonly usage: RunUsage;
  /** Where in `messages` its input is. */
  readonly runInput: { readonly start: number; readonly count: number };
  readonly finishReason: RunEnd | 'aborted';
  readonly limit?: ReachedLimit;
  readonly backgroundTasks?: readonly BackgroundTask[];
}
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
  /** Absent before the first turn, and in a fork. */
  readonly lastTurn?: TurnSummary;
  readonly savedAt: string;
}
/**
 * Transcripts of `agent.session()`. Without one, they are kept in the checkpoint store.
 * S9: The sessions part throws only what C3 names.
 */
export interface SessionStore {
  /**
   * S1: `load` of a session without a record gives `null` or `undefined`.
   * S2: A session comes back equal as JSON, apart from `revision`, with fields that this release does not know.
   * S3: A damaged session is `LOUSHO_CHECKPOINT_CORRUPT` with `record: 'session'`, never an absent one.
   */
  load(id: string): Promise<SessionRecord | null | undefined>;
  /**
   * Compare and swap. `expectedRevision` 0: none is stored.
   * S4: `saveIfRevision` stores, and gives `true`, only when the stored revision is `expectedRevision`: of callers that expect the same one, exactly one wins.
   * S5: `saveIfRevision` stores the revision `expectedRevision + 1`, whatever `record.revision` says.
   * S6: `saveIfRevision` that gives `false` changed nothing.
   */
  saveIfRevision(record: SessionRecord, expectedRevision: number): Promise<boolean>;
  /** S7: After `delete` of a session resolves, it has no record and its revision is 0 again; an unknown or damaged one is fine. */
  delete(id: string): Promise<void>;
  /** S8: `list` of sessions gives every id that has a record, once. */
  list?(): Promise<readonly string[]>;
}
