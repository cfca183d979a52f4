/** Transcripts of conversations. The comparison of the revision is best effort: read, compare, write, read back. */
import {
  assertCheckpointId,
  frozenCopy,
  deepFreeze,
  SDKError,
  type SessionRecord,
  type SessionStore,
} from '@lousho/contract';
import { KeyedQueue } from './keyed-queue.ts';
import type { KVClient } from './kv-client.ts';
import { chunkKey, keysBehind, type KVKeys } from './kv-keys.ts';
import { isDamage } from './kv-errors.ts';
import type { Operations } from './operations.ts';
import type { TranscriptRecords } from './transcript-records.ts';

export interface SessionsDeps {
  readonly operations: Operations;
  readonly client: KVClient;
  readonly keys: KVKeys;
  readonly records: TranscriptRecords<SessionRecord>;
  readonly ttlSeconds: number | undefined;
}

/** Between the write and the look at what is there. */
const READ_BACK_MS = 50;

export class KVSessions {
  readonly #deps: SessionsDeps;
  /** In one handle, one commit at a time for each conversation. */
  readonly #queue = new KeyedQueue();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** `list` only where the namespace can be listed. */
  asStore(): SessionStore {
    const { operations, client } = this.#deps;
    const perform = <Value>(
      name: string,
      kind: 'read' | 'write',
      id: string,
      task: () => Promise<Value>,
    ): Promise<Value> =>
      operations.perform({ name, id, kind }, async () => {
        assertCheckpointId(id);
        return task();
      });
    return {
      load: (id) =>
        perform('sessions.load', 'read', id, async () => (await this.#deps.records.load(id))?.value ?? null),
      saveIfRevision: (record, expectedRevision) =>
        perform('sessions.saveIfRevision', 'write', record.id, () => {
          const next = deepFreeze({ ...frozenCopy(record), revision: expectedRevision + 1 });
          return this.#queue.run(record.id, () =>
            client.retryThrottled(() => this.#commit(next, expectedRevision)),
          );
        }),
      delete: (id) =>
        perform('sessions.delete', 'write', id, () => this.#queue.run(id, () => this.remove(id))),
      ...(client.canList
        ? { list: () => operations.perform({ name: 'sessions.list', kind: 'read' }, () => this.#ids()) }
        : {}),
    };
  }

  /** Of the last commit. `undefined` for a conversation that has no record, a time that never comes for one that cannot be read. */
  async savedAt(id: string): Promise<string | undefined> {
    try {
      return (await this.#deps.records.headOf(id))?.value.savedAt;
    } catch (error) {
      if (error instanceof SDKError) return 'unreadable';
      throw error;
    }
  }

  async remove(id: string): Promise<void> {
    const { client, keys, records } = this.#deps;
    records.forget(id);
    const rest = await this.#partsOf(id);
    // 1. The record. Crash here: parts that no record names; the next delete removes them.
    await client.delete(keys.session(id));
    records.forget(id);
    await client.deleteAll(rest);
  }

  async #commit(next: SessionRecord, expectedRevision: number): Promise<boolean> {
    const { client, keys, records, ttlSeconds } = this.#deps;
    const { id } = next;
    const stored = await records.headOf(id);
    if ((stored?.value.revision ?? 0) !== expectedRevision) return false;
    const layout = records.layOut({
      id,
      value: next,
      base: await records.baseOf(id),
      oldestNumber: Infinity,
    });
    // 1. New parts. Crash here: values that no record names; the next delete removes them.
    await records.putParts(layout);
    // 2. The record: from here on the commit is there.
    await client.putOnce(keys.session(id), layout.text, { ttlSeconds, metadata: { t: next.savedAt } });
    records.remember(id, layout.base);
    // 3. A look: of two who committed at one moment and location, the last one to write has won.
    await client.pause(READ_BACK_MS);
    const seen = await client.get(keys.session(id));
    if (seen !== undefined && seen !== layout.text && (await this.#isLater(id, expectedRevision)))
      return false;
    await client.deleteAll(layout.due);
    return true;
  }

  /** Another commit is there, and not only the one before ours, which a location may still show. */
  async #isLater(id: string, expectedRevision: number): Promise<boolean> {
    const head = await this.#deps.records.headOf(id);
    this.#deps.records.forget(id);
    return head !== undefined && head.value.revision > expectedRevision;
  }

  async #ids(): Promise<string[]> {
    const { client, keys } = this.#deps;
    const listed = await client.keys(keys.allSessions);
    return listed.flatMap(({ name }) => {
      const key = keys.parse(name);
      return key.kind === 'session' ? [key.id] : [];
    });
  }

  async #partsOf(id: string): Promise<ReadonlySet<string>> {
    const { client, keys, records } = this.#deps;
    const recordKey = keys.session(id);
    const listed = client.canList ? await client.keys(keysBehind(recordKey)) : [];
    const found = new Set(listed.map(({ name }) => name));
    try {
      const head = await records.headOf(id);
      for (const { name } of [...(head?.chunks ?? []), ...(head?.dead ?? [])])
        found.add(chunkKey(recordKey, name));
    } catch (error) {
      // A damaged record is removed too; what it named is in the list.
      if (!isDamage(error)) throw error;
    }
    return found;
  }
}
