/** The newest saves of each run, in one value: events of the codec of `@lousho/contract`, so a message is in it once. */
import {
  deepFreeze,
  foldEvents,
  historyOf,
  nextEvent,
  parseCheckpoint,
  SDKError,
  type Checkpoint,
  type CheckpointHistoryEntry,
  type LogEvent,
} from '@lousho/contract';
import { orDamage, seal, unseal, type WebStorageRecords } from './web-storage.ts';

export class WebStorageHistory {
  constructor(
    private readonly records: WebStorageRecords,
    private readonly historyLimit: number,
  ) {}

  newestFirst(id: string, limit: number): CheckpointHistoryEntry[] {
    const most = Math.min(this.historyLimit, limit);
    const events = this.#events(id);
    return orDamage('history', id, () =>
      deepFreeze(historyOf(events, most, (state) => parseCheckpoint(state, id))),
    );
  }

  /** The history with one save more. One that cannot be read begins anew. */
  withSave(id: string, next: Checkpoint): readonly LogEvent[] {
    if (this.historyLimit === 0) return [];
    let events: readonly LogEvent[] = [];
    let known: Checkpoint | undefined;
    try {
      events = this.#events(id);
      if (events.length > 0) known = deepFreeze(foldEvents(events)) as Checkpoint;
    } catch (error) {
      if (!(error instanceof SDKError)) throw error;
      [events, known] = [[], undefined];
    }
    return [...events, nextEvent(known, next)];
  }

  /** As many of the newest entries as there is room for. Never throws: the record is stored. */
  put(id: string, events: readonly LogEvent[]): void {
    for (let most = this.historyLimit; most >= 1; most = Math.floor(most / 2)) {
      try {
        this.records.setHistory(id, seal({ events: newestEvents(events, most) }));
        return;
      } catch {
        // Half of it, next. What is there lacks the newest save and must not stay.
        this.records.removeHistory(id);
      }
    }
    this.records.removeHistory(id);
  }

  #events(id: string): readonly LogEvent[] {
    const text = this.records.history(id);
    if (text === null) return [];
    return orDamage('history', id, () => {
      const { events } = unseal(text).value as { readonly events: readonly LogEvent[] };
      // That it folds is part of being whole.
      foldEvents(events);
      return events;
    });
  }
}

/** The newest so many, beginning with a base that says everything. */
function newestEvents(events: readonly LogEvent[], most: number): readonly LogEvent[] {
  const dropped = events.length - most;
  if (dropped <= 0) return events;
  const first = deepFreeze(foldEvents(events.slice(0, dropped + 1))) as Checkpoint;
  return [nextEvent(undefined, first), ...events.slice(dropped + 1)];
}
