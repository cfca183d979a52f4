/** Changing a run from outside: nobody executes it meanwhile, neither in this process nor in another. */
import { SDKError, type CheckpointStore } from '@lousho/contract';
import { acquireLease, isLeasingStore, type HeldLease } from './lease-keeper.ts';
import { inLine } from './run-queue.ts';
import type { Engine } from './run-options.ts';

export interface RunAddress {
  readonly checkpointId: string;
  readonly store: CheckpointStore;
  readonly engine: Engine;
}

/** @throws LOUSHO_SESSION_BUSY at once when somebody executes it; and what `work` throws */
export function exclusively<Value>(
  run: RunAddress,
  work: (lease: HeldLease | undefined) => Promise<Value>,
): Promise<Value> {
  const { store, checkpointId: id } = run;
  return inLine({ store, id, whenBusy: 'refuse', left: new AbortController().signal }, async () => {
    const lease = await leaseAtOnce(run);
    try {
      return await work(lease);
    } finally {
      await lease?.release();
    }
  });
}

async function leaseAtOnce({ checkpointId, store, engine }: RunAddress): Promise<HeldLease | undefined> {
  if (engine.lease === undefined || !isLeasingStore(store)) return undefined;
  const { clock, ids } = engine.ports;
  const lease = await acquireLease(checkpointId, ids.random(), { store, clock, ...engine.lease });
  if (lease === undefined) throw new SDKError('LOUSHO_SESSION_BUSY', { sessionId: checkpointId });
  return lease;
}
