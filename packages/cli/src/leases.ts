/** Who executes what: the leases of a store, judged as the next process that asks would judge them. */
import type { CheckpointStore, LeaseRecord, ProcessFacts } from '@lousho/contract';
import { thisMachine } from '@lousho/contract/node';

export interface JudgedLease extends LeaseRecord {
  /**
   * `held`: somebody executes the run. `late`: not renewed in time, and still the holder's. `stale`: whoever asks next gets it, because its
   * process is gone or its time is over.
   */
  readonly state: 'held' | 'late' | 'stale';
  /** When it goes to whoever asks, if nobody renews it. */
  readonly freeAtMs: number;
  readonly isHolderGone: boolean;
}

/** In the order of their ids; `undefined` when the store does not tell. @throws what the store throws */
export async function heldLeases(
  store: CheckpointStore,
  nowMs: number,
): Promise<readonly JudgedLease[] | undefined> {
  const leases = await store.heldLeases?.();
  return leases && Promise.all(leases.map((lease) => judged(lease, nowMs)));
}

/** Ids of the checkpoints that somebody executes. */
export function runningIds(leases: readonly JudgedLease[] | undefined): ReadonlySet<string> | undefined {
  return leases && new Set(leases.filter(({ state }) => state !== 'stale').map(({ id }) => id));
}

/** One lease period past the expiry: the holder's clock and ours may differ by as much (L4). */
export function leaseFreeAtMs({ expiresAtMs, ttlMs }: LeaseRecord): number {
  return expiresAtMs + ttlMs;
}

/** `process 4711 on host web-1`. */
export function holderName({ holder, owner }: Pick<LeaseRecord, 'holder' | 'owner'>): string {
  if (holder?.pid === undefined) return owner === '' ? 'unknown' : owner;
  const here = isThisHost(holder) ? 'this machine' : holder.host;
  return `process ${holder.pid}${here === undefined ? '' : ` on ${here}`}`;
}

function isThisHost({ host, bootId }: ProcessFacts): boolean {
  const own = thisMachine.own();
  return host !== undefined && host === own.host && bootId === own.bootId;
}

async function judged(lease: LeaseRecord, nowMs: number): Promise<JudgedLease> {
  const isHolderGone = lease.holder !== undefined && (await thisMachine.isGone(lease.holder));
  const freeAtMs = leaseFreeAtMs(lease);
  if (isHolderGone) return { ...lease, state: 'stale', freeAtMs: nowMs, isHolderGone };
  const state = nowMs < lease.expiresAtMs ? 'held' : nowMs < freeAtMs ? 'late' : 'stale';
  return { ...lease, state, freeAtMs, isHolderGone };
}
