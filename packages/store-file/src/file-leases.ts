/** Leases: who may execute a run now. Taking one is making a name; every save is refused by the log itself once that was done. */
import {
  endLease,
  extendLease,
  holdsLease,
  type Clock,
  type Lease,
  type LeaseRecord,
} from '@lousho/contract';
import type { LeaseJudge, LiveOwners } from '@lousho/contract/node';
import type { EventLogs } from './event-logs.ts';
import type { Generations } from './generations.ts';
import type { KeyedQueue } from './keyed-queue.ts';
import { noLease, type LeaseFiles, type StoredLease } from './lease-files.ts';
import type { FolderListing, LogFolder } from './log-folder.ts';
import type { StorePlace } from './store-place.ts';

export interface LeasesDeps {
  readonly clock: Clock;
  readonly place: StorePlace;
  readonly files: LeaseFiles;
  readonly judge: LeaseJudge;
  readonly liveOwners: LiveOwners;
  readonly logs: EventLogs;
  readonly generations: Generations;
  /** What is done to the log of a run is done one after the other. */
  readonly logQueue: KeyedQueue;
  readonly leaseQueue: KeyedQueue;
}

/** A lease that was last seen to be held, and the generation that its holder writes to. */
interface HeldLease {
  readonly owner: string;
  readonly fence: number;
  readonly number: number;
  /** Identity of the folder of all runs. */
  readonly root: string | undefined;
}

/** What a take-over was decided by. */
interface LookBefore {
  readonly listing: FolderListing | undefined;
  readonly stored: StoredLease | undefined;
}

/** Each time another process was faster; that this happens so often is no accident. */
const MAX_ATTEMPTS = 1_000;

export class FileLeases {
  readonly #deps: LeasesDeps;
  readonly #held = new Map<string, HeldLease>();

  constructor(deps: LeasesDeps) {
    this.#deps = deps;
  }

