/** Pure: the changes of one path and what the file is now → how far it can be taken back. */
import { stateBefore } from './change-memory.ts';
import type { ChangeRecord } from './change-records.ts';

export interface RewindPlan {
  /** Newest first. Their records go once the file is what `target` says. */
  readonly undone: readonly ChangeRecord[];
  /** The oldest undone change: what was before it is what the file becomes. Absent: nothing can be undone. */
  readonly target: ChangeRecord | undefined;
  /** Somebody else changed the file after a change that is therefore kept. */
  readonly isCutShort: boolean;
}

/**
 * A change is undone when the file is what that change left, or already what was before it: the change never took place, or a rewind
 * that a crash cut off did this part. What matches neither was written by somebody else.
 *
 * @param newestFirst the changes to undo
 * @param state `'absent'` or the hash of the content that the file has now
 */
export function planRewind(newestFirst: readonly ChangeRecord[], state: string, force: boolean): RewindPlan {
  if (force) return { undone: newestFirst, target: newestFirst.at(-1), isCutShort: false };
  // Changes newer than the first that matches were undone before a crash, whose records are still there.
  const start = newestFirst.findIndex((record) => isUndoable(record, state));
  if (start === -1) return { undone: [], target: undefined, isCutShort: true };
  let end = start;
  let reached = state;
  for (
    let record = newestFirst[end];
    record !== undefined && isUndoable(record, reached);
    record = newestFirst[end]
  ) {
    reached = stateBefore(record);
    end += 1;
  }
  return {
    undone: newestFirst.slice(0, end),
    target: newestFirst[end - 1],
    isCutShort: end < newestFirst.length,
  };
}

function isUndoable(record: ChangeRecord, state: string): boolean {
  return stateBefore(record) === state || record.after.includes(state);
}
