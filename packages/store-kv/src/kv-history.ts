/** The newest saves of each run: an index of ids, and an entry for each that says what its record said. */
import type { Checkpoint, CheckpointHistoryEntry } from '@lousho/contract';
import { seal, unseal } from './checked-text.ts';
import { inSlices, type KVClient } from './kv-client.ts';
import { damageError, isDamage } from './kv-errors.ts';
import type { KVKeys } from './kv-keys.ts';
import type { PartCache, TranscriptRecords } from './transcript-records.ts';

export interface HistoryDeps {
  readonly client: KVClient;
  readonly keys: KVKeys;
  readonly records: TranscriptRecords<Checkpoint>;
  readonly historyLimit: number;
  readonly ttlSeconds: number | undefined;
}
/** A save as the history keeps it. */
export interface NewEntry {
  readonly number: number;
  readonly text: string;
  readonly savedAt: string;
}

export class KVHistory {
  readonly #deps: HistoryDeps;
  /** Entries of saves that are stored, which could not be written then. They go with the next save. */
  readonly #owed = new Map<string, readonly NewEntry[]>();

  constructor(deps: HistoryDeps) {
    this.#deps = deps;
  }

  /** Names of the entries, oldest first. An index that cannot be read counts as empty for a save, which writes a new one. */
  async namesToExtend(id: string): Promise<readonly string[]> {
    if (this.#deps.historyLimit === 0) return [];
    try {
      return await this.names(id);
    } catch (error) {
      if (isDamage(error)) return [];
      throw error;
    }
  }

  /** @throws LOUSHO_CHECKPOINT_CORRUPT */
  async names(id: string): Promise<readonly string[]> {
    const { client, keys } = this.#deps;
    const text = await client.get(keys.history(id));
    if (text === undefined) return [];
    try {
      const opened = unseal(text);
      const { entries } = (opened.kind === 'sealed' ? opened.fields : { entries: opened.value }) as {
        readonly entries: readonly string[];
      };
      return entries.map(String);
    } catch (error) {
      throw damageError(error, 'history', id);
    }
  }

  /** The number of the oldest save that the history holds once `count` more are in it. */
  oldestNumber(names: readonly string[], lastNumber: number, count: number): number {
    const keptBefore = names.slice(names.length - Math.max(0, this.#deps.historyLimit - count));
    return keptBefore.length === 0 ? lastNumber + 1 : Math.min(...keptBefore.map(numberOf));
  }

  /**
   * Called once the record of the last of these saves is stored. Never rejects: that save counts, whatever becomes of its entry.
   * @param names of the entries before
   */
  async add(id: string, saves: readonly NewEntry[], names: readonly string[]): Promise<void> {
    const { historyLimit } = this.#deps;
    if (historyLimit === 0) return;
    const entries = [...(this.#owed.get(id) ?? []), ...saves].slice(-historyLimit);
    this.#owed.delete(id);
    try {
      await this.#write(id, entries, names);
    } catch {
      // What is stored is the newest state, and the caller must not be told otherwise. The entries are tried again with the next save.
      this.#owed.set(id, entries);
    }
  }

  async read(id: string, limit: number): Promise<CheckpointHistoryEntry[]> {
    const { client, keys, records, historyLimit } = this.#deps;
    const names = (await this.names(id)).slice(-historyLimit);
    const asked = historyLimit === 0 || !(limit > 0) ? [] : names.slice(-limit).reverse();
    const parts: PartCache = new Map();
    const entries = await inSlices(asked, async (name) => {
      const text = await client.get(keys.entry(id, name));
      // Listed, and not visible here yet, or removed since.
      if (text === undefined) return [];
      const checkpoint = await records.read(id, text, 'history', parts);
      const { stepIndex: step, savedAt, status } = checkpoint;
      return [Object.freeze({ step, savedAt, status, checkpoint })];
    });
    return entries.flat();
  }

  forget(id: string): void {
    this.#owed.delete(id);
  }

  async #write(id: string, entries: readonly NewEntry[], before: readonly string[]): Promise<void> {
    const { client, keys, historyLimit, ttlSeconds } = this.#deps;
    const named = entries.map((entry) => ({ ...entry, name: `${entry.number}.${client.newTag()}` }));
    // 1. The entries. Crash here: entries that no index lists; the time to live or the next delete removes them.
    await inSlices(named, ({ name, text, savedAt }) =>
      client.put(keys.entry(id, name), text, { ttlSeconds, metadata: { t: savedAt } }),
    );
    // 2. The index. Crash here: entries that nothing lists any more; they go in the same way.
    const added = named.map(({ name }) => name);
    let names = before;
    let dropped: readonly string[] = [];
    let isFirstTry = true;
    await client.retryThrottled(async () => {
      // What KV refused a second ago may not be all that there is now.
      if (!isFirstTry) names = await this.namesToExtend(id);
      isFirstTry = false;
      const all = [...names, ...added];
      dropped = all.slice(0, Math.max(0, all.length - historyLimit));
      const text = seal({ entries: all.slice(dropped.length) });
      await client.putOnce(keys.history(id), text, { ttlSeconds });
    });
    // 3. Entries that fell out. Crash here: some are left, as after 2.
    await client.deleteAll(dropped.map((name) => keys.entry(id, name)));
  }
}

/** The number of the save that an entry is of; 0, the oldest, for a name of another writer. */
export function numberOf(name: string): number {
  const number = Number.parseInt(name, 10);
  return Number.isNaN(number) ? 0 : number;
}
