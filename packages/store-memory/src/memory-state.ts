/** Everything that one memory store holds, and whether it still does. */
import { SDKError, type ApprovalRecord, type Checkpoint, type SessionRecord } from '@lousho/contract';
import type { MemoryHistory } from './memory-history.ts';
import { MemoryLeases } from './memory-leases.ts';
import { statusOf } from './stored-status.ts';

export class MemoryState {
  readonly checkpoints = new Map<string, Checkpoint>();
  /** Ids of the checkpoints that are not finished: what `pending()` and `recover()` ask for, however many runs are done. */
  readonly unfinished = new Set<string>();
  readonly leases = new MemoryLeases();
  readonly approvals = new Map<string, ApprovalRecord>();
  readonly sessions = new Map<string, SessionRecord>();
  private closed = false;

  constructor(readonly history: MemoryHistory) {}

  /** @throws synchronously LOUSHO_STORE_CLOSED */
  assertOpen(operation: string): void {
    if (this.closed) throw new SDKError('LOUSHO_STORE_CLOSED', { operation });
  }

  putCheckpoint(id: string, checkpoint: Checkpoint): void {
    this.checkpoints.set(id, checkpoint);
    if (statusOf(checkpoint) === 'finished') this.unfinished.delete(id);
    else this.unfinished.add(id);
    this.history.append(id, checkpoint);
  }

  /** The lease goes with it: whoever held it is refused at its next save. The history stays. */
  removeCheckpoint(id: string): void {
    this.checkpoints.delete(id);
    this.unfinished.delete(id);
    this.leases.end(id);
  }

  close(): void {
    this.closed = true;
    for (const part of [this.checkpoints, this.unfinished, this.approvals, this.sessions]) part.clear();
    this.history.clear();
    this.leases.clear();
  }
}
