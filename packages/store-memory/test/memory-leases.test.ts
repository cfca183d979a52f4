import { manualClock, testPorts } from '@lousho/testing';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { memoryStore } from '../src/index.ts';
import { inProgress } from './fixtures.ts';

const TTL_MS = 30_000;

function setUp() {
  const clock = manualClock();
  const { checkpoints } = memoryStore({ ports: testPorts(clock) });
  return { clock, checkpoints };
}

it('gives a run to one of many owners', async () => {
  const { checkpoints } = setUp();
  const takers = Array.from({ length: 50 }, (_, n) =>
    checkpoints.acquireLease('order-7', `owner-${n}`, TTL_MS),
  );
  expect((await Promise.all(takers)).filter((lease) => lease !== false)).toHaveLength(1);
  expect(await checkpoints.acquireLease('order-8', 'owner-9', TTL_MS)).not.toBe(false);
});

it('refuses others until it expires, and not a moment longer', async () => {
  const { clock, checkpoints } = setUp();
  const first = await checkpoints.acquireLease('order-7', 'a', TTL_MS);
  await clock.advance(TTL_MS - 1);
  expect(await checkpoints.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(1);
  const second = await checkpoints.acquireLease('order-7', 'b', TTL_MS);
  expect(second && first && second.fence > first.fence).toBe(true);
});

it('does not end when the wall clock jumps', async () => {
  const { clock, checkpoints } = setUp();
  await checkpoints.acquireLease('order-7', 'a', TTL_MS);
  clock.jumpWall(24 * 60 * 60_000);
  expect(await checkpoints.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  clock.jumpWall(-48 * 60 * 60_000);
  await clock.advance(TTL_MS);
  expect(await checkpoints.acquireLease('order-7', 'b', TTL_MS)).not.toBe(false);
});

it('is renewed by its owner alone, also after it expired, until somebody takes it over', async () => {
  const { clock, checkpoints } = setUp();
  const lease = await checkpoints.acquireLease('order-7', 'a', TTL_MS);
  const fence = lease === false ? undefined : lease.fence;
  expect(await checkpoints.renewLease('order-7', 'b', TTL_MS)).toBe(false);
  expect(await checkpoints.renewLease('order-7', 'a', TTL_MS, (fence ?? 0) + 1)).toBe(false);
  await clock.advance(2 * TTL_MS);
  expect(await checkpoints.renewLease('order-7', 'a', TTL_MS, fence)).toBe(true);
  await clock.advance(TTL_MS - 1);
  expect(await checkpoints.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  expect(await checkpoints.acquireLease('order-7', 'a', TTL_MS)).toEqual({ fence });
  await clock.advance(TTL_MS);
  expect(await checkpoints.acquireLease('order-7', 'b', TTL_MS)).not.toBe(false);
  expect(await checkpoints.renewLease('order-7', 'a', TTL_MS, fence)).toBe(false);
});

it('is released by its owner alone, and is then free at once and no longer renewed', async () => {
  const { checkpoints } = setUp();
  const first = await checkpoints.acquireLease('order-7', 'a', TTL_MS);
  await checkpoints.releaseLease('order-7', 'b');
  await checkpoints.releaseLease('order-7', 'a', 999);
  expect(await checkpoints.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await checkpoints.releaseLease('order-7', 'a');
  expect(await checkpoints.renewLease('order-7', 'a', TTL_MS)).toBe(false);
  const again = await checkpoints.acquireLease('order-7', 'a', TTL_MS);
  expect(again && first && again.fence > first.fence).toBe(true);
  await checkpoints.releaseLease('never-leased', 'a');
});

it('refuses the save of an owner that lost it, and leaves what is stored alone', async () => {
  const { clock, checkpoints } = setUp();
  const stale = await checkpoints.acquireLease('order-7', 'a', TTL_MS);
  await clock.advance(TTL_MS);
  const fresh = await checkpoints.acquireLease('order-7', 'b', TTL_MS);
  if (stale === false || fresh === false) throw new Error('both were free to take it');
  expect(await checkpoints.saveIfLeased('order-7', inProgress({ runId: 'b' }), 'b', fresh.fence)).toBe(true);
  expect(await checkpoints.saveIfLeased('order-7', inProgress({ runId: 'a' }), 'a', stale.fence)).toBe(false);
  expect(await checkpoints.saveIfLeased('order-7', inProgress({ runId: 'a' }), 'a')).toBe(false);
  expect(await checkpoints.saveIfLeased('order-7', inProgress({ runId: 'a' }), 'b', stale.fence)).toBe(false);
  expect(await checkpoints.load('order-7')).toMatchObject({ runId: 'b' });
  expect(await checkpoints.history('order-7')).toHaveLength(1);
});

it('ends when its run is deleted, and its fence never comes back', async () => {
  const { checkpoints } = setUp();
  const first = await checkpoints.acquireLease('order-7', 'a', TTL_MS);
  if (first === false) throw new Error('it was free');
  await checkpoints.saveIfLeased('order-7', inProgress(), 'a', first.fence);
  await checkpoints.delete('order-7');
  expect(await checkpoints.saveIfLeased('order-7', inProgress(), 'a', first.fence)).toBe(false);
  expect(await checkpoints.renewLease('order-7', 'a', TTL_MS, first.fence)).toBe(false);
  const second = await checkpoints.acquireLease('order-7', 'a', TTL_MS);
  expect(second && second.fence > first.fence).toBe(true);
  expect(await checkpoints.saveIfLeased('order-7', inProgress(), 'a', first.fence)).toBe(false);
});

type Move =
  | { readonly kind: 'acquire' | 'renew' | 'release' | 'save'; readonly owner: string }
  | { readonly kind: 'delete' }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'jump'; readonly ms: number };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('acquire' as const, 'renew' as const, 'release' as const, 'save' as const),
      owner: fc.constantFrom('ann', 'bob', 'cleo'),
    }),
  },
  fc.constant({ kind: 'delete' as const }),
  fc.record({
    kind: fc.constant('advance' as const),
    ms: fc.constantFrom(1, TTL_MS / 2, TTL_MS - 1, TTL_MS),
  }),
  fc.record({ kind: fc.constant('jump' as const), ms: fc.integer({ min: -TTL_MS * 3, max: TTL_MS * 3 }) }),
);

