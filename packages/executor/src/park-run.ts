/** Recovery gives up on a run: the mark that all replicas see. Nothing is executed. */
import type { InProgressCheckpoint } from '@lousho/contract';
import { CheckpointWriter } from './checkpoint-writer.ts';
import { exclusively, type RunAddress } from './exclusively.ts';
import { loadCheckpoint } from './load-checkpoint.ts';

export interface ParkOrder extends RunAddress {
  /** Whether there is still a reason for it, once the lease is held. */
  readonly isDue: (stored: InProgressCheckpoint) => boolean;
}

/** Whether it was this call that parked it. @throws LOUSHO_SESSION_BUSY while it executes, and what the store throws */
export function parkRun(order: ParkOrder): Promise<boolean> {
  const { checkpointId: id, store, engine, isDue } = order;
  return exclusively(order, async (lease) => {
    const stored = await loadCheckpoint(store, id);
    if (stored?.status !== 'in-progress' || !isDue(stored)) return false;
    const { clock } = engine.ports;
    const writer = new CheckpointWriter(stored, stored, {
      ...{ id, store, lease, clock },
      traceparent: () => undefined,
      onSaved: () => undefined,
    });
    writer.fold({ type: 'parked', parkedAt: new Date(clock.wallMs()).toISOString() });
    await writer.save();
    return true;
  });
}
