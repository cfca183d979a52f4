/** Recovery gives up on a run: the mark that all replicas see. Nothing is executed. */
import type { CheckpointStore, InProgressCheckpoint } from '@lousho/contract';
import { CheckpointWriter } from './checkpoint-writer.ts';
import { takeLease } from './execute-order.ts';
import { loadCheckpoint } from './load-checkpoint.ts';
import type { Engine } from './run-options.ts';
import { inLine } from './run-queue.ts';
import { RunStop } from './run-stop.ts';

export interface ParkOrder {
  readonly checkpointId: string;
  readonly store: CheckpointStore;
  readonly engine: Engine;
  /** Whether there is still a reason for it, once the lease is held. */
  readonly isDue: (stored: InProgressCheckpoint) => boolean;
}

/** Whether it was this call that parked it. @throws LOUSHO_SESSION_BUSY while it executes, and what the store throws */
export function parkRun(order: ParkOrder): Promise<boolean> {
  const { store, checkpointId: id } = order;
  return inLine({ store, id, whenBusy: 'refuse', left: new AbortController().signal }, () => park(order));
}

async function park({ checkpointId, store, engine, isDue }: ParkOrder): Promise<boolean> {
  const stop = new RunStop(engine.ports.clock);
  const lease = await takeLease({
    checkpointId,
    sessionId: checkpointId,
    store,
    engine,
    leaseWaitMs: 0,
    stop,
  });
  try {
    const stored = await loadCheckpoint(store, checkpointId);
    if (stored?.status !== 'in-progress' || !isDue(stored)) return false;
    const writer = new CheckpointWriter(stored, stored, {
      id: checkpointId,
      store,
      lease,
      clock: engine.ports.clock,
      traceparent: () => undefined,
      onSaved: () => undefined,
    });
    writer.fold({ type: 'parked', parkedAt: new Date(engine.ports.clock.wallMs()).toISOString() });
    await writer.save();
    return true;
  } finally {
    await lease?.release();
  }
}
