/**
 * Who executes which run, as well as a namespace without compare-and-swap can say: write, wait, read back. Two takers at one location
 * see each other's writes; two at different locations may not for a minute, and then both win. The claims say `best-effort`.
 *
 * A lease has two keys. `#lease` says who has it, and is put when that changes. `#lease/<tag>` says until when, and is put by each
 * heartbeat. For a location keeps what it has written itself: a holder that put its name again with each heartbeat would never see that
 * another one is there too. So it sees it within a minute, and one of the two stops.
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
import { BoundedMap } from './bounded-map.ts';
import { seal, unseal } from './checked-text.ts';
import { KeyedQueue } from './keyed-queue.ts';
import type { KVClient } from './kv-client.ts';
import { damageError, isDamage } from './kv-errors.ts';
import type { KVKeys } from './kv-keys.ts';
import type { LastSave, LastSaves } from './last-saves.ts';

/** Between the write of a taken lease and the look at who has it: a write of the same moment has arrived by then. */
const READ_BACK_MS = 50;
/**
 * A lease that nobody touches for so long goes by itself. Its fence is a time, so that the next one is higher even so; a day is more than
 * clocks disagree.
 */
const KEPT_SECONDS = 24 * 60 * 60;

/** Runs that one handle executes at one time, with room. */
const MAX_TAKEN = 1_000;

interface StoredLease extends LeaseRecord {
  /** Names the key of its heartbeats. */
  readonly tag: string;
  /** When the name of the holder was put, epoch milliseconds. */
  readonly writtenAtMs: number;
  /** What its holder had saved when this was put. */
  readonly saved?: LastSave | undefined;
}
/** What this handle took, and what it saw before: as long as that is still shown, its own write is only not visible yet. */
interface Taken {
  readonly lease: StoredLease;
  readonly replaced: LeaseRecord | null;
}

export class KVLeases {
  readonly #client: KVClient;
  readonly #keys: KVKeys;
  readonly #clock: Clock;
  /** In one handle, one decision at a time for each run. */
  readonly #queue = new KeyedQueue();
  readonly #lastSaves: LastSaves;
  /** By the id of the run. */
  readonly #taken = new BoundedMap<Taken>(MAX_TAKEN);

  constructor(client: KVClient, keys: KVKeys, clock: Clock, lastSaves: LastSaves) {
    this.#client = client;
    this.#keys = keys;
    this.#clock = clock;
    this.#lastSaves = lastSaves;
  }

  /** Whether a save of this owner is its own to make, as far as can be seen here. @throws LOUSHO_CHECKPOINT_CORRUPT */
  async holderOf(id: string): Promise<LeaseRecord | null> {
    return this.#orTaken(id, await this.#read(this.#keys.lease(id), id));
  }

  /** With its last heartbeat. @throws LOUSHO_CHECKPOINT_CORRUPT */
  async read(id: string): Promise<StoredLease | null> {
    const lease = this.#orTaken(id, await this.#read(this.#keys.lease(id), id));
    if (lease === null || lease.released === true) return lease;
    const beat = await this.#read(this.#keys.heartbeat(id, lease.tag), id);
    if (beat === null) return lease;
    const { expiresAtMs, ttlMs, renewCount, saved } = beat;
    return { ...lease, expiresAtMs, ttlMs, renewCount, saved };
  }

