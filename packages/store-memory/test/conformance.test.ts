/** The memory store keeps every promise that it claims. Its storage is the store object itself, so all handles are that one. */
import { memoryStore } from '../src/index.ts';
import { testPorts } from '@lousho/testing';
import { registerConformance } from '@lousho/testing/conformance';
import { describe, it } from 'vitest';

registerConformance(
  {
    name: 'store-memory',
    claims: { leases: 'atomic', history: true, list: true, durable: 'memory', consistency: 'strong' },
    historyLimit: 50,
    async createStorage(clock) {
      const store = memoryStore({ ports: testPorts(clock) });
      return { open: async () => store, destroy: () => store.close() };
    },
  },
  { describe, it },
);
