/** What a rule works with: fresh storage that many handles can open, time that it moves, sample runs, and ways to ask. */
import {
  platformClock,
  type AgentStore,
  type ApprovalStore,
  type CheckpointStore,
  type PruneOptions,
  type PruneResult,
  type SessionStore,
  type StoreClaims,
} from '@lousho/contract';
import type { ManualClock } from '../manual-clock.ts';
import { nextTurn } from '../settle-clock.ts';
import { Expectations } from './expectations.ts';
import { NotApplicable } from './failure.ts';
import type { StorageUnderTest, StoreSubject } from './subject.ts';
import type { Watchdog } from './watchdog.ts';

export type LeasingStore = CheckpointStore &
  Required<Pick<CheckpointStore, 'acquireLease' | 'renewLease' | 'releaseLease' | 'saveIfLeased'>>;
export type HistoryStore = CheckpointStore & Required<Pick<CheckpointStore, 'history'>>;
export type ListingStore = CheckpointStore & Required<Pick<CheckpointStore, 'list'>>;
export type HeaderListingStore = ListingStore & Required<Pick<CheckpointStore, 'listHeaders'>>;

/** Of an eventual store: no write may take longer until every handle sees it. Workers KV promises 60 seconds or more. */
const VISIBLE_WITHIN_MS = 120_000;
const POLL_EVERY_MS = 1_000;
/** The same for a store whose clock cannot be moved: then the test really waits. */
const REAL_VISIBLE_WITHIN_MS = 15_000;
const REAL_POLL_EVERY_MS = 25;

/** Not a round number of minutes: a store that rounds shows. An eventual store needs leases that outlast its delays. */
const LEASE_MS = 30_000;
const EVENTUAL_LEASE_MS = 600_000;
/** Really waited for. Long enough that a busy machine does not let one expire between two calls that directly follow each other. */
const REAL_LEASE_MS = 400;
const REAL_LONG_LEASE_MS = 60_000;

export class World extends Expectations {
  readonly claims: StoreClaims;
  /** Time is the store's own: it cannot be moved, only waited for. */
  readonly hasOwnClock: boolean;
  /** A lease of this length can be waited out with `elapse`. */
  readonly periodMs: number;
  /** A lease of this length does not expire by itself while a rule runs. */
  readonly longPeriodMs: number;
  readonly #isEventual: boolean;
  readonly #opened = new Set<AgentStore>();

  constructor(
    readonly subject: StoreSubject,
    readonly storage: StorageUnderTest,
    readonly clock: ManualClock,
    readonly watchdog: Watchdog,
  ) {
    super();
    this.claims = subject.claims;
    this.hasOwnClock = subject.clock === 'store';
    this.#isEventual = subject.claims.consistency === 'eventual';
    const givenPeriodMs = this.#isEventual ? EVENTUAL_LEASE_MS : LEASE_MS;
    this.periodMs = this.hasOwnClock ? REAL_LEASE_MS : givenPeriodMs;
    this.longPeriodMs = this.hasOwnClock ? REAL_LONG_LEASE_MS : givenPeriodMs;
  }

  /** Handles that are open, for the end. */
  get opened(): Iterable<AgentStore> {
    return this.#opened;
  }

  async open(): Promise<AgentStore> {
    const store = await this.storage.open();
    this.watchdog.progress();
    this.#opened.add(store);
    return store;
  }

  /** The handle was closed by the rule. */
  forget(store: AgentStore): void {
    this.#opened.delete(store);
  }

  /** Storage in the memory of a store object has one handle, however often it is opened. */
  async hasManyHandles(): Promise<boolean> {
    return (await this.open()) !== (await this.open());
  }

  /** A new handle's part. @throws NotApplicable when the store has none, or not these methods */
  async checkpoints(): Promise<CheckpointStore> {
    return this.checkpointsOf(await this.open());
  }

  checkpointsOf({ checkpoints }: AgentStore): CheckpointStore {
    if (checkpoints === undefined) throw new NotApplicable('the store has no checkpoints');
    return checkpoints;
  }

  async leases(): Promise<LeasingStore> {
    const methods = ['acquireLease', 'renewLease', 'releaseLease', 'saveIfLeased'] as const;
    return requireMethods(await this.checkpoints(), methods);
  }

  async histories(): Promise<HistoryStore> {
    return requireMethods(await this.checkpoints(), ['history']);
  }

  async lists(): Promise<ListingStore> {
    return requireMethods(await this.checkpoints(), ['list']);
  }

  async headers(): Promise<HeaderListingStore> {
    return requireMethods(await this.checkpoints(), ['list', 'listHeaders']);
  }

  async approvals(): Promise<ApprovalStore> {
    const { approvals } = await this.open();
    if (approvals === undefined) throw new NotApplicable('the store has no approvals');
    return approvals;
  }

