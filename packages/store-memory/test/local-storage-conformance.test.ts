/** The store in a Web Storage keeps every promise that it claims; each handle is another tab of the browser. */
import { testPorts } from '@lousho/testing';
import { registerConformance } from '@lousho/testing/conformance';
import { describe, it } from 'vitest';
import { LocalStorageCheckpointStore, type WebStorageLike } from '../src/index.ts';
import { FakeStorage } from './fake-storage.ts';

/** A storage that nobody can walk through: no list. */
function unlisted(storage: FakeStorage): WebStorageLike {
  return {
    getItem: (key) => storage.getItem(key),
    setItem: (key, value) => storage.setItem(key, value),
    removeItem: (key) => storage.removeItem(key),
  };
}

for (const list of [true, false]) {
  registerConformance(
    {
      name: `localStorage ${list ? 'with' : 'without'} a list`,
      claims: { leases: 'none', history: true, list, durable: 'process', consistency: 'strong' },
      historyLimit: 50,
      async createStorage(clock) {
        // Room for the largest checkpoints that the suite saves, and not for much more.
        const storage = new FakeStorage();
        return {
          open: async () => ({
            checkpoints: new LocalStorageCheckpointStore(list ? storage : unlisted(storage), {
              ports: testPorts(clock),
            }),
          }),
          destroy: async () => undefined,
          corrupt: async (id) => storage.damage(`lousho/${id}`),
        };
      },
    },
    { describe, it },
  );
}
