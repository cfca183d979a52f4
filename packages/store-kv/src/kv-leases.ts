/**
 * Who executes which run, as well as a namespace without compare-and-swap can say: write, wait, read back. Two takers at one location
 * see each other's writes; two at different locations may not for a minute, and then both win. The claims say `best-effort`.
 */
import {
  endLease,
  extendLease,
  holdsLease,
  takeLease,
  type Clock,
  type Lease,
  type LeaseRecord,
} from '@lousho/contract';
import { seal, unseal } from './checked-text.ts';
import { KeyedQueue } from './keyed-queue.ts';
import type { KVClient } from './kv-client.ts';
import { damageError, isDamage } from './kv-errors.ts';
import type { KVKeys } from './kv-keys.ts';

/** Between the write of a taken lease and the look at who has it: a write of the same moment has arrived by then. */
const READ_BACK_MS = 50;
/**
 * A lease that nobody touches for so long goes by itself. Its fence is a time, so that the next one is higher even so; a day is more than
 * clocks disagree.
 */
const KEPT_SECONDS = 24 * 60 * 60;

export class KVLeases {
  readonly #client: KVClient;
  readonly #keys: KVKeys;
  readonly #clock: Clock;
  /** In one handle, one decision at a time for each run. */
  readonly #queue = new KeyedQueue();

  constructor(client: KVClient, keys: KVKeys, clock: Clock) {
    this.#client = client;
    this.#keys = keys;
    this.#clock = clock;
  }

  /** @throws LOUSHO_CHECKPOINT_CORRUPT */
  async read(id: string): Promise<LeaseRecord | null> {
    const text = await this.#client.get(this.#keys.lease(id));
    if (text === undefined) return null;
    try {
      const opened = unseal(text);
      if (opened.kind === 'sealed') return (opened.fields as { readonly lease: LeaseRecord }).lease;
      throw new Error('it was not written by this store');
    } catch (error) {
      throw damageError(
        error,
        'checkpoint',
        id,
        `the value at "${this.#keys.lease(id)}" is not what was written`,
      );
    }
  }

  acquire(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    return this.#change(id, async (current) => {
      const nowMs = this.#clock.wallMs();
      // Machines have clocks of their own: others wait one period longer (L4).
      const taken = takeLease(current, { id, owner, ttlMs, nowMs, graceMs: current?.ttlMs ?? 0 });
      if (taken === null) return false;
      if (taken.fence === current?.fence) {
        await this.#write(taken);
        return { fence: taken.fence };
      }
      const lease: LeaseRecord = {
        ...taken,
        fence: Math.max(taken.fence, Math.floor(nowMs)),
        // The time of the look does not count: the owner has its whole period from the moment it is told.
        expiresAtMs: taken.expiresAtMs + READ_BACK_MS,
      };
      // 1. Write. Crash here: a lease that nobody renews; it is free two periods later.
      await this.#write(lease);
      // 2. Look. Whoever wrote last has it.
      await this.#client.pause(READ_BACK_MS);
      const seen = await this.read(id);
      const isOthers = seen !== null && !holdsLease(seen, owner, lease.fence) && !isSame(seen, current);
      return isOthers ? false : { fence: lease.fence };
    });
  }

  renew(id: string, owner: string, ttlMs: number, fence: number | undefined): Promise<boolean> {
    return this.#change(id, async (current) => {
      const renewed = extendLease(current, { owner, fence, ttlMs, nowMs: this.#clock.wallMs() });
      if (renewed !== null) await this.#write(renewed);
      return renewed !== null;
    });
  }

  async release(id: string, owner: string, fence: number | undefined): Promise<void> {
    await this.#change(id, async (current) => {
      if (current !== null && holdsLease(current, owner, fence)) await this.#write(endLease(current));
    });
  }

  /** Whoever has it. A damaged record is ended too. */
  async end(id: string): Promise<void> {
    await this.#queue.run(id, () =>
      this.#client.retryThrottled(async () => {
        const current = await this.#readToEnd(id);
        if (current !== null && current.released !== true) await this.#write(endLease(current));
      }),
    );
  }

  /** Until somebody else may have it. */
  isLive(lease: LeaseRecord | null): boolean {
    return (
      lease !== null && lease.released !== true && this.#clock.wallMs() < lease.expiresAtMs + lease.ttlMs
    );
  }

  /** Read, decide, write; all of it again when KV refuses the write for a second: who may have the lease may be another by then. */
  #change<Result>(id: string, decide: (current: LeaseRecord | null) => Promise<Result>): Promise<Result> {
    return this.#queue.run(id, () => this.#client.retryThrottled(async () => decide(await this.read(id))));
  }

  async #readToEnd(id: string): Promise<LeaseRecord | null> {
    try {
      return await this.read(id);
    } catch (error) {
      if (!isDamage(error)) throw error;
      // Nobody knows whose it was: nobody's, under a fence that is higher than any before.
      const fence = Math.floor(this.#clock.wallMs());
      return { id, owner: '', fence, renewCount: 0, expiresAtMs: 0, ttlMs: 0 };
    }
  }

  async #write(lease: LeaseRecord): Promise<void> {
    const ttlSeconds = KEPT_SECONDS + Math.ceil((2 * lease.ttlMs) / 1_000);
    await this.#client.putOnce(this.#keys.lease(lease.id), seal({ lease }), { ttlSeconds });
  }
}

/** What was read before the write: the write is not visible yet, and nobody else's is either. */
function isSame(a: LeaseRecord, b: LeaseRecord | null): boolean {
  return a.owner === b?.owner && a.fence === b.fence;
}
