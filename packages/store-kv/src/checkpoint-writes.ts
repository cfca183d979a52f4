/** What is put and removed for a run, in which order, and what a reader finds after a crash between two of these steps. */
import { holdsLease, SDKError, type Checkpoint, type LeaseRecord } from '@lousho/contract';
import type { KVClient } from './kv-client.ts';
import { numberOf, type KVHistory, type NewEntry } from './kv-history.ts';
import { chunkKey, keysBehind, type KVKeys } from './kv-keys.ts';
import type { KVLeases } from './kv-leases.ts';
import type { LastSaves } from './last-saves.ts';
import { runMetadata } from './run-metadata.ts';
import type { Holder, PendingSave, SaveOutcome } from './run-queue.ts';
import type { Base, Layout } from './record-layout.ts';
import type { TranscriptRecords } from './transcript-records.ts';

export interface WriteDeps {
  readonly client: KVClient;
  readonly keys: KVKeys;
  readonly records: TranscriptRecords<Checkpoint>;
  readonly history: KVHistory;
  readonly leases: KVLeases;
  readonly lastSaves: LastSaves;
  readonly historyLimit: number;
  readonly ttlSeconds: number | undefined;
}

export class CheckpointWrites {
  readonly #deps: WriteDeps;

  constructor(deps: WriteDeps) {
    this.#deps = deps;
  }

  /** Saves that belong to one moment. @throws when nothing of them is stored */
  async save(id: string, saves: readonly PendingSave[]): Promise<readonly SaveOutcome[]> {
    const { client, keys, records, history, leases, lastSaves, ttlSeconds } = this.#deps;
    const isFenced = saves.some(({ holder }) => holder !== undefined);
    const [lease, base, names] = await Promise.all([
      isFenced ? leases.holderOf(id) : null,
      records.baseOf(id),
      history.namesToExtend(id),
    ]);
    const outcomes = saves.map(({ holder }) => mayWrite(holder, lease));
    const planned = this.#plan(id, saves, outcomes, base, names);
    const newest = planned.at(-1);
    if (newest === undefined) return outcomes;
    // 1. New parts of the transcript. Crash here: values that no record names; the next delete removes them.
    for (const { layout } of planned) await records.putParts(layout);
    // 2. The record: from here on the save is there. Crash here: the history lacks its entry.
    const { text, base: next } = newest.layout;
    await client.putOnce(keys.run(id), text, { ttlSeconds, metadata: runMetadata(newest.checkpoint) });
    records.remember(id, next);
    lastSaves.noteSaved(id, newest.checkpoint.runId, next.number);
    // Who lost the lease in the meantime must stop, though its state is there: KV cannot take the write back.
    if (isFenced) refuseLost(outcomes, saves, await this.#leaseSeen(id));
    // 3. History: entries, then the index, then what fell out. See `KVHistory`.
    await history.add(id, planned.map(entryOf), names);
    // 4. Parts that no record and no entry names any more. Crash here: as after 1.
    await this.#removeQuietly(planned.flatMap(({ layout }) => layout.due));
    return outcomes;
  }

  /** @param keepHistory the history stays, and so do all parts of the transcript: its entries name them */
  async remove(id: string, keepHistory: boolean): Promise<void> {
    const { client, keys, records, history, leases } = this.#deps;
    records.forget(id);
    history.forget(id);
    // 1. The lease: whoever executes the run is refused from now on. Crash here: a run that anybody may go on with.
    await leases.end(id);
    const rest = keepHistory ? [] : await this.#keysOf(id);
    // 2. The record. Crash here: there is no run any more, and a history that the next delete or prune removes.
    await client.delete(keys.run(id));
    records.forget(id);
    if (keepHistory) return;
    // 3. The index, so that no history is shown whose entries are gone. 4. What it and the record named.
    await client.delete(keys.history(id));
    await client.deleteAll(rest);
  }

  /** One layout for each save that has an entry; the last is what is stored. */
  #plan(
    id: string,
    saves: readonly PendingSave[],
    outcomes: SaveOutcome[],
    base: Base,
    names: readonly string[],
  ): readonly PlannedSave[] {
    const { records, history, historyLimit } = this.#deps;
    const accepted = saves.map((_save, index) => index).filter((index) => outcomes[index]?.kind === 'saved');
    // Without a history nobody ever sees what a later save of the same moment replaces.
    const laidOut = historyLimit === 0 ? accepted.slice(-1) : accepted;
    const lastNumber = Math.max(base.number, ...names.map(numberOf));
    const oldestNumber = history.oldestNumber(names, lastNumber, laidOut.length);
    const planned: PlannedSave[] = [];
    let before: Base = { ...base, number: lastNumber };
    for (const index of laidOut) {
      const { checkpoint } = saves[index] as PendingSave;
      try {
        const layout = records.layOut({ id, value: checkpoint, base: before, oldestNumber });
        planned.push({ checkpoint, layout });
        before = layout.base;
      } catch (error) {
        // Nothing is written yet: this one alone is refused.
        outcomes[index] = { kind: 'failed', error };
      }
    }
    return planned;
  }

  async #leaseSeen(id: string): Promise<LeaseRecord | null> {
    try {
      return await this.#deps.leases.holderOf(id);
    } catch {
      // The save is stored, and nothing speaks against it: the next one asks again.
      return null;
    }
  }

  /** Everything behind the run's own key but its lease: as the list shows it, and as its record and its index name it. */
  async #keysOf(id: string): Promise<ReadonlySet<string>> {
    const { client, keys, records, history } = this.#deps;
    const [head, names, listed] = await Promise.all([
      orNothing(records.headOf(id)),
      orNothing(history.names(id)),
      client.canList ? client.keys(keysBehind(keys.run(id))) : [],
    ]);
    const parts = [...(head?.chunks ?? []), ...(head?.dead ?? [])];
    const found = new Set([
      ...parts.map(({ name }) => chunkKey(keys.run(id), name)),
      ...(names ?? []).map((name) => keys.entry(id, name)),
      ...listed.map(({ name }) => name),
    ]);
    found.delete(keys.lease(id));
    return found;
  }

  async #removeQuietly(due: readonly string[]): Promise<void> {
    try {
      await this.#deps.client.deleteAll(due);
    } catch {
      // They are only in the way; the next delete removes them.
      return;
    }
  }
}

interface PlannedSave {
  readonly checkpoint: Checkpoint;
  readonly layout: Layout;
}

function mayWrite(holder: Holder | undefined, lease: LeaseRecord | null): SaveOutcome {
  const isHeld = holder === undefined || holdsLease(lease, holder.owner, holder.fence);
  return { kind: isHeld ? 'saved' : 'refused' };
}

/** A lease that nobody sees is nobody else's. */
function refuseLost(outcomes: SaveOutcome[], saves: readonly PendingSave[], lease: LeaseRecord | null): void {
  if (lease === null) return;
  saves.forEach(({ holder }, index) => {
    if (outcomes[index]?.kind === 'saved') outcomes[index] = mayWrite(holder, lease);
  });
}

function entryOf({ checkpoint, layout }: PlannedSave): NewEntry {
  const { text, base } = layout;
  return { number: base.number, text, savedAt: checkpoint.savedAt };
}

/** `undefined` for a record that is damaged or of a newer format: a delete works without reading it. */
async function orNothing<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof SDKError) return undefined;
    throw error;
  }
}
