/** The bundled stores keep the contract over processes that are killed and stopped. The children open what the packages publish. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { registerProcessConformance } from '@lousho/testing/node';
import { describe, it } from 'vitest';

/** Below the root, so that a module in it can import the built packages by their names. */
const workFolder = path.resolve(import.meta.dirname, '../.cache');

/** How a child opens each store in a folder of its own. */
const stores = [
  {
    name: 'store-file',
    module: `import { fileStore } from '@lousho/store-file';
             export default (folder) => fileStore(folder + '/runs');`,
  },
  {
    name: 'store-sqlite',
    module: `import { SqliteStore } from '@lousho/store-sqlite';
             export default (folder) => new SqliteStore(folder + '/runs.db');`,
  },
  {
    name: 'store-kit over store-sqlite',
    module: `import { encryptedStore } from '@lousho/store-kit';
             import { SqliteStore } from '@lousho/store-sqlite';
             const keys = [{ id: 'k', key: new Uint8Array(32) }];
             export default (folder) => encryptedStore(new SqliteStore(folder + '/runs.db'), keys);`,
  },
] as const;

for (const { name, module } of stores) {
  registerProcessConformance(
    {
      name,
      claims: { leases: 'atomic', history: true, list: true, durable: 'power', consistency: 'strong' },
      async createStorage() {
        await mkdir(workFolder, { recursive: true });
        const folder = await mkdtemp(path.join(workFolder, 'conformance-'));
        const file = path.join(folder, 'open-store.mjs');
        await writeFile(file, module);
        return {
          open: async () => {
            throw new Error('Only child processes open this storage.');
          },
          destroy: () => rm(folder, { recursive: true, force: true }),
          childProcess: { module: file, options: folder },
        };
      },
    },
    { describe, it },
  );
}