  async acquire(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    const { judge, leaseQueue, place } = this.#deps;
    judge.watchDelays();
    return leaseQueue.run(id, async () => {
      await place.assertSame();
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const lease = await this.#tryToAcquire(id, owner, ttlMs);
        if (lease !== 'again') return lease;
      }
      throw new Error(`the lease of "${id}" changed all the time`);
    });
  }

  async renew(id: string, owner: string, ttlMs: number, fence: number | undefined): Promise<boolean> {
    const { judge, leaseQueue, liveOwners } = this.#deps;
    judge.watchDelays();
    const renewed = await leaseQueue.run(id, async () => {
      const lease = await this.#rewriteOwn(id, (record) => {
        return extendLease(record, { owner, fence, ttlMs, nowMs: this.#deps.clock.wallMs() });
      });
      if (lease === undefined) await this.#assertEnded(id, owner, fence);
      return lease;
    });
    if (renewed === undefined) liveOwners.remove(id, owner, fence);
    return renewed !== undefined;
  }

  async release(id: string, owner: string, fence: number | undefined): Promise<void> {
    const { leaseQueue, logQueue, liveOwners, logs } = this.#deps;
    // Whatever becomes of the record, the run has ended.
    liveOwners.remove(id, owner, fence);
    await leaseQueue.run(id, async () => {
      const released = await this.#rewriteOwn(id, (record) => {
        return holdsLease(record, owner, fence) ? endLease(record) : null;
      });
      if (released === undefined) return;
      this.#held.delete(id);
      await logQueue.run(id, () => sealQuietly(logs, id, released.number));
    });
  }

  /** Up to which generation this owner may write, as far as it is known without a look. */
  knownLimit(id: string, owner: string, fence: number | undefined): number | undefined {
    const held = this.#held.get(id);
    if (held?.owner !== owner || (fence !== undefined && held.fence !== fence)) return undefined;
    return this.#deps.logs.known(id)?.number === held.number ? held.number : undefined;
  }

  /** The same by what is stored. */
  async limit(
    folder: LogFolder,
    listing: FolderListing | undefined,
    { id, owner, fence }: { readonly id: string; readonly owner: string; readonly fence: number | undefined },
  ): Promise<number | undefined> {
    const stored = await this.#deps.files.newest(folder, listing);
    if (stored !== undefined && holdsLease(stored.record, owner, fence)) {
      await this.#hold(folder, id, stored);
      return stored.number;
    }
    await this.#assertEnded(id, owner, fence);
    this.#deps.liveOwners.remove(id, owner, fence);
    if (this.#held.get(id)?.owner === owner) this.#held.delete(id);
    return undefined;
  }

  /** Makes the next number for nobody: whoever had the run is refused from then on. `undefined` when somebody else was faster. */
  async end(folder: LogFolder, id: string, listing: FolderListing): Promise<number | undefined> {
    const claimed = await this.#deps.files.claim(folder, listing, (number) => noLease(id, number));
    if (claimed !== undefined) this.#held.delete(id);
    return claimed?.number;
  }

  /** Whether somebody may be executing the run: not released, and not expired for longer than clocks may differ. */
  async isLive(folder: LogFolder, listing: FolderListing | undefined): Promise<boolean> {
    const stored = await this.#deps.files.newest(folder, listing);
    if (stored === undefined || stored.record.released === true) return false;
    return this.#deps.clock.wallMs() < stored.record.expiresAtMs + stored.record.ttlMs;
  }

  watchDelays(): void {
    this.#deps.judge.watchDelays();
  }

  close(): void {
    this.#deps.judge.close();
    this.#deps.liveOwners.clear();
    this.#held.clear();
  }

  async #tryToAcquire(id: string, owner: string, ttlMs: number): Promise<Lease | false | 'again'> {
    const { files, logs } = this.#deps;
    const folder = logs.folderOf(id);
    const listing = await folder.list();
    const stored = await files.newest(folder, listing);
    if (stored !== undefined && stored.number !== listing?.topLease) return 'again';
    const claim = { id, owner, ttlMs };
    const record = await this.#decide(stored?.record, claim);
    if (record === null) return false;
    const isOwn = stored !== undefined && stored.record.released !== true && stored.record.owner === owner;
    return isOwn ? this.#renewOwn(id, owner, ttlMs) : this.#takeOver(folder, { listing, stored }, record);
  }

  /** The record to write when the lease may be taken now, else `null`. */
  async #decide(
    current: LeaseRecord | undefined,
    claim: { readonly id: string; readonly owner: string; readonly ttlMs: number },
  ): Promise<LeaseRecord | null> {
    const { judge } = this.#deps;
    return judge.decide(current, {
      ...claim,
      holderIsGone: await judge.isHolderGone(current, claim.owner),
    });
  }

  async #renewOwn(id: string, owner: string, ttlMs: number): Promise<Lease | 'again'> {
    const renewed = await this.#rewriteOwn(id, (record) => {
      return extendLease(record, { owner, ttlMs, nowMs: this.#deps.clock.wallMs() });
    });
    return renewed === undefined ? 'again' : this.#hold(this.#deps.logs.folderOf(id), id, renewed);
  }

  async #takeOver(folder: LogFolder, before: LookBefore, taken: LeaseRecord): Promise<Lease | 'again'> {
    const { files, judge, liveOwners, generations, logQueue, logs } = this.#deps;
    const { id, owner } = taken;
    // 1. Make the name. From here on nobody else can have this number. Crash here: a lease that ends by its time, or at once with proof.
    const claimed = await files.claim(folder, before.listing, (number) => {
      const record = { ...taken, fence: number };
      // Before anybody can see the lease: whoever finds it and misses it here takes its run for ended.
      liveOwners.add(record);
      return record;
    });
    if (claimed === undefined) {
      liveOwners.remove(id, owner);
      return 'again';
    }
    try {
      // 2. Look once more at the lease before. Crash here: as above.
      if (await this.#givesWay(folder, before, claimed)) {
        liveOwners.remove(id, owner);
        return 'again';
      }
      judge.forget(id);
      // 3. Seal the log of the holder before, and go on in one of our own. Crash here: whoever comes next does the same again.
      await logQueue.run(id, async () => {
        await logs.forget(id);
        await generations.open(folder, id, claimed.number);
      });
    } catch (error) {
      liveOwners.remove(id, owner);
      await this.#giveBack(folder, claimed);
      throw error;
    }
    const after = await folder.list();
    if (after?.topLease === claimed.number) return this.#hold(folder, id, claimed);
    // All that took so long that somebody else has the run by now.
    liveOwners.remove(id, owner);
    return 'again';
  }

  /**
   * The holder may have renewed between the look and the name, and was told that it still has the run: then it has, under the new
   * number. A renewal looks for a higher number after it has written; so one of the two sees the other, and when both do, nobody has it.
   */
  async #givesWay(
    folder: LogFolder,
    { listing, stored }: LookBefore,
    { number, record: { id, owner, ttlMs } }: StoredLease,
  ): Promise<boolean> {
    if (listing === undefined || stored === undefined || stored.record.released === true) return false;
    const { files } = this.#deps;
    const now = await files.newest(folder, listing);
    if (now?.number !== stored.number || now.record.renewCount === stored.record.renewCount) return false;
    if ((await this.#decide(now.record, { id, owner, ttlMs })) !== null) return false;
    await files.rewrite(folder, { number, record: now.record });
    return true;
  }

  /** It could not be used; the failure that led here is the one to report. */
  async #giveBack(folder: LogFolder, claimed: StoredLease): Promise<void> {
    try {
      await this.#deps.files.rewrite(folder, { ...claimed, record: endLease(claimed.record) });
    } catch {
      // It ends by its time.
      return undefined;
    }
  }

  /**
   * Of a lease that does not count any more: somebody took a higher number, or deleted the run, which leaves its number below the floor
   * and the folder of all runs where it was. Otherwise the files were taken away. @throws LOUSHO_STORE_REPLACED
   */
  async #assertEnded(id: string, owner: string, fence: number | undefined): Promise<void> {
    const held = this.#held.get(id);
    if (held?.owner !== owner || (fence !== undefined && held.fence !== fence)) return;
    const { files, logs, place } = this.#deps;
    const folder = logs.folderOf(id);
    if (((await folder.list())?.top ?? 0) >= held.number) return;
    const isSameRoot = (await this.#identityOf(folder.root)) === held.root;
    if (isSameRoot && (await files.floor.read()) >= held.number) return;
    throw place.replaced(folder.pathOf(held.number, 'lease'));
  }

  async #hold(
    folder: LogFolder,
    id: string,
    { number, record: { owner, fence } }: StoredLease,
  ): Promise<Lease> {
    this.#held.set(id, { owner, fence, number, root: await this.#identityOf(folder.root) });
    return { fence };
  }

  async #identityOf(folder: string): Promise<string | undefined> {
    return (await this.#deps.files.disk.statIfThere(folder))?.identity;
  }

  /** Writes over the lease that counts, if `change` allows it. `undefined` when it does not, or not any more. */
  async #rewriteOwn(
    id: string,
    change: (record: LeaseRecord) => LeaseRecord | null,
  ): Promise<StoredLease | undefined> {
    const { files, logs, place } = this.#deps;
    await place.assertSame();
    const folder = logs.folderOf(id);
    for (let listing = await folder.list(); ;) {
      const stored = await files.newest(folder, listing);
      const record = stored === undefined ? null : change(stored.record);
      if (stored === undefined || record === null) return undefined;
      const changed = { number: stored.number, record };
      const isThere = await files.rewrite(folder, changed);
      // A take-over makes a higher number: then what was written here does not count, and is looked at again.
      listing = await folder.list();
      if (isThere && listing?.topLease === stored.number) return changed;
    }
  }
}

async function sealQuietly(logs: EventLogs, id: string, number: number): Promise<void> {
  try {
    await logs.seal(id, number);
  } catch {
    // Whoever takes the run next seals the log, or is told why that cannot be done.
    return undefined;
  }
}
