/** The history of a run: its log, read from the newest save backwards. */
import type { CheckpointHistoryEntry, HistoryOptions } from '@lousho/contract';
import type { EventLogs } from './event-logs.ts';
import { damageError, isDamage } from './file-errors.ts';
import type { Generations } from './generations.ts';
import { entriesOf, keptCount } from './log-reader.ts';

/** Newest first. Also what `delete` with `keepHistory` left. @throws LOUSHO_CHECKPOINT_CORRUPT with `record: 'history'` */
export async function readHistory(
  logs: EventLogs,
  generations: Generations,
  id: string,
  { limit = Infinity }: HistoryOptions,
): Promise<readonly CheckpointHistoryEntry[]> {
  try {
    const log = await generations.readNewest(logs.folderOf(id), id);
    const count = log === undefined ? 0 : Math.min(limit, keptCount(log.sizes, generations.kind));
    if (log === undefined || count < 1) return [];
    const entries = entriesOf(log, count, generations.kind);
    entries.forEach(({ checkpoint }, age) => logs.noteOrigin(log, log.events.length - age, checkpoint));
    return entries;
  } catch (error) {
    throw isDamage(error) ? damageError(error, 'history', id) : error;
  }
}
