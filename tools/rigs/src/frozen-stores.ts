/** The stores whose layout outlives a release: how each keeps the story, and how its fixture becomes a store again. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type {
  AgentStore,
  ApprovalRecord,
  Checkpoint,
  CheckpointHistoryEntry,
  Ports,
  SessionRecord,
} from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { encryptedStore } from '@lousho/store-kit';
import { KVStore, type KVNamespaceLike } from '@lousho/store-kv';
import { LocalStorageCheckpointStore, memoryStore, type WebStorageLike } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';

/** What a store gives for the whole of its data, as JSON. */
export interface StoredRecords {
  readonly checkpoints: { readonly [id: string]: Checkpoint };
  /** Newest first; the first is the checkpoint. */
  readonly histories: { readonly [id: string]: readonly CheckpointHistoryEntry[] };
  readonly approvals: readonly ApprovalRecord[];
  readonly sessions: { readonly [id: string]: SessionRecord };
}
interface OpenedStore {
  readonly store: AgentStore;
  /** Everything that was stored, in the fixture at this path. Closes the store. */
  freezeAt(fixture: string): Promise<void>;
}
export interface FrozenStore {
  readonly name: string;
  /** The package whose layout it is. */
  readonly package: string;
  /** Of the fixture's name; none: a folder. */
  readonly ending: '' | '.db' | '.json';
  /** A store of its own, empty or with what was frozen; never the fixture itself. */
  open(folder: string, ports: Ports, frozen?: Frozen): Promise<OpenedStore>;
}
interface Frozen {
  readonly fixture: string;
  /** What is in it. */
  readonly records: StoredRecords;
}

export const frozenStores: readonly FrozenStore[] = [
  {
    ...{ name: 'file', package: 'store-file', ending: '' },
    async open(folder, ports, frozen) {
      const place = path.join(folder, 'runs');
      if (frozen !== undefined) await cp(frozen.fixture, place, { recursive: true });
      const store = fileStore(place, { ports });
      return { store, freezeAt: (target) => closed(store, () => cp(place, target, { recursive: true })) };
    },
  },
  {
    ...{ name: 'sqlite', package: 'store-sqlite', ending: '.db' },
    async open(folder, ports, frozen) {
      const file = path.join(folder, 'agent.db');
      if (frozen !== undefined) await cp(frozen.fixture, file);
      const store = new SqliteStore(file, { ports });
      return { store, freezeAt: (target) => closed(store, () => cp(file, target)) };
    },
  },
  {
    ...{ name: 'kv', package: 'store-kv', ending: '.json' },
    async open(_folder, ports, frozen) {
      const values = await mapFrom<KVValue>(frozen);
      const store = new KVStore(namespaceOf(values), { ports });
      return {
        store,
        freezeAt: (target) => closed(store, () => writeJson(target, sortedByKey(values))),
      };
    },
  },
  {
    ...{ name: 'localStorage', package: 'store-memory', ending: '.json' },
    async open(_folder, ports, frozen) {
      const values = await mapFrom<string>(frozen);
      const kept = new LocalStorageCheckpointStore(webStorageOf(values), { ports });
      // It has neither leases nor the other parts, without which the story is another one: so memory is told it, and this a copy.
      const memory = memoryStore({ ports });
      if (frozen !== undefined) await fillWith(memory, { ...frozen.records, histories: {} });
      const { checkpoints, approvals, sessions } = memory;
      return {
        store: { checkpoints: frozen === undefined ? checkpoints : kept, approvals, sessions },
        async freezeAt(target) {
          await fillWith(
            { checkpoints: kept },
            { ...(await recordsOf(memory)), approvals: [], sessions: {} },
          );
          await writeJson(target, sortedByKey(values));
        },
      };
    },
  },
  {
    ...{ name: 'encrypted', package: 'store-kit', ending: '.json' },
    async open(_folder, ports, frozen) {
      const below = memoryStore({ ports });
      if (frozen !== undefined) await fillWith(below, await readJson<StoredRecords>(frozen.fixture));
      const key = new Uint8Array(32).fill(7);
      return {
        store: encryptedStore(below, [{ id: '2026-01', key }]),
        freezeAt: async (target) => writeJson(target, await recordsOf(below)),
      };
    },
  },
];

/** Asked as an agent asks, through a handle that knows nothing yet. */
export async function recordsOf({ checkpoints, approvals, sessions }: AgentStore): Promise<StoredRecords> {
  const ids = (await checkpoints?.list?.())?.map(({ sessionId }) => sessionId) ?? [];
  const sessionIds = (await sessions?.list?.()) ?? [];
  const each = async <Value>(keys: readonly string[], load: (id: string) => Promise<Value>) =>
    Object.fromEntries(await Promise.all(keys.toSorted().map(async (id) => [id, await load(id)] as const)));
  const records = {
    checkpoints: await each(ids, async (id) => checkpoints?.load(id)),
    histories: await each(ids, async (id) => checkpoints?.history?.(id)),
    approvals: await approvals?.list(),
    sessions: await each(sessionIds, async (id) => sessions?.load(id)),
  };
  return JSON.parse(JSON.stringify(records)) as StoredRecords;
}

export async function readJson<Value>(file: string): Promise<Value> {
  return JSON.parse(await readFile(file, 'utf8')) as Value;
}

/** A line a field, so that a person finds it. */
export async function writeJson(file: string, value: object): Promise<void> {
  await writeFile(file, `${JSON.stringify(value, undefined, 1)}\n`);
}

async function closed(store: { close(): Promise<void> }, keep: () => Promise<void>): Promise<void> {
  await store.close();
  await keep();
}

/** Each state of each run is saved again, in its order. */
async function fillWith(store: AgentStore, records: StoredRecords): Promise<void> {
  for (const [id, entries] of Object.entries(records.histories))
    for (const { checkpoint } of entries.toReversed()) await store.checkpoints?.save(id, checkpoint);
  for (const record of records.approvals) await store.approvals?.save(record);
  for (const record of Object.values(records.sessions)) {
    // A record gets the revision behind the one that is stored.
    for (let revision = 0; revision < record.revision; revision += 1)
      await store.sessions?.saveIfRevision(record, revision);
  }
}

async function mapFrom<Value>(frozen: Frozen | undefined): Promise<Map<string, Value>> {
  return new Map(Object.entries(frozen === undefined ? {} : await readJson<object>(frozen.fixture)));
}

function sortedByKey(values: ReadonlyMap<string, unknown>): object {
  return Object.fromEntries([...values].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export interface KVValue {
  readonly value: string;
  readonly metadata?: unknown;
}

/** As much of a namespace as one location shows. What would have expired meanwhile is still there. */
export function namespaceOf(values: Map<string, KVValue>): KVNamespaceLike {
  return {
    get: async (key) => values.get(key)?.value ?? null,
    put: async (key, value, { metadata } = {}) => void values.set(key, { value, metadata }),
    delete: async (key) => void values.delete(key),
    async list({ prefix = '' } = {}) {
      const names = [...values.keys()].filter((name) => name.startsWith(prefix)).sort();
      const keys = names.map((name) => ({ name, metadata: values.get(name)?.metadata }));
      return { keys, list_complete: true };
    },
  };
}

export function webStorageOf(values: Map<string, string>): WebStorageLike {
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
    get length() {
      return values.size;
    },
    key: (index) => [...values.keys()][index] ?? null,
  };
}
