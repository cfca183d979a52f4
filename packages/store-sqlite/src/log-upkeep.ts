/** Keeps logs as short as their history allows, and independent of what is about to go. Inside write transactions only. */
import { foldEvents, nextEvent, type LogEvent } from '@lousho/contract';
import { bytesOf, firstSeqOf, nextCount, type KnownLog } from './known-logs.ts';
import { keptCount, type LogKind, type LogReader } from './log-reader.ts';
import type { LogTables } from './log-tables.ts';
import { eventText, parseEvent } from './packed-event.ts';

/** Below this size an event is mostly its header. */
const SMALL_EVENT_BYTES = 400;

export class LogUpkeep {
  constructor(
    readonly tables: LogTables,
    readonly reader: LogReader,
  ) {}

  /** Logs that stand on more than the first `keptMessages` of this one get a copy of what they stand on. */
  standAlone(key: number, keptMessages: number): void {
    for (const row of this.tables.rowsStandingOn(key)) {
      const [first] = this.tables.events(row.key, row.firstSeq, row.firstSeq);
      // Damage on either side is found when the run is read; it must not keep a damaged log from being deleted.
      const event = first === undefined ? undefined : eventOf(first[1]);
      if (event === undefined || typeof event.b !== 'object' || event.b.n <= keptMessages) continue;
      const messages = this.reader.intactMessagesOf(event.b.of)?.slice(0, event.b.n);
      if (messages === undefined) continue;
      const alone: LogEvent = { ...event, b: 1, m: [...messages, ...(event.m ?? [])] };
      this.tables.replaceEvent(row.key, row.firstSeq, eventText(row.id, alone));
      this.tables.updateRow({ ...row, standsOn: null });
    }
  }

  /** Drops the segments that no kept entry needs. */
  trim(known: KnownLog, kind: LogKind): void {
    const before = firstSeqOf(known);
    while (this.#isFirstSegmentSuperseded(known, kind)) known.segments.shift();
    const firstSeq = firstSeqOf(known);
    if (firstSeq === before) return;
    this.tables.deleteEvents(known.key, before, firstSeq - 1);
    known.standsOn = null;
    known.countAtBytes = nextCount(bytesOf(known));
    this.writeRow(known);
  }

  /**
   * A run that has ended is not saved again, so what is superseded would stay for ever: if that is more than half of the log, the oldest
   * kept entry becomes its base and everything before goes.
   */
  compactEnded(known: KnownLog, kind: LogKind): void {
    const count = known.lastSeq - firstSeqOf(known) + 1;
    const bytes = bytesOf(known);
    const isMostlyHeaders = count > kind.keptEntries && bytes < count * SMALL_EVENT_BYTES;
    if (!known.hasDeadContent && !isMostlyHeaders) return;
    if (bytes <= 2 * JSON.stringify(known.checkpoint).length) return;
    const row = this.tables.rowById(known.id);
    if (row === undefined) return;
    const log = this.reader.readLog(row, kind.record);
    const dropped = log.events.length - keptCount(log.sizes, kind);
    if (dropped === 0) return;
    const oldest = kind.parse(foldEvents(log.events.slice(0, dropped + 1), this.reader.messagesOf), known.id);
    const baseSeq = row.firstSeq + dropped;
    const base = eventText(known.id, nextEvent(undefined, oldest));
    const freedBytes = log.sizes.slice(0, dropped + 1).reduce((sum, size) => sum + size, 0) - base.length;
    if (freedBytes * 2 <= bytes) return;
    this.tables.replaceEvent(known.key, baseSeq, base);
    this.tables.deleteEvents(known.key, row.firstSeq, baseSeq - 1);
    known.segments = [{ seq: baseSeq, bytes: 0 }];
    known.factsSeq = Math.max(known.factsSeq, baseSeq);
    known.standsOn = null;
    this.writeRow(known);
  }

  writeRow(known: KnownLog): void {
    const { key, status, factsSeq, standsOn, savedAtMs } = known;
    this.tables.updateRow({ key, status, factsSeq, standsOn, savedAtMs, firstSeq: firstSeqOf(known) });
  }

  #isFirstSegmentSuperseded(known: KnownLog, kind: LogKind): boolean {
    const second = known.segments[1];
    if (second === undefined) return false;
    const oldestKept = known.lastSeq - kind.keptEntries + 1;
    return oldestKept >= second.seq || bytesOf(known) - (known.segments[0]?.bytes ?? 0) >= kind.keptBytes;
  }
}

function eventOf(data: string): LogEvent | undefined {
  try {
    return parseEvent(data);
  } catch {
    return undefined;
  }
}
