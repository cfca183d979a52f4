/**
 * The one codec of every store that appends: a save becomes an event, the events of an id are its log, and the log is the history.
 *
 * An event holds what the save adds to the content (messages, early results, held input) and the whole volatile header, compact. So a
 * save costs what is new, and the header of a run is its last `f` and its last event: listing never reads a log. Property: for every
 * sequence of checkpoints, folding their events gives the last one back, and any cut between two events is a saved state.
 *
 * Here is what an event is; `next-event.ts` makes it, `fold-events.ts` makes states of it again.
 */
import type { CheckpointApproval, CheckpointStatus } from './checkpoint.ts';
import type { JsonValue } from './json.ts';
import type { Message, ToolResultPart } from './messages.ts';
import type { PackedUsage } from './packed-usage.ts';

/** Short keys: every save writes them. Absent means the usual value, or unchanged where that is said. */
export interface LogEvent {
  /** `savedAt`, epoch milliseconds; a time of another form is kept as text. */
  readonly t: number | string;
  /** `stepIndex`. */
  readonly s: number;
  /** Number of messages after this event. */
  readonly n: number;
  /** `status`; absent: in-progress. */
  readonly z?: CheckpointStatus;
  /** `usage`, packed. */
  readonly u: PackedUsage;
  /** The facts of the run: what does not change while it executes. Absent: unchanged. */
  readonly f?: { readonly [fact: string]: JsonValue };
  /** The other volatile header fields that are there, by their own names. */
  readonly v?: { readonly [field: string]: JsonValue };

  /** A base: everything before it is void. With `of`, its first messages are the first `n` of the log of that id. */
  readonly b?: 1 | { readonly of: string; readonly n: number };
  /** Keep only the first so many messages, then append. */
  readonly k?: number;
  /** Messages appended. A text stands for the tool message of the early result with that call id. */
  readonly m?: readonly (Message | string)[];
  /** Early results appended, or (`R`) replaced. Those that `m` names are taken out. */
  readonly r?: readonly ToolResultPart[];
  readonly R?: readonly ToolResultPart[];
  /** Held input, whole. Absent: unchanged. */
  readonly h?: readonly Message[];
  /** Input ids appended, or (`I`) replaced. */
  readonly i?: readonly string[];
  readonly I?: readonly string[];
  /** `businessState` in a list, `[]` when it was removed. Absent: unchanged. */
  readonly w?: readonly [] | readonly [JsonValue];
}

/** What nobody has decided. The approval ids of a waiting run follow from it, so its event need not name them. */
export function undecidedIds(approvals: readonly CheckpointApproval[]): string[] {
  return approvals.filter((approval) => approval.decision === undefined).map((approval) => approval.id);
}
