/** Takes a run's lease, keeps it alive while the run executes, and reports the moment it is lost. */
import { SDKError, type CheckpointStore, type Clock } from '@lousho/contract';

export interface HeldLease {
  readonly owner: string;
  /** `undefined` on a store whose leases have no number. */
  readonly fence: number | undefined;
  /** Aborts when another owner took over or the lease could not be kept; its reason is the error to reject the run with. */
  readonly lost: AbortSignal;
  /** Before an effect: at once while the lease is surely ours, else after a renewal. @throws LOUSHO_SESSION_BUSY */
  ensureHeld(): Promise<void> | undefined;
  /** @throws LOUSHO_SESSION_BUSY */
  renewNow(): Promise<void>;
  /** The store refused a save of ours. */
  reportLost(): SDKError;
  /** Stops the heartbeat and gives the lease back; never throws: what is not given back expires. */
  release(): Promise<void>;
}

export interface LeaseDeps {
  readonly store: LeasingStore;
  readonly clock: Clock;
  readonly ttlMs: number;
  readonly heartbeatMs: number;
}

export type LeasingStore = CheckpointStore & Required<Pick<CheckpointStore, 'acquireLease' | 'releaseLease'>>;

/** Both methods, or the run has no lease. */
export function isLeasingStore(store: CheckpointStore): store is LeasingStore {
  return store.acquireLease !== undefined && store.releaseLease !== undefined;
}

/** `undefined` when another owner has it. */
export async function acquireLease(
  id: string,
  owner: string,
  deps: LeaseDeps,
): Promise<HeldLease | undefined> {
  const askedAt = now(deps.clock);
  const taken = await deps.store.acquireLease(id, owner, deps.ttlMs);
  if (taken === false) return undefined;
  return new LeaseKeeper(id, owner, taken === true ? undefined : taken.fence, askedAt, deps);
}

interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** Between failed heartbeats: often enough to use up the time that is left, seldom enough for a store in trouble. */
const RETRY_AFTER_ERROR_MS = 1_000;

class LeaseKeeper implements HeldLease {
  readonly #lost = new AbortController();
  #renewedAt: Moment;
  #cancelTimer: () => void;
  #isReleased = false;

  constructor(
    readonly id: string,
    readonly owner: string,
    readonly fence: number | undefined,
    acquiredAt: Moment,
    readonly deps: LeaseDeps,
  ) {
    this.#renewedAt = acquiredAt;
    this.#cancelTimer = this.#beatIn(deps.heartbeatMs);
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  ensureHeld(): Promise<void> | undefined {
    if (this.#lost.signal.aborted) throw this.#lost.signal.reason;
    return this.#isFresh() ? undefined : this.renewNow();
  }

  async renewNow(): Promise<void> {
    if (this.#lost.signal.aborted) throw this.#lost.signal.reason;
    const askedAt = now(this.deps.clock);
    const isHeld = await this.#renew();
    if (!isHeld) throw this.reportLost();
    this.#renewedAt = askedAt;
  }

  reportLost(): SDKError {
    const error = new SDKError('LOUSHO_SESSION_BUSY', { sessionId: this.id });
    this.#lost.abort(error);
    return error;
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    this.#cancelTimer();
    if (this.#lost.signal.aborted) return;
    try {
      await this.deps.store.releaseLease(this.id, this.owner, this.fence);
    } catch {
      // The store does not answer: the lease ends by itself after `ttlMs`.
    }
  }

  /** A heartbeat that fails is no proof of loss: it is tried again until the margin before the expiry. */
  async #beat(): Promise<void> {
    const cancelWatch = this.#watchBeat();
    try {
      await this.renewNow();
      this.#schedule(this.deps.heartbeatMs);
    } catch {
      if (this.#lost.signal.aborted) return;
      if (this.#isFresh()) this.#schedule(Math.min(RETRY_AFTER_ERROR_MS, this.deps.heartbeatMs));
      else this.reportLost();
    } finally {
      cancelWatch();
    }
  }

  /** A store that never answers: the run ends before the lease does. One that is asked late, behind a suspend, gets the margin. */
  #watchBeat(): () => void {
    const { clock, ttlMs } = this.deps;
    const leftMs = this.#trustedMs() - (clock.monotonicMs() - this.#renewedAt.monotonicMs);
    const waitMs = Math.max(leftMs, ttlMs - this.#trustedMs());
    return clock.setTimer(() => void this.reportLost(), waitMs, { keepAlive: false });
  }

  #schedule(delayMs: number): void {
    if (!this.#isReleased) this.#cancelTimer = this.#beatIn(delayMs);
  }

  #beatIn(delayMs: number): () => void {
    return this.deps.clock.setTimer(() => void this.#beat(), delayMs, { keepAlive: false });
  }

  #renew(): Promise<boolean> {
    const { store, ttlMs } = this.deps;
    if (store.renewLease !== undefined) return store.renewLease(this.id, this.owner, ttlMs, this.fence);
    return store.acquireLease(this.id, this.owner, ttlMs).then((taken) => taken !== false);
  }

  /** On both clocks: the wall clock shows a suspend that the monotonic one sleeps through, and the other way round. */
  #isFresh(): boolean {
    const { clock } = this.deps;
    const trustedMs = this.#trustedMs();
    return (
      clock.monotonicMs() - this.#renewedAt.monotonicMs < trustedMs &&
      Math.abs(clock.wallMs() - this.#renewedAt.wallMs) < trustedMs
    );
  }

  /** How long after a renewal effects may begin: until the margin before the expiry. */
  #trustedMs(): number {
    const { ttlMs } = this.deps;
    return ttlMs - Math.min(5_000, ttlMs / 6);
  }
}

function now(clock: Clock): Moment {
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
}