  async sessions(): Promise<SessionStore> {
    const { sessions } = await this.open();
    if (sessions === undefined) throw new NotApplicable('the store has no sessions');
    return sessions;
  }

  /** `prune` of the whole store, or of its checkpoints where only that is there. */
  pruneOf(store: AgentStore): (options: PruneOptions) => Promise<PruneResult> {
    const { checkpoints } = store;
    if (store.prune !== undefined) return (options) => this.done(store.prune?.(options));
    if (checkpoints?.prune !== undefined) return (options) => this.done(checkpoints.prune?.(options));
    throw new NotApplicable('the store has no prune');
  }

  closeOf(store: AgentStore): () => Promise<void> {
    const close = closeMethodOf(store);
    if (close === undefined) throw new NotApplicable('the store has no close');
    return () => this.done(close());
  }

  /** Ends a handle, where a handle can be ended. */
  async end(store: AgentStore): Promise<void> {
    this.#opened.delete(store);
    await this.done(closeMethodOf(store)?.() ?? Promise.resolve());
  }

  /** Awaits what it is given and notes that the store answered. */
  async done<Value>(call: Promise<Value> | undefined): Promise<Value> {
    if (call === undefined) throw new Error('Invariant: the method was there a moment ago.');
    const value = await call;
    this.watchdog.progress();
    return value;
  }

  /** Damages a record. @throws NotApplicable when the subject cannot */
  async corrupt(id: string, record: 'checkpoint' | 'approval' | 'session' = 'checkpoint'): Promise<void> {
    const method = (
      { checkpoint: 'corrupt', approval: 'corruptApproval', session: 'corruptSession' } as const
    )[record];
    const damage = this.storage[method]?.bind(this.storage);
    if (damage === undefined) throw new NotApplicable(`the subject has no ${method}(id)`);
    await this.done(damage(id));
  }

  /** The time as the store sees it, epoch milliseconds. */
  nowMs(): number {
    return this.hasOwnClock ? platformClock.wallMs() : this.clock.wallMs();
  }

  /** Now as `savedAt` has it. */
  now(offsetMs = 0): string {
    return new Date(this.nowMs() + offsetMs).toISOString();
  }

  /** Lets so much time pass: at once by the manual clock, really where the store has its own. */
  async elapse(ms: number): Promise<void> {
    if (this.hasOwnClock) await realTime(ms);
    else await this.clock.advance(ms);
    this.watchdog.progress();
  }

  /** Long enough that any store gives away a lease of `periodMs` which nobody renewed. */
  async elapseUntilFree(): Promise<void> {
    // Twice the period is promised (L3); whoever is only a little late breaks that rule and no other.
    await this.elapse(this.periodMs * (this.hasOwnClock ? 3 : 10));
  }

  /** Until everything written so far is visible to every handle. */
  async settle(): Promise<void> {
    if (this.#isEventual) await this.elapse(this.hasOwnClock ? REAL_VISIBLE_WITHIN_MS : VISIBLE_WITHIN_MS);
  }

  /** So many turns of the event loop: work that is under way in the store gets on. */
  async turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) await nextTurn();
  }

  protected override async read<Value>(
    read: () => Promise<Value>,
    isRight: (value: Value) => boolean,
  ): Promise<Value> {
    let value = await this.done(read());
    if (!this.#isEventual) return value;
    const [withinMs, everyMs] = this.hasOwnClock
      ? [REAL_VISIBLE_WITHIN_MS, REAL_POLL_EVERY_MS]
      : [VISIBLE_WITHIN_MS, POLL_EVERY_MS];
    for (let waitedMs = 0; !isRight(value) && waitedMs < withinMs; waitedMs += everyMs) {
      await this.elapse(everyMs);
      value = await this.done(read());
    }
    return value;
  }
}

/** `close` of the whole store, or of its checkpoints where only that is there. */
export function closeMethodOf(store: AgentStore): (() => Promise<void>) | undefined {
  for (const part of [store, store.checkpoints])
    if (part?.close !== undefined) return async () => part.close?.();
  return undefined;
}

/** The store itself, typed as one that has the methods: what is asked is never a copy or a wrapper. */
function requireMethods<Method extends keyof CheckpointStore>(
  store: CheckpointStore,
  methods: readonly Method[],
): CheckpointStore & Required<Pick<CheckpointStore, Method>> {
  const missing = methods.filter((method) => store[method] === undefined);
  if (missing.length > 0) throw new NotApplicable(`the store has no ${missing.join(', ')}`);
  return store as CheckpointStore & Required<Pick<CheckpointStore, Method>>;
}

function realTime(ms: number): Promise<void> {
  return new Promise((resolve) => {
    platformClock.setTimer(resolve, ms);
  });
}
