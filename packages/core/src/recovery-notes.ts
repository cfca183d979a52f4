/** What one loop of `recover()` remembers of runs that it could not finish, where the store does not say it. */
import { SDKError, storedError, type CheckpointHeader } from '@lousho/contract';
import type { PendingRun } from './agent.ts';
import type { UnfinishedRun } from './pending-runs.ts';

type Note =
  /** The store failed, not the run: it counts as if it had not been started, since it had so many starts. */
  | { readonly type: 'store-failed'; readonly runId: string | undefined; readonly starts: number }
  /** Refused before anything was stored: another try would tell the operator the same every half a minute. */
  | { readonly type: 'refused'; readonly savedAt: string | undefined };

export class RecoveryNotes {
  readonly #notes = new Map<string, Note>();

  /** @param found as it was listed before the attempt */
  add(found: UnfinishedRun, error: unknown): void {
    const { checkpointId, runId, savedAt } = found.run;
    if (isOfStore(error)) {
      const starts = startsOf(found.header) - this.forgivenStarts(found);
      this.#notes.set(checkpointId, { type: 'store-failed', runId, starts });
    } else if (storedError(error).retryable) {
      this.#notes.delete(checkpointId);
    } else {
      this.#notes.set(checkpointId, { type: 'refused', savedAt });
    }
  }

  drop({ checkpointId }: PendingRun): void {
    this.#notes.delete(checkpointId);
  }

  /** Nobody has saved it since this process was refused. */
  isHopeless({ checkpointId, savedAt }: PendingRun): boolean {
    const note = this.#notes.get(checkpointId);
    return note?.type === 'refused' && note.savedAt === savedAt;
  }

  /** 1 when the last start was lost to the store, and nobody has started the run since. */
  forgivenStarts({ run, header }: UnfinishedRun): number {
    const note = this.#notes.get(run.checkpointId);
    if (note?.type !== 'store-failed' || note.runId !== run.runId) return 0;
    return startsOf(header) - note.starts === 1 ? 1 : 0;
  }

  /** What is over needs no note. */
  keepOnly(found: readonly UnfinishedRun[]): void {
    if (this.#notes.size === 0) return;
    const ids = new Set(found.map(({ run }) => run.checkpointId));
    for (const id of this.#notes.keys()) if (!ids.has(id)) this.#notes.delete(id);
  }
}

function startsOf(header: CheckpointHeader | null): number {
  return header?.status === 'in-progress' ? (header.startsWithoutProgress ?? 0) : 0;
}

function isOfStore(error: unknown): boolean {
  return error instanceof SDKError && error.retryable && error.code.startsWith('LOUSHO_STORE_');
}
