/** The same promises where each handle is at another location than the one before: a minute late, and with one write a second for a key. */
import { registerConformance } from '@lousho/testing/conformance';
import { describe, it } from 'vitest';
import { KVStore } from '../src/index.ts';
import { seededRandom } from './support/random.ts';
import { SimKV } from './support/sim-kv.ts';
import { waitingPorts } from './support/waiting-ports.ts';

for (const seed of [1, 2]) {
  registerConformance(
    {
      name: `store-kv at two locations, seed ${seed}`,
      claims: { leases: 'best-effort', history: true, list: true, durable: 'power', consistency: 'eventual' },
      historyLimit: 50,
      async createStorage(clock) {
        const kv = new SimKV({ clock, random: seededRandom(seed) });
        let opened = 0;
        return {
          open: async () => new KVStore(kv.at(opened++ % 2), { ports: waitingPorts(clock) }),
          destroy: async () => undefined,
          corrupt: async (id) => kv.damage(`lousho/${id}`),
          corruptApproval: async (id) => kv.damage(`lousho/#approval/${id}`),
          corruptSession: async (id) => kv.damage(`lousho/#session/${id}`),
        };
      },
    },
    { describe, it },
  );
}
