/** Whatever three owners on three clocks do, a run never has two live holders, and its numbers only grow. */
import { manualClock, testPorts, type ManualClock } from '@lousho/testing';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { FullAgentStore } from '@lousho/contract';
import { inProgress } from './support/fixtures.ts';
import { openStore, tempFolder } from './support/temp-store.ts';

const TTL_MS = 30_000;
/** How old a renewal may be while a holder still starts effects: contract and executor keep 5 s of it back. */
const TRUSTED_MS = TTL_MS - 5_000;
/** Clocks of replicas: together below what two lease periods leave when the last renewal is as old as it may be. */
const SKEWS_MS = [-17_000, 0, 17_000] as const;

type Step =
  | { readonly kind: 'acquire' | 'renew' | 'save' | 'release' | 'delete'; readonly who: number }
  | { readonly kind: 'wait'; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('acquire' as const, 'acquire' as const, 'renew' as const, 'save' as const),
    who: fc.nat(2),
  }),
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('release' as const, 'delete' as const), who: fc.nat(2) }),
  },
  fc.record({
    kind: fc.constant('wait' as const),
    ms: fc.constantFrom(1, 5_000, 10_000, TTL_MS, 2 * TTL_MS),
  }),
);

/** One owner as its executor sees itself. */
class Owner {
  fence: number | undefined;
  #renewedAtMs = 0;

  constructor(
    readonly name: string,
    readonly id: string,
    readonly store: FullAgentStore,
    readonly clock: ManualClock,
  ) {}

  /** It would start a tool now without asking the store. */
  get isLive(): boolean {
    return this.fence !== undefined && this.clock.monotonicMs() - this.#renewedAtMs < TRUSTED_MS;
  }

  /** The new number, or `undefined` when it was refused or had the lease already. */
  async acquire(): Promise<number | undefined> {
    const lease = await this.store.checkpoints.acquireLease(this.id, this.name, TTL_MS);
    if (lease === false) return undefined;
    const before = this.fence;
    this.#hold(lease.fence);
    return lease.fence === before ? undefined : lease.fence;
  }

  async renew(): Promise<void> {
    if (this.fence === undefined) return;
    const isHeld = await this.store.checkpoints.renewLease(this.id, this.name, TTL_MS, this.fence);
    if (isHeld) this.#hold(this.fence);
    else this.fence = undefined;
  }

  async save(): Promise<boolean> {
    return this.store.checkpoints.saveIfLeased(this.id, inProgress(), this.name, this.fence);
  }

  async release(): Promise<void> {
    if (this.fence !== undefined) await this.store.checkpoints.releaseLease(this.id, this.name, this.fence);
    this.fence = undefined;
  }

  #hold(fence: number): void {
    this.fence = fence;
    this.#renewedAtMs = this.clock.monotonicMs();
  }
}

it('never has two live holders', { timeout: 120_000 }, async () => {
  const file = tempFolder();
  let round = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 50, size: 'max' }), async (steps) => {
      const id = `order-${(round += 1)}`;
      const clock = manualClock();
      const owners = SKEWS_MS.map((skewMs, n) => {
        const own: ManualClock = { ...clock, wallMs: () => clock.wallMs() + skewMs };
        return new Owner(`owner-${n}`, id, openStore(file, { ports: testPorts(own) }), clock);
      });
      try {
        await play(steps, owners, clock);
      } finally {
        for (const { store } of owners) await store.close();
      }
    }),
    { numRuns: 80 },
  );
});

async function play(steps: readonly Step[], owners: readonly Owner[], clock: ManualClock): Promise<void> {
  let newestFence = 0;
  for (const one of steps) {
    if (one.kind === 'wait') {
      await clock.advance(one.ms);
      continue;
    }
    const owner = owners[one.who] as Owner;
    switch (one.kind) {
      case 'acquire': {
        const others = owners.filter((other) => other !== owner && other.isLive);
        const fence = await owner.acquire();
        if (fence === undefined) break;
        expect(others).toEqual([]);
        expect(fence).toBeGreaterThan(newestFence);
        newestFence = fence;
        break;
      }
      case 'renew':
        await owner.renew();
        break;
      case 'save':
        // Only the newest holder may write, and it may as long as nobody came after it.
        expect(await owner.save()).toBe(owner.fence === newestFence && newestFence > 0);
        break;
      case 'release':
        await owner.release();
        break;
      case 'delete':
        await owner.store.checkpoints.delete(owner.id);
        for (const each of owners) each.fence = undefined;
        break;
    }
  }
}
