/** Who may execute a run now: the pure decision that every store with leases makes the same way. */
import type { ProcessFacts } from './ports.ts';

export interface LeaseRecord {
  readonly id: string;
  readonly owner: string;
  readonly fence: number;
  readonly renewCount: number;
  readonly expiresAtMs: number;
  readonly ttlMs: number;
  readonly released?: true;
  readonly holder?: ProcessFacts;
}

export interface TakeLeaseRequest {
  readonly id: string;
  readonly owner: string;
  readonly ttlMs: number;
  /** Own wall clock. */
  readonly nowMs: number;
  /** How long past the expiry others wait: one lease period where holders have clocks of their own, 0 where all share one. */
  readonly graceMs: number;
  readonly holderIsGone?: boolean | undefined;
  /** How long this process has seen fence and renew count unchanged, by its monotonic clock. */
  readonly unchangedForMs?: number | undefined;
  /** How late this process's own timers just were: after a suspend it must not trust an expiry at once. */
  readonly ownDelayMs?: number | undefined;
  readonly holder?: ProcessFacts | undefined;
}

/** The record to write when `owner` may have the lease now, else `null`. Each take-over has a higher fence, never used again. */
export function takeLease(current: LeaseRecord | null, request: TakeLeaseRequest): LeaseRecord | null {
  if (current === null) return freshLease(1, request);
  if (current.released === true) return freshLease(current.fence + 1, request);
  if (current.owner === request.owner) return extendLease(current, request);
  return mayTakeOver(current, request) ? freshLease(current.fence + 1, request) : null;
}

export interface ExtendLeaseRequest {
  readonly owner: string;
  readonly fence?: number | undefined;
  readonly ttlMs: number;
  readonly nowMs: number;
}

/** The renewed record, or `null` when `owner` lost it. Expired is fine, taken over or released is not. */
export function extendLease(current: LeaseRecord | null, request: ExtendLeaseRequest): LeaseRecord | null {
  if (current === null || !holdsLease(current, request.owner, request.fence)) return null;
  return {
    ...current,
    ttlMs: request.ttlMs,
    // Never earlier than before: a wall clock that steps back must not shorten a lease.
    expiresAtMs: Math.max(current.expiresAtMs, request.nowMs + request.ttlMs),
    renewCount: current.renewCount + 1,
  };
}

/** Whether a save of this owner (and fence) is still its own to make. */
export function holdsLease(current: LeaseRecord | null, owner: string, fence?: number): boolean {
  return (
    current !== null &&
    current.released !== true &&
    current.owner === owner &&
    (fence === undefined || current.fence === fence)
  );
}

/** The record that ends a lease. The fence stays, so that no later lease can have the same one. */
export function endLease(current: LeaseRecord): LeaseRecord {
  return { ...current, released: true };
}

function mayTakeOver(current: LeaseRecord, request: TakeLeaseRequest): boolean {
  if (request.holderIsGone === true) return true;
  // We slept, and perhaps the whole machine did: the holder gets one more period to show that it lives.
  if ((request.ownDelayMs ?? 0) > current.ttlMs / 2) return false;
  // A holder whose clock was far ahead left an expiry that never comes; that it stands still is proof enough.
  if ((request.unchangedForMs ?? 0) >= 2 * current.ttlMs) return true;
  return request.nowMs >= current.expiresAtMs + request.graceMs;
}

function freshLease(fence: number, request: TakeLeaseRequest): LeaseRecord {
  return {
    id: request.id,
    owner: request.owner,
    fence,
    renewCount: 0,
    expiresAtMs: request.nowMs + request.ttlMs,
    ttlMs: request.ttlMs,
    ...(request.holder === undefined ? {} : { holder: request.holder }),
  };
}
