/** Several owners on one lease, each with a clock of its own, simulated in true time. */
import { extendLease, takeLease, type LeaseRecord } from '../../src/index.ts';

export interface OwnerClock {
  /** How far its wall clock is ahead of true time. */
  readonly offsetMs: number;
  /** How much faster than true time its clocks run, in parts per million. */
  readonly driftPpm: number;
}
/** One thing that happens to one owner: it wakes after a while and does what an executor does then. */
export interface Turn {
  readonly owner: number;
  readonly afterMs: number;
  /** It is cut off from the store, so that it can neither renew nor take. */
  readonly cutOff: boolean;
}
export interface WorldOptions {
  readonly ttlMs: number;
  readonly marginMs: number;
  readonly graceMs: number;
  readonly pollMs: number;
}
interface Owner {
  readonly clock: OwnerClock;
  held: { readonly renewedAtMs: number } | undefined;
  seen: { readonly fence: number; readonly renewCount: number; readonly sinceMs: number } | undefined;
  lastTurnMs: number;
}

export class LeaseWorld {
  record: LeaseRecord | null = null;
  nowMs = 0;
  /** Fences in the order in which they were given out. */
  readonly fences: number[] = [];
  private readonly owners: readonly Owner[];

  constructor(
    clocks: readonly OwnerClock[],
    private readonly options: WorldOptions,
  ) {
    this.owners = clocks.map((clock) => ({ clock, held: undefined, seen: undefined, lastTurnMs: 0 }));
  }

  /** Lets the turn happen; the owners that believe in the lease right after it. */
  play(turn: Turn): readonly number[] {
    this.nowMs += turn.afterMs;
    const owner = this.owners[turn.owner]!;
    if (!turn.cutOff) {
      if (owner.held === undefined) this.tryToTake(owner, turn.owner);
      else this.renew(owner, turn.owner);
    }
    owner.lastTurnMs = monotonicMs(owner, this.nowMs);
    return this.owners.flatMap((one, index) => (this.believes(one) ? [index] : []));
  }

  /** What an executor asks itself before each effect: no store is involved. */
  private believes(owner: Owner): boolean {
    const limitMs = this.options.ttlMs - this.options.marginMs;
    return owner.held !== undefined && monotonicMs(owner, this.nowMs) - owner.held.renewedAtMs < limitMs;
  }

  private renew(owner: Owner, index: number): void {
    const renewed = extendLease(this.record, {
      owner: String(index),
      ttlMs: this.options.ttlMs,
      nowMs: wallMs(owner, this.nowMs),
    });
    this.record = renewed ?? this.record;
    owner.held = renewed === null ? undefined : { renewedAtMs: monotonicMs(owner, this.nowMs) };
  }

  private tryToTake(owner: Owner, index: number): void {
    const ownMs = monotonicMs(owner, this.nowMs);
    const { record } = this;
    if (
      record !== null &&
      (owner.seen?.fence !== record.fence || owner.seen.renewCount !== record.renewCount)
    )
      owner.seen = { fence: record.fence, renewCount: record.renewCount, sinceMs: ownMs };
    const taken = takeLease(record, {
      id: 'run',
      owner: String(index),
      ttlMs: this.options.ttlMs,
      nowMs: wallMs(owner, this.nowMs),
      graceMs: this.options.graceMs,
      unchangedForMs: owner.seen === undefined ? 0 : ownMs - owner.seen.sinceMs,
      ownDelayMs: Math.max(0, ownMs - owner.lastTurnMs - this.options.pollMs),
    });
    if (taken === null) return;
    this.record = taken;
    this.fences.push(taken.fence);
    owner.held = { renewedAtMs: ownMs };
  }
}

function monotonicMs(owner: Owner, nowMs: number): number {
  return nowMs * (1 + owner.clock.driftPpm / 1_000_000);
}

function wallMs(owner: Owner, nowMs: number): number {
  return monotonicMs(owner, nowMs) + owner.clock.offsetMs;
}
