/** The history of a run: its log, read from the newest save backwards. */
import type { CheckpointHistoryEntry, HistoryOptions } from '@lousho/contract';
import type { EventLogs } from './event-logs.ts';
import { keptCount, type LogKind } from './log-reader.ts';

/** Newest first. Also what `delete` with `keepHistory` left. Inside a read transaction. @throws LOUSHO_CHECKPOINT_CORRUPT */
export function readHistory(
  logs: EventLogs,
  id: string,
  kind: LogKind,
  { limit = Infinity }: HistoryOptions,
): readonly CheckpointHistoryEntry[] {
  const row = logs.tables.rowById(id);
  if (row === undefined) return [];
  const log = logs.reader.readLog(row, 'history');
  const count = Math.min(limit, keptCount(log.sizes, kind));
  if (count < 1) return [];
  const entries = logs.reader.entriesOf(log, count, kind);
  entries.forEach(({ checkpoint }, age) => {
    // A fork that begins with these messages need not store them again.
    logs.noteOrigin(checkpoint, { id: row.id, key: row.key, seq: log.lastSeq - age });
  });
  const newest = entries[0];
  if (newest !== undefined && row.status !== 'deleted') logs.remember(log, newest.checkpoint);
  return entries;
}