/** Three owners, and what each of them believes to hold: its fence, and until when nobody else may have the run. */
class ThreeOwners {
  private readonly parts = setUp();
  private readonly believed = new Map<string, { readonly fence: number; readonly untilMs: number }>();
  private highestFence = 0;
  private saveCount = 0;

  async make(step: Move): Promise<void> {
    const { clock, checkpoints } = this.parts;
    switch (step.kind) {
      case 'advance':
        return clock.advance(step.ms);
      case 'jump':
        return clock.jumpWall(step.ms);
      case 'delete':
        this.believed.clear();
        this.saveCount = 0;
        return checkpoints.delete('order-7');
      case 'acquire':
        return this.acquire(step.owner);
      default:
        return this.useLease(step.kind, step.owner);
    }
  }

  async check(): Promise<void> {
    const { clock, checkpoints } = this.parts;
    const live = [...this.believed.values()].filter(({ untilMs }) => clock.monotonicMs() < untilMs);
    expect(live.length).toBeLessThanOrEqual(1);
    expect(await checkpoints.history('order-7')).toHaveLength(this.saveCount);
  }

  private async acquire(owner: string): Promise<void> {
    const lease = await this.parts.checkpoints.acquireLease('order-7', owner, TTL_MS);
    if (lease === false) return;
    // The own lease again, or a take-over with a fence that nobody ever had.
    if (lease.fence !== this.believed.get(owner)?.fence)
      expect(lease.fence).toBeGreaterThan(this.highestFence);
    this.highestFence = lease.fence;
    this.believe(owner, lease.fence);
  }

  private async useLease(kind: 'renew' | 'release' | 'save', owner: string): Promise<void> {
    const { checkpoints } = this.parts;
    const own = this.believed.get(owner);
    if (own === undefined) return;
    const isNewest = own.fence === this.highestFence;
    if (kind === 'release') {
      await checkpoints.releaseLease('order-7', owner, own.fence);
      this.believed.delete(owner);
    } else if (kind === 'renew') {
      expect(await checkpoints.renewLease('order-7', owner, TTL_MS, own.fence)).toBe(isNewest);
      if (isNewest) this.believe(owner, own.fence);
    } else {
      expect(await checkpoints.saveIfLeased('order-7', inProgress(), owner, own.fence)).toBe(isNewest);
      if (isNewest) this.saveCount += 1;
    }
  }

  private believe(owner: string, fence: number): void {
    this.believed.set(owner, { fence, untilMs: this.parts.clock.monotonicMs() + TTL_MS });
  }
}

it('never has two holders, and its fences only grow, whatever three owners do', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 40 }), async (moves) => {
      const owners = new ThreeOwners();
      for (const step of moves) {
        await owners.make(step);
        await owners.check();
      }
    }),
    { numRuns: 300 },
  );
});
