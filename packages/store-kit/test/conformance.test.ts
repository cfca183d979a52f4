/** A sealed store keeps every promise that the store below it claims. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileStore } from '@lousho/store-file';
import { KVStore } from '@lousho/store-kv';
import { memoryStore } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';
import { testPorts } from '@lousho/testing';
import { registerConformance, type StorageUnderTest } from '@lousho/testing/conformance';
import Database from 'better-sqlite3';
import { describe, it } from 'vitest';
import { ExactKV } from '../../store-kv/test/support/exact-kv.ts';
import { waitingPorts } from '../../store-kv/test/support/waiting-ports.ts';
import { encryptedStore } from '../src/index.ts';
import { testKey } from './support/keys.ts';
import { textStore, threeMethodStore } from './support/text-store.ts';

const keys = [testKey('2026-01')];

function withDamage<Record extends object>(stored: Record): Record {
  const { sealed } = stored as { readonly sealed?: string };
  const other = sealed?.at(-10) === 'A' ? 'B' : 'A';
  return { ...stored, sealed: `${sealed?.slice(0, -10)}${other}${sealed?.slice(-9)}` };
}

registerConformance(
  {
    name: 'store-kit over a store of three methods',
    claims: { leases: 'none', history: false, list: false, durable: 'memory', consistency: 'strong' },
    async createStorage() {
      const below = threeMethodStore();
      return { open: async () => encryptedStore(below, keys), destroy: async () => undefined };
    },
  },
  { describe, it },
);

registerConformance(
  {
    name: "store-kit over somebody else's store of texts",
    claims: { leases: 'none', history: true, list: true, durable: 'memory', consistency: 'strong' },
    async createStorage() {
      const below = textStore();
      return { open: async () => encryptedStore(below.store, keys), destroy: async () => undefined };
    },
  },
  { describe, it },
);

registerConformance(
  {
    name: 'store-kit over store-memory',
    claims: { leases: 'atomic', history: true, list: true, durable: 'memory', consistency: 'strong' },
    historyLimit: 50,
    async createStorage(clock) {
      const below = memoryStore({ ports: testPorts(clock) });
      const store = encryptedStore(below, keys);
      return {
        open: async () => store,
        destroy: () => store.close(),
        // One character of what is sealed: memory does not notice, the seal does.
        async corrupt(id) {
          const stored = await below.checkpoints.load(id);
          if (stored !== null) await below.checkpoints.save(id, withDamage(stored));
        },
        async corruptApproval(id) {
          const stored = await below.approvals.load(id);
          if (stored) await below.approvals.save(withDamage(stored));
        },
        async corruptSession(id) {
          const stored = await below.sessions.load(id);
          if (stored) await below.sessions.saveIfRevision(withDamage(stored), stored.revision);
        },
      };
    },
  },
  { describe, it },
);

registerConformance(
  {
    name: 'store-kit over store-sqlite',
    claims: { leases: 'atomic', history: true, list: true, durable: 'process', consistency: 'strong' },
    historyLimit: 50,
    async createStorage(clock): Promise<StorageUnderTest> {
      const folder = await mkdtemp(path.join(tmpdir(), 'lousho-sealed-'));
      const file = path.join(folder, 'runs.db');
      const damage = (sql: string, id: string): void => {
        const database = new Database(file);
        const { changes } = database.prepare(sql).run(id);
        database.close();
        if (changes === 0) throw new Error(`There is nothing to damage for "${id}".`);
      };
      const damageLog = `UPDATE events SET data = replace(data, 'e', 'E') WHERE k >> 24 = (SELECT key FROM runs WHERE id = ?)`;
      return {
        open: async () =>
          encryptedStore(new SqliteStore(file, { ports: testPorts(clock), durability: 'process' }), keys),
        destroy: () => rm(folder, { recursive: true, force: true }),
        corrupt: async (id) => damage(damageLog, id),
        corruptApproval: async (id) =>
          damage(`UPDATE approvals SET record = replace(record, 'e', 'E') WHERE id = ?`, id),
        corruptSession: async (id) => damage(damageLog, `session:${id}`),
      };
    },
  },
  { describe, it },
);

registerConformance(
  {
    name: 'store-kit over store-file',
    claims: { leases: 'atomic', history: true, list: true, durable: 'process', consistency: 'strong' },
    historyLimit: 50,
    async createStorage(clock) {
      const folder = await mkdtemp(path.join(tmpdir(), 'lousho-sealed-'));
      const options = { durability: 'process', ports: testPorts(clock) } as const;
      return {
        open: async () => encryptedStore(fileStore(folder, options), keys),
        destroy: () => rm(folder, { recursive: true, force: true }),
      };
    },
  },
  { describe, it },
);

registerConformance(
  {
    name: 'store-kit over store-kv',
    claims: { leases: 'best-effort', history: true, list: true, durable: 'power', consistency: 'eventual' },
    historyLimit: 50,
    async createStorage(clock) {
      const kv = new ExactKV(clock, 10);
      return {
        open: async () => encryptedStore(new KVStore(kv, { ports: waitingPorts(clock) }), keys),
        destroy: async () => undefined,
        corrupt: async (id) => kv.damage(`lousho/${id}`),
        corruptApproval: async (id) => kv.damage(`lousho/#approval/${id}`),
        corruptSession: async (id) => kv.damage(`lousho/#session/${id}`),
      };
    },
  },
  { describe, it },
);
