/** Which saves of a run a copy still needs. Pure. */
import type { Checkpoint } from '@lousho/contract';
import type { SameCheckpoint } from './same-record.ts';

/**
 * How many of the first saves of `source` the target has already; `undefined` when it holds something else. Both are oldest first, the
 * last is the checkpoint. Each may have dropped its oldest ones.
 */
export function countCopied(
  source: readonly Checkpoint[],
  target: readonly Checkpoint[],
  same: SameCheckpoint,
): number | undefined {
  if (target.length === 0) return 0;
  // Two saves may be just the same: if nothing was dropped, there are as many.
  const isAll = target.length <= source.length && isCopied(source.slice(0, target.length), target, same);
  if (isAll) return target.length;
  for (let count = source.length; count > 0; count -= 1)
    if (isCopied(source.slice(0, count), target, same)) return count;
  return undefined;
}

/** Whether the newest saves of both are the same, as far back as both go. */
export function isCopied(
  source: readonly Checkpoint[],
  target: readonly Checkpoint[],
  same: SameCheckpoint,
): boolean {
  const both = Math.min(source.length, target.length);
  return source.slice(-both).every((save, index) => {
    const other = target[target.length - both + index];
    return other !== undefined && same(save, other);
  });
}