  acquire(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    return this.#change(id, async (current) => {
      const nowMs = this.#clock.wallMs();
      // Machines have clocks of their own: others wait one period longer (L4).
      const taken = takeLease(current, { id, owner, ttlMs, nowMs, graceMs: current?.ttlMs ?? 0 });
      if (taken === null) return false;
      if (current !== null && taken.fence === current.fence) {
        await this.#beat({ ...current, ...taken });
        return { fence: taken.fence };
      }
      const lease: StoredLease = {
        ...taken,
        fence: Math.max(taken.fence, Math.floor(nowMs)),
        // The time of the look does not count: the owner has its whole period from the moment it is told.
        expiresAtMs: taken.expiresAtMs + READ_BACK_MS,
        tag: this.#client.newTag(),
        writtenAtMs: nowMs,
      };
      // 1. Write. Crash here: a lease that nobody renews; it is free two periods later.
      await this.#write(lease);
      // 2. Look. Whoever wrote last has it.
      await this.#client.pause(READ_BACK_MS);
      const seen = await this.#read(this.#keys.lease(id), id);
      const isOthers = seen !== null && !isSame(seen, lease) && !isSame(seen, current);
      if (isOthers) return false;
      this.#taken.set(id, { lease, replaced: current });
      this.#lastSaves.noteTold(id, current?.saved);
      return { fence: lease.fence };
    });
  }

  renew(id: string, owner: string, ttlMs: number, fence: number | undefined): Promise<boolean> {
    return this.#change(id, async (current) => {
      const nowMs = this.#clock.wallMs();
      const renewed = extendLease(current, { owner, fence, ttlMs, nowMs });
      if (current === null || renewed === null) return false;
      const lease = { ...current, ...renewed };
      await this.#beat(lease);
      // Long before it goes by itself.
      if (nowMs - lease.writtenAtMs > (KEPT_SECONDS * 1_000) / 2)
        await this.#write({ ...lease, writtenAtMs: nowMs });
      return true;
    });
  }

  async release(id: string, owner: string, fence: number | undefined): Promise<void> {
    await this.#change(id, async (current) => {
      if (current !== null && holdsLease(current, owner, fence)) await this.#end(current);
    });
  }

  /** Whoever has it. A damaged record is ended too. */
  async end(id: string): Promise<void> {
    await this.#queue.run(id, () =>
      this.#client.retryThrottled(async () => {
        this.#lastSaves.forget(id);
        const current = await this.#readToEnd(id);
        if (current !== null && current.released !== true) await this.#end({ ...current, saved: undefined });
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
  #change<Result>(id: string, decide: (current: StoredLease | null) => Promise<Result>): Promise<Result> {
    return this.#queue.run(id, () => this.#client.retryThrottled(async () => decide(await this.read(id))));
  }

  async #read(key: string, id: string): Promise<StoredLease | null> {
    const text = await this.#client.get(key);
    if (text === undefined) return null;
    try {
      const opened = unseal(text);
      if (opened.kind === 'sealed') return (opened.fields as { readonly lease: StoredLease }).lease;
      throw new Error('it was not written by this store');
    } catch (error) {
      throw damageError(error, 'checkpoint', id, `the value at "${key}" is not what was written`);
    }
  }

  /** What is seen, unless it is what was there before this handle took the lease. */
  #orTaken(id: string, seen: StoredLease | null): StoredLease | null {
    const taken = this.#taken.get(id);
    if (taken === undefined) return seen;
    const isBefore = seen === null ? taken.replaced === null : isSame(seen, taken.replaced);
    return isBefore ? taken.lease : seen;
  }

  async #readToEnd(id: string): Promise<StoredLease | null> {
    try {
      return await this.read(id);
    } catch (error) {
      if (!isDamage(error)) throw error;
      // Nobody knows whose it was: nobody's, under a fence that is higher than any before.
      const nowMs = this.#clock.wallMs();
      const nobodys = { id, owner: '', renewCount: 0, expiresAtMs: 0, ttlMs: 0, tag: '' };
      return { ...nobodys, fence: Math.floor(nowMs), writtenAtMs: nowMs };
    }
  }

  async #end(lease: StoredLease): Promise<void> {
    await this.#write({ ...lease, ...endLease(lease) });
    this.#taken.delete(lease.id);
  }

  async #write(lease: StoredLease): Promise<void> {
    await this.#put(this.#keys.lease(lease.id), lease);
  }

  async #beat(lease: StoredLease): Promise<void> {
    await this.#put(this.#keys.heartbeat(lease.id, lease.tag), lease);
  }

  async #put(key: string, lease: StoredLease): Promise<void> {
    const ttlSeconds = KEPT_SECONDS + Math.ceil((2 * lease.ttlMs) / 1_000);
    const saved = this.#lastSaves.savedHere(lease.id) ?? lease.saved;
    await this.#client.putOnce(key, seal({ lease: { ...lease, saved } }), { ttlSeconds });
  }
}

/** The same lease in the same state, whatever its heartbeats. */
function isSame(a: LeaseRecord, b: LeaseRecord | null): boolean {
  return b !== null && a.owner === b.owner && a.fence === b.fence && a.released === b.released;
}
