/** The store keeps every promise that it claims, on a namespace that shows each write at once. */
import { registerConformance } from '@lousho/testing/conformance';
import { describe, it } from 'vitest';
import { KVStore } from '../src/index.ts';
import { ExactKV } from './support/exact-kv.ts';
import { waitingPorts } from './support/waiting-ports.ts';

registerConformance(
  {
    name: 'store-kv',
    claims: { leases: 'best-effort', history: true, list: true, durable: 'power', consistency: 'eventual' },
    historyLimit: 50,
    async createStorage(clock) {
      const kv = new ExactKV(clock, 10);
      return {
        open: async () => new KVStore(kv, { ports: waitingPorts(clock) }),
        destroy: async () => undefined,
        corrupt: async (id) => kv.damage(`lousho/${id}`),
        corruptApproval: async (id) => kv.damage(`lousho/#approval/${id}`),
        corruptSession: async (id) => kv.damage(`lousho/#session/${id}`),
      };
    },
  },
  { describe, it },
);
