/** What speaks for or against taking a lease: its holder's process, how long it has stood still, and whether we slept ourselves. */
import { takeLease, type LeaseRecord, type Ports } from '@lousho/contract';
import type { LiveOwners } from './live-owners.ts';
import { TimerDelay } from './timer-delay.ts';

/** How long a lease of somebody else has looked the same to this process. */
interface Sighting {
  readonly fence: number;
  readonly renewCount: number;
  readonly sinceMs: number;
}

/** More contended leases than this are not watched at one time. */
const MAX_SIGHTINGS = 1_000;

export class LeaseJudge {
  readonly #ports: Ports;
  readonly #liveOwners: LiveOwners;
  readonly #timerDelay: TimerDelay;
  readonly #sightings = new Map<string, Sighting>();

  constructor(ports: Ports, liveOwners: LiveOwners) {
    this.#ports = ports;
    this.#liveOwners = liveOwners;
    this.#timerDelay = new TimerDelay(ports.clock);
  }

  /** The record to write when `owner` may have the lease now, else `null`. */
  async judge(
    current: LeaseRecord | undefined,
    { id, owner, ttlMs }: { readonly id: string; readonly owner: string; readonly ttlMs: number },
  ): Promise<LeaseRecord | null> {
    const { clock, processes } = this.#ports;
    const isOthers = current !== undefined && current.released !== true && current.owner !== owner;
    const holderIsGone = isOthers && (await this.#isGone(current));
    return takeLease(current ?? null, {
      ...{ id, owner, ttlMs, holderIsGone },
      nowMs: clock.wallMs(),
      // The clocks of several machines may disagree by as much.
      graceMs: current?.ttlMs ?? 0,
      unchangedForMs: isOthers ? this.#unchangedForMs(id, current) : 0,
      ownDelayMs: isOthers ? this.#timerDelay.withinMs(current.ttlMs) : 0,
      holder: processes.own(),
    });
  }

  forgetSighting(id: string): void {
    this.#sightings.delete(id);
  }

  /** Watches for its own delays, as a process that looks for runs to take over must. */
  watchDelays(): void {
    this.#timerDelay.watch();
  }

  close(): void {
    this.#timerDelay.stop();
  }

  async #isGone(lease: LeaseRecord): Promise<boolean> {
    const { holder } = lease;
    if (holder === undefined) return false;
    const { processes } = this.#ports;
    if (holder.instanceId === processes.own().instanceId) return !this.#liveOwners.has(lease);
    try {
      return await processes.isGone(holder);
    } catch {
      // A question that cannot be answered is no proof: the lease ends by its time.
      return false;
    }
  }

  #unchangedForMs(id: string, { fence, renewCount }: LeaseRecord): number {
    const nowMs = this.#ports.clock.monotonicMs();
    const seen = this.#sightings.get(id);
    if (seen?.fence === fence && seen.renewCount === renewCount) return nowMs - seen.sinceMs;
    this.#sightings.delete(id);
    this.#sightings.set(id, { fence, renewCount, sinceMs: nowMs });
    if (this.#sightings.size > MAX_SIGHTINGS) {
      for (const oldest of this.#sightings.keys()) {
        this.#sightings.delete(oldest);
        break;
      }
    }
    return 0;
  }
}
