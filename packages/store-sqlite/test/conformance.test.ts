/** The SQLite store keeps every promise that it claims. Each handle is a connection of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { testPorts } from '@lousho/testing';
import { registerConformance, type StorageUnderTest } from '@lousho/testing/conformance';
import Database from 'better-sqlite3';
import { describe, it } from 'vitest';
import { SqliteStore } from '../src/index.ts';

registerConformance(
  {
    name: 'store-sqlite',
    claims: { leases: 'atomic', history: true, list: true, durable: 'power', consistency: 'strong' },
    historyLimit: 50,
    async createStorage(clock): Promise<StorageUnderTest> {
      const folder = await mkdtemp(path.join(tmpdir(), 'lousho-conformance-'));
      const file = path.join(folder, 'runs.db');
      const damage = (sql: string, id: string): void => {
        const database = new Database(file);
        const { changes } = database.prepare(sql).run(id);
        database.close();
        if (changes === 0) throw new Error(`There is nothing to damage for "${id}".`);
      };
      const damageLog = `UPDATE events SET data = replace(data, 'e', 'E') WHERE k >> 24 = (SELECT key FROM runs WHERE id = ?)`;
      return {
        open: async () => new SqliteStore(file, { ports: testPorts(clock) }),
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
