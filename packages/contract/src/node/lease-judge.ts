/** What speaks for or against taking a lease: its holder's process, how long it has stood still, and whether we slept ourselves. */
import { takeLease, type LeaseRecord } from '../lease.ts';
import type { Ports } from '../ports.ts';
import { LeaseSightings } from './lease-sightings.ts';
import type { LiveOwners } from './live-owners.ts';
import { TimerDelay } from './timer-delay.ts';

export interface LeaseClaim {
  readonly id: string;
  readonly owner: string;
  readonly ttlMs: number;
  /** What `isHolderGone` said of this very lease. */
  readonly holderIsGone: boolean;
}

export class LeaseJudge {
  readonly #ports: Ports;
  readonly #liveOwners: LiveOwners;
  readonly #timerDelay: TimerDelay;
  readonly #sightings: LeaseSightings;

  constructor(ports: Ports, liveOwners: LiveOwners) {
    this.#ports = ports;
    this.#liveOwners = liveOwners;
    this.#timerDelay = new TimerDelay(ports.clock);
    this.#sightings = new LeaseSightings(ports.clock);
  }

  /** Whether somebody other than `owner` holds the lease and is provably gone. */
  async isHolderGone(current: LeaseRecord | undefined, owner: string): Promise<boolean> {
    if (!isOthers(current, owner) || current.holder === undefined) return false;
    const { processes } = this.#ports;
    if (current.holder.instanceId === processes.own().instanceId) return !this.#liveOwners.has(current);
    try {
      return await processes.isGone(current.holder);
    } catch {
      // A question that cannot be answered is no proof: the lease ends by its time.
      return false;
    }
  }

  /** The record to write when `owner` may have the lease now, else `null`. */
  decide(current: LeaseRecord | undefined, claim: LeaseClaim): LeaseRecord | null {
    const { clock, processes } = this.#ports;
    return takeLease(current ?? null, {
      ...claim,
      nowMs: clock.wallMs(),
      // The clocks of several machines may disagree by as much.
      graceMs: current?.ttlMs ?? 0,
      ...(isOthers(current, claim.owner)
        ? {
            unchangedForMs: this.#sightings.unchangedForMs(current),
            ownDelayMs: this.#timerDelay.withinMs(current.ttlMs),
          }
        : { unchangedForMs: 0, ownDelayMs: 0 }),
      holder: processes.own(),
    });
  }

  /** Its lease was taken: what was seen of it does not count any more. */
  forget(id: string): void {
    this.#sightings.forget(id);
  }

  /** Watches for its own delays, as a process that looks for runs to take over must. */
  watchDelays(): void {
    this.#timerDelay.watch();
  }

  close(): void {
    this.#timerDelay.stop();
  }
}

function isOthers(lease: LeaseRecord | undefined, owner: string): lease is LeaseRecord {
  return lease !== undefined && lease.released !== true && lease.owner !== owner;
}
