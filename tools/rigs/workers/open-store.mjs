// The stores that the rigs work on, by name, and what is planted into them so that a rig can show that it would notice.
import path from 'node:path';
import { fileStore } from '@lousho/store-file';
import { SqliteStore } from '@lousho/store-sqlite';

/** `fault`: `no-fence` saves and renews for whoever asks; `early` says that a save is stored before it is. */
export function openStore({ kind, folder, fault, ports }) {
  const store =
    kind === 'file'
      ? fileStore(path.join(folder, 'runs'), { ports })
      : new SqliteStore(path.join(folder, 'runs.db'), { ports });
  const { checkpoints } = store;
  switch (fault) {
    case undefined:
      return store;
    case 'no-fence':
      return withMethods(store, {
        renewLease: async () => true,
        async saveIfLeased(id, checkpoint) {
          await checkpoints.save(id, checkpoint);
          return true;
        },
      });
    case 'early':
      return withMethods(store, {
        async saveIfLeased(...args) {
          checkpoints.saveIfLeased(...args).catch(() => undefined);
          return true;
        },
      });
    default:
      throw new Error(`Unknown fault ${fault}`);
  }
}

function withMethods(store, methods) {
  const { checkpoints } = store;
  return {
    close: () => store.close(),
    checkpoints: {
      load: (id) => checkpoints.load(id),
      acquireLease: (...args) => checkpoints.acquireLease(...args),
      renewLease: (...args) => checkpoints.renewLease(...args),
      releaseLease: (...args) => checkpoints.releaseLease(...args),
      ...methods,
    },
  };
}
