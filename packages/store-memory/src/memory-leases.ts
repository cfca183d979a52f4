/** Who executes which run. Only leases that are held are kept; the fence outlives them in one counter of the whole store. */
import { extendLease, holdsLease, takeLease, type Lease, type LeaseRecord } from '@lousho/contract';

/** All times are of the monotonic clock: every owner lives in this process, and a wall clock that jumps must not end a lease. */
export class MemoryLeases {
  private readonly held = new Map<string, LeaseRecord>();
  /**
   * The highest fence given out, whatever the id. A lease that ends leaves nothing behind, and still no later one of its id can have
   * its fence: sessions make a new id each turn, and a record kept for each would grow for ever.
   */
  private lastFence = 0;

  /** Takes the lease, or renews the owner's own. An expired one is free at once: there is no second clock to disagree with. */
  acquire(id: string, owner: string, ttlMs: number, nowMs: number): Lease | false {
    const current = this.held.get(id) ?? null;
    const taken = takeLease(current, { id, owner, ttlMs, nowMs, graceMs: 0 });
    if (taken === null) return false;
    const isOwn = current !== null && taken.fence === current.fence;
    const lease = isOwn ? taken : { ...taken, fence: (this.lastFence += 1) };
    this.held.set(id, lease);
    return { fence: lease.fence };
  }

  renew(id: string, owner: string, ttlMs: number, fence: number | undefined, nowMs: number): boolean {
    const renewed = extendLease(this.held.get(id) ?? null, { owner, ttlMs, fence, nowMs });
    if (renewed === null) return false;
    this.held.set(id, renewed);
    return true;
  }

  release(id: string, owner: string, fence: number | undefined): void {
    if (this.isHeldBy(id, owner, fence)) this.end(id);
  }

  /** Also when it has expired: until somebody takes it over nobody else can have written. */
  isHeldBy(id: string, owner: string, fence: number | undefined): boolean {
    return holdsLease(this.held.get(id) ?? null, owner, fence);
  }

  liveIds(nowMs: number): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const [id, { expiresAtMs }] of this.held) if (nowMs < expiresAtMs) ids.add(id);
    return ids;
  }

  end(id: string): void {
    this.held.delete(id);
  }

  clear(): void {
    this.held.clear();
  }
}
