/** Leases: who may execute a run now. Each step is one transaction, and every save reads the lease inside its own. */
import type { Database } from 'better-sqlite3';
import {
  endLease,
  extendLease,
  holdsLease,
  type Lease,
  type LeaseRecord,
  type Ports,
} from '@lousho/contract';
import { LeaseJudge, LiveOwners } from '@lousho/contract/node';
import type { CommitQueue } from './commit-queue.ts';
import type { DatabaseReader } from './database-reader.ts';
import { LeaseTable } from './lease-table.ts';
import type { LogMark } from './log-tables.ts';

export interface SaveCheck {
  readonly isHeld: boolean;
  readonly logMark: LogMark | undefined;
}

/** Its fence is the highest of all leases whose records were removed; no run has this id. */
const FENCE_FLOOR_ID = '';

export class SqliteLeases {
  readonly #queue: CommitQueue;
  readonly #reader: DatabaseReader;
  readonly #ports: Ports;
  readonly #liveOwners: LiveOwners;
  readonly #judge: LeaseJudge;
  readonly #table: LeaseTable;

  constructor(connection: Database, queue: CommitQueue, reader: DatabaseReader, ports: Ports) {
    this.#queue = queue;
    this.#reader = reader;
    this.#ports = ports;
    this.#liveOwners = new LiveOwners(queue.database.fileKey);
    this.#judge = new LeaseJudge(ports, this.#liveOwners);
    this.#table = new LeaseTable(connection);
  }

  async acquire(id: string, owner: string, ttlMs: number): Promise<Lease | false> {
    this.#judge.watchDelays();
    const judged = await this.#judgeHolder(id, owner);
    const taken = await this.#queue.add({
      operation: 'acquireLease',
      id,
      level: 'visible',
      apply: () => this.#take(id, owner, ttlMs, judged),
    });
    return taken === null ? false : { fence: taken.fence };
  }

  async renew(id: string, owner: string, ttlMs: number, fence: number | undefined): Promise<boolean> {
    this.#judge.watchDelays();
    const renewed = await this.#queue.add({
      operation: 'renewLease',
      id,
      level: 'visible',
      goesFirst: true,
      apply: () => this.#renew(id, owner, ttlMs, fence),
    });
    if (!renewed) this.#liveOwners.remove(id, owner, fence);
    return renewed;
  }

  async release(id: string, owner: string, fence: number | undefined): Promise<void> {
    // Whatever becomes of the record, the run has ended.
    this.#liveOwners.remove(id, owner, fence);
    await this.#queue.add({
      operation: 'releaseLease',
      id,
      level: 'visible',
      apply: () => {
        const current = this.#table.read(id);
        if (current !== null && holdsLease(current, owner, fence)) this.#table.write(endLease(current));
      },
    });
  }

  async held(): Promise<readonly LeaseRecord[]> {
    return this.#reader.read({ operation: 'heldLeases', read: () => this.#table.held() });
  }

  /**
   * Inside the transaction of the save: whether the owner still has the lease, and with the same look the mark of the log with this
   * key, for the one who is about to append to it.
   */
  checkForSave(id: string, owner: string, fence: number | undefined, logKey: number): SaveCheck {
    const found = this.#table.readForSave(id, logKey);
    if (found !== undefined && holdsLease(found.lease, owner, fence))
      return { isHeld: true, logMark: found.logMark };
    this.#liveOwners.remove(id, owner, fence);
    return lost;
  }

  /** Ends the lease of a deleted run, and its number too: a run that still executes is refused at its next save. */
  endWithRun(id: string): void {
    const current = this.#table.read(id);
    if (current !== null) this.#table.write({ ...endLease(current), fence: current.fence + 1 });
  }

  /** Whether somebody may be executing the run: not released, and not expired for longer than clocks may differ. */
  isLive(id: string): boolean {
    const current = this.#table.read(id);
    if (current === null || current.released === true) return false;
    return this.#ports.clock.wallMs() < current.expiresAtMs + current.ttlMs;
  }

  /** Whether that holds for any id between the two, both exclusive. */
  isAnyLive(afterId: string, beforeId: string): boolean {
    return this.#table.idsBetween(afterId, beforeId).some((id) => this.isLive(id));
  }

  /** Removes the record of a run that is gone. Its number is kept from being used again. */
  forget(id: string): void {
    const current = this.#table.read(id);
    if (current === null) return;
    const floor = this.#table.read(FENCE_FLOOR_ID);
    if (floor === null || floor.fence < current.fence) {
      this.#table.write({ ...endLease(current), id: FENCE_FLOOR_ID, owner: '' });
    }
    this.#table.remove(id);
  }

  /** Watches for its own delays, as a process that looks for runs to take over must. */
  watchDelays(): void {
    this.#judge.watchDelays();
  }

  close(): void {
    this.#judge.close();
    this.#liveOwners.clear();
  }

  #take(id: string, owner: string, ttlMs: number, judged: LeaseRecord | undefined): LeaseRecord | null {
    const current = this.#table.read(id) ?? this.#floorFor(id);
    // The verdict was made before this transaction: it counts for the lease that it was made about.
    const holderIsGone =
      judged !== undefined && judged.owner === current?.owner && judged.fence === current.fence;
    const taken = this.#judge.decide(current ?? undefined, { id, owner, ttlMs, holderIsGone });
    if (taken === null) return null;
    this.#table.write(taken);
    this.#judge.forget(id);
    // Before anybody can see the lease: whoever finds it and misses it here takes its run for ended.
    this.#liveOwners.add(taken);
    return taken;
  }

  #renew(id: string, owner: string, ttlMs: number, fence: number | undefined): boolean {
    const nowMs = this.#ports.clock.wallMs();
    const renewed = extendLease(this.#table.read(id), { owner, fence, ttlMs, nowMs });
    if (renewed !== null) this.#table.write(renewed);
    return renewed !== null;
  }

  /** The lease of another owner, if that one is provably gone. */
  async #judgeHolder(id: string, owner: string): Promise<LeaseRecord | undefined> {
    const current = await this.#reader.read({ operation: 'acquireLease', read: () => this.#table.read(id) });
    return current !== null && (await this.#judge.isHolderGone(current, owner)) ? current : undefined;
  }

  /** An id without a record may have had one that was removed. */
  #floorFor(id: string): LeaseRecord | null {
    const floor = this.#table.read(FENCE_FLOOR_ID);
    return floor === null ? null : { ...floor, id };
  }
}

const lost: SaveCheck = { isHeld: false, logMark: undefined };
