/** A log of which most is superseded goes on in a shorter one. */
import type { Generations } from './generations.ts';
import { nextCompaction, type KnownLog, type KnownLogs } from './known-logs.ts';
import type { LogFolder } from './log-folder.ts';
import type { Numbering } from './numbering.ts';

export type CompactWhen = 'worth-it' | 'always';

export interface CompactionDeps {
  readonly generations: Generations;
  readonly numbering: Numbering;
  readonly known: KnownLogs;
  readonly when: CompactWhen;
}

/** Not worth a new file. */
const SMALL_LOG_BYTES = 16 * 1024;
/** Below this size an event is mostly its header. */
const SMALL_EVENT_BYTES = 400;

/** Whether the last save may have made most of the log superfluous. */
export function wantsCompaction(
  log: KnownLog | undefined,
  keptEntries: number,
  { hasEnded }: { readonly hasEnded: boolean },
): boolean {
  if (log === undefined || !mayBeCompacted(log, keptEntries)) return false;
  return log.bytes >= (hasEnded ? SMALL_LOG_BYTES : log.compactAtBytes);
}

/** Goes on in a new log with what is still history: if that is less than half, or always. What is stored stays as it is when this fails. */
export async function compactLog(
  { generations, numbering, known: logs, when }: CompactionDeps,
  folder: LogFolder,
  id: string,
): Promise<void> {
  const known = logs.get(id);
  const listing = await folder.list();
  // A higher lease is a take-over, which makes a new log itself.
  if (known === undefined || listing?.topLog !== known.number || listing.top !== known.number) return;
  known.compactAtBytes = nextCompaction(known.bytes);
  const log = await generations.readNewest(folder, id, listing);
  if (log === undefined || (when === 'worth-it' && !generations.isWorthNewOne(log))) return;
  const number = await numbering.next(folder, id, listing);
  await logs.forget(id);
  if (number === undefined) return;
  await generations.open(folder, id, number);
  await folder.removeOlder(number);
}

/** Whether the log may be most of what it need not be. */
function mayBeCompacted(log: KnownLog, keptEntries: number): boolean {
  const isMostlyHeaders = log.eventCount > keptEntries && log.bytes < log.eventCount * SMALL_EVENT_BYTES;
  return log.hasDeadContent || isMostlyHeaders;
}
