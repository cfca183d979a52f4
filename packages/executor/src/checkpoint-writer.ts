/** The only caller of `save` and `saveIfLeased`: keeps the order, writes once what settles together, and holds the fence. */
import { SDKError, isSDKError, type Checkpoint, type CheckpointStore, type Clock } from '@lousho/contract';
import { fold, type Outcome } from './fold.ts';
import type { HeldLease } from './lease-keeper.ts';

export interface WriterDeps {
  readonly id: string;
  readonly store: CheckpointStore;
  readonly lease: HeldLease | undefined;
  readonly clock: Clock;
  /** Of the current stretch of execution; saved so that the next one can link to it. */
  readonly traceparent: () => string | undefined;
  readonly onSaved: (checkpoint: Checkpoint, durationMs: number) => void;
}

/** Waits before the next try of a save that failed: a full disk or a lost network is often over in seconds. */
const RETRY_DELAYS_MS = [50, 250, 1_000] as const;

export class CheckpointWriter {
  /** The state of the run; the store may be behind it until `save` resolves. */
  #checkpoint: Checkpoint;
  /** What the store holds of this run; `undefined` before its first save. */
  #stored: Checkpoint | undefined;
  #writing: Promise<void> | undefined;
  /** Starts when the current write ends, and takes the newest state then. */
  #next: Promise<void> | undefined;
  readonly #deps: WriterDeps;

  constructor(checkpoint: Checkpoint, stored: Checkpoint | undefined, deps: WriterDeps) {
    this.#checkpoint = checkpoint;
    this.#stored = stored;
    this.#deps = deps;
  }

  get checkpoint(): Checkpoint {
    return this.#checkpoint;
  }

  get stored(): Checkpoint | undefined {
    return this.#stored;
  }

  fold(outcome: Outcome): Checkpoint {
    this.#checkpoint = fold(this.#checkpoint, outcome);
    return this.#checkpoint;
  }

  /**
   * Resolves when the state of now, or a newer one, is stored. Writes follow each other, so an older state never lands on a newer one;
   * states that come while one is being written are written together.
   * @throws LOUSHO_SESSION_BUSY when the lease is lost, and what the store throws
   */
  save(): Promise<void> {
    if (this.#next !== undefined) return this.#next;
    if (this.#writing === undefined) return (this.#writing = this.#write());
    this.#next = settled(this.#writing).then(() => {
      this.#next = undefined;
      return (this.#writing = this.#write());
    });
    return this.#next;
  }

  /** Resolves when nothing is being written any more, whatever came of it: that is told to whoever asked for the write. */
  async idle(): Promise<void> {
    for (;;) {
      const last = this.#next ?? this.#writing;
      if (last === undefined) return;
      await settled(last);
    }
  }

  async #write(): Promise<void> {
    const { clock, onSaved } = this.#deps;
    const stamped = this.#stamp();
    this.#checkpoint = stamped;
    const startedMs = clock.monotonicMs();
    try {
      await this.#writeOnce(stamped);
    } catch (error) {
      await this.#writeAgain(stamped, error);
    } finally {
      this.#writing = undefined;
    }
    this.#stored = stamped;
    onSaved(stamped, clock.monotonicMs() - startedMs);
  }

  #stamp(): Checkpoint {
    const traceparent = this.#deps.traceparent();
    const savedAt = new Date(this.#deps.clock.wallMs()).toISOString();
    // Its parts are frozen: it comes from `fold`.
    return Object.freeze(
      traceparent === undefined
        ? { ...this.#checkpoint, savedAt }
        : { ...this.#checkpoint, traceparent, savedAt },
    );
  }

  /** An effect may be behind this save: it is tried again while the lease holds before the run gives up. */
  async #writeAgain(checkpoint: Checkpoint, firstError: unknown): Promise<void> {
    let error = firstError;
    for (const delayMs of RETRY_DELAYS_MS) {
      if (!isWorthRetrying(error)) throw error;
      await new Promise<void>((resolve) => this.#deps.clock.setTimer(resolve, delayMs));
      try {
        return await this.#writeOnce(checkpoint);
      } catch (nextError) {
        error = nextError;
      }
    }
    throw error;
  }

  async #writeOnce(checkpoint: Checkpoint): Promise<void> {
    const { id, store, lease } = this.#deps;
    if (lease === undefined) return store.save(id, checkpoint);
    if (lease.lost.aborted) throw lease.lost.reason;
    if (store.saveIfLeased === undefined) {
      // Without a fenced save the lease is renewed right before: a short window stays, and the store's claims say so.
      await lease.renewNow();
      return store.save(id, checkpoint);
    }
    if (!(await store.saveIfLeased(id, checkpoint, lease.owner, lease.fence))) throw lease.reportLost();
  }
}

function isWorthRetrying(error: unknown): boolean {
  return (
    !(error instanceof SDKError) ||
    isSDKError(error, 'LOUSHO_STORE_WRITE_FAILED') ||
    isSDKError(error, 'LOUSHO_STORE_READ_FAILED')
  );
}

async function settled(promise: Promise<void>): Promise<void> {
  try {
    await promise;
  } catch {
    // Whoever asked for that write hears of it; the next write is judged by itself.
  }
}
