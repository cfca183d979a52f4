/** Stores that claim, prune or end in a wrong way. */
import { isCheckpointId, SDKError, type PruneOptions, type PruneResult } from '@lousho/contract';
import { plainClaims, type Handle, type Medium } from '../plain-store.ts';
import type { Overrides } from '../subjects.ts';
import { turns, type Flaw } from './flaw.ts';

const noCounts: PruneResult = { checkpoints: 0, historyEntries: 0, approvals: 0, sessions: 0 };
const pruning = (prune: (options: PruneOptions) => Promise<PruneResult>): Overrides => ({
  checkpoints: { prune },
  store: { prune },
});
/** One end for all handles on one storage. */
const closedMedia = new WeakSet<Medium>();

export const lifecycleFlaws: readonly Flaw[] = [
  {
    name: 'claims a history that it does not have',
    breaks: ['Z1'],
    plant: () => ({ checkpoints: { history: undefined } }),
  },
  {
    name: 'can renew but not release',
    breaks: ['Z1'],
    plant: () => ({ checkpoints: { releaseLease: undefined } }),
  },
  {
    name: 'claims other things than its subject says',
    breaks: ['Z1'],
    plant: () => ({ checkpoints: { claims: { ...plainClaims, durable: 'power' } } }),
  },
  {
    name: 'does not count the history that it prunes',
    breaks: ['Z2'],
    plant: (right) => pruning(async (options) => ({ ...(await right.prune(options)), historyEntries: 0 })),
  },
  {
    name: 'leaves the history of what it prunes',
    breaks: ['Z2', 'Z3'],
    plant: (right, medium) => pruneAndRestore(right, medium.histories),
  },
  {
    name: 'leaves approvals that no run waits on',
    breaks: ['Z2'],
    plant: (right, medium) => pruneAndRestore(right, medium.approvals),
  },
  {
    name: 'leaves the sub-agents of what it prunes',
    breaks: ['Z2'],
    plant: (right, medium) =>
      pruning(async (options) => {
        const children = [...medium.latest].filter(([id]) => id.includes('.sub-'));
        const result = await right.prune(options);
        for (const [id, text] of children) medium.latest.set(id, text);
        return result;
      }),
  },
  {
    name: 'prunes whatever its age',
    breaks: ['Z2'],
    plant: (right) => pruning((options) => right.prune({ ...options, olderThanMs: 0 })),
  },
  {
    name: 'prunes what is being executed',
    breaks: ['Z3'],
    plant: (right, medium) =>
      pruning((options) => {
        if (options.dryRun !== true) for (const id of medium.leases.keys()) medium.endLease(id);
        return right.prune(options);
      }),
  },
  {
    name: 'prunes the lead of a sub-agent that waits',
    breaks: ['Z3'],
    plant: (right, medium) =>
      pruning(async (options) => {
        const result = await right.prune(options);
        medium.latest.delete('lead-of-waiting');
        return result;
      }),
  },
  {
    name: 'prunes in a dry run too',
    breaks: ['Z4'],
    plant: (right) => pruning((options) => right.prune({ ...options, dryRun: false })),
  },
  {
    name: 'counts nothing in a dry run',
    breaks: ['Z4'],
    plant: (right) => pruning(async (options) => (options.dryRun === true ? noCounts : right.prune(options))),
  },
  {
    name: 'cannot be closed twice',
    breaks: ['Z5'],
    plant(right) {
      let isClosed = false;
      const close = async (): Promise<void> => {
        if (isClosed) throw new SDKError('LOUSHO_STORE_CLOSED', { operation: 'close' });
        isClosed = true;
        await right.close();
      };
      return { checkpoints: { close }, store: { close } };
    },
  },
  {
    name: 'acknowledges saves that its end has cut off',
    breaks: ['Z5'],
    plant(right, medium) {
      let isClosed = false;
      const close = async (): Promise<void> => {
        isClosed = true;
        await right.close();
      };
      return {
        store: { close },
        checkpoints: {
          close,
          save: async (id, checkpoint) => {
            const text = JSON.stringify(checkpoint);
            await turns(1);
            if (!isClosed) medium.write(id, text);
          },
        },
      };
    },
  },
  {
    name: 'loads after its end',
    breaks: ['Z6', 'Z7'],
    plant: (right, medium) => ({
      isUnguarded: true,
      checkpoints: {
        load: async (id) => (isCheckpointId(id) ? medium.read(id) : right.checkpoints.load(id)),
      },
    }),
  },
  {
    name: 'loads after it was closed, but not after it was disposed of',
    breaks: ['Z6'],
    plant(right, medium) {
      let isClosed = false;
      const close = async (): Promise<void> => {
        isClosed = true;
        await right.close();
      };
      return {
        isUnguarded: true,
        store: { close },
        checkpoints: { close, load: async (id) => (isClosed ? medium.read(id) : right.checkpoints.load(id)) },
      };
    },
  },
  {
    name: 'ends every handle with one',
    breaks: ['Z5', 'Z6', 'model/checkpoints'],
    plant(right, medium) {
      const close = async (): Promise<void> => {
        closedMedia.add(medium);
        await right.close();
      };
      return {
        store: { close },
        checkpoints: {
          close,
          load: async (id) => {
            if (closedMedia.has(medium)) throw new SDKError('LOUSHO_STORE_CLOSED', { operation: 'load' });
            return right.checkpoints.load(id);
          },
        },
      };
    },
  },
  {
    name: 'does nothing when it is disposed of',
    breaks: ['Z7'],
    plant: () => ({ store: { [Symbol.asyncDispose]: async () => undefined } }),
  },
  {
    name: 'keeps a contract that nobody knows yet',
    breaks: ['Z8'],
    plant: () => ({ store: { contractVersion: 2 } }),
  },
];

function pruneAndRestore<Value>(right: Handle, part: Map<string, Value>): Overrides {
  return pruning(async (options) => {
    const before = [...part];
    const result = await right.prune(options);
    for (const [key, value] of before) part.set(key, value);
    return result;
  });
}
