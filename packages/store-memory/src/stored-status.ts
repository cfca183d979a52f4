/** The status of what is stored. */
import type { Checkpoint, CheckpointStatus } from '@lousho/contract';

/** Data that was written before checkpoints had a status is unfinished. */
export function statusOf(checkpoint: Checkpoint): CheckpointStatus {
  return checkpoint.status ?? 'in-progress';
}
