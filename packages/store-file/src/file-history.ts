/** The history of a run: its log, read from the newest save backwards. */
import type { CheckpointHistoryEntry, HistoryOptions } from '@lousho/contract';
import { damageError, isDamage } from './file-errors.ts';
import type { Generations } from './generations.ts';
import type { LogFolder } from './log-folder.ts';
import { entriesOf, keptCount } from './log-reader.ts';

/** Newest first. Also what `delete` with `keepHistory` left. @throws LOUSHO_CHECKPOINT_CORRUPT with `record: 'history'` */
export async function readHistory(
  generations: Generations,
  folder: LogFolder,
  id: string,
  { limit = Infinity }: HistoryOptions,
): Promise<readonly CheckpointHistoryEntry[]> {
  try {
    const log = await generations.readNewest(folder, id);
    const count = log === undefined ? 0 : Math.min(limit, keptCount(log.sizes, generations.kind));
    return log === undefined || count < 1 ? [] : entriesOf(log, count, generations.kind);
  } catch (error) {
    throw isDamage(error) ? damageError(error, 'history', id) : error;
  }
}
