/** Leases between machines whose clocks disagree: never two holders, no live holder lost, no dead one waited for too long. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LeaseWorld, type OwnerClock, type Turn, type WorldOptions } from './support/lease-world.ts';

const TTL_MS = 30_000;
const MARGIN_MS = 5_000;
const RENEW_MS = 10_000;
const options: WorldOptions = { ttlMs: TTL_MS, marginMs: MARGIN_MS, graceMs: TTL_MS, pollMs: RENEW_MS };

const driftPpm = fc.integer({ min: -500, max: 500 });
const clocksWithin = (skewMs: number): fc.Arbitrary<OwnerClock> =>
  fc.record({ offsetMs: fc.integer({ min: 0, max: skewMs }), driftPpm });
const turns = fc.array(
  fc.record<Turn>({
    owner: fc.nat({ max: 2 }),
    afterMs: fc.oneof(fc.nat({ max: RENEW_MS }), fc.nat({ max: 3 * TTL_MS })),
    cutOff: fc.boolean(),
  }),
  { minLength: 5, maxLength: 60 },
);

/** The most owners that believed in the lease at one moment. */
function mostHolders(
  clocks: readonly OwnerClock[],
  history: readonly Turn[],
  over: Partial<WorldOptions> = {},
): number {
  const world = new LeaseWorld(clocks, { ...options, ...over });
  return Math.max(...history.map((turn) => world.play(turn).length));
}

describe('leases over clocks that disagree', () => {
  it('never have two holders while clocks differ by at most one period, whoever stalls, sleeps or is cut off', () => {
    fc.assert(
      fc.property(
        fc.tuple(clocksWithin(TTL_MS), clocksWithin(TTL_MS), clocksWithin(TTL_MS)),
        turns,
        (clocks, history) => {
          expect(mostHolders(clocks, history)).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  it('would have two in this very simulation if takers did not wait the period past the expiry', () => {
    const clocks = [0, TTL_MS].map((offsetMs) => ({ offsetMs, driftPpm: 0 }));
    const history: Turn[] = [
      { owner: 0, afterMs: 0, cutOff: false },
      { owner: 1, afterMs: 1_000, cutOff: false },
    ];
    expect(mostHolders(clocks, history, { graceMs: 0 })).toBe(2);
    expect(mostHolders(clocks, history)).toBe(1);
  });

  it('have fences that strictly grow', () => {
    fc.assert(
      fc.property(
        fc.tuple(clocksWithin(TTL_MS), clocksWithin(TTL_MS), clocksWithin(TTL_MS)),
        turns,
        (clocks, history) => {
          const world = new LeaseWorld(clocks, options);
          for (const turn of history) world.play(turn);
          expect(world.fences).toEqual(world.fences.map((_fence, index) => index + 1));
        },
      ),
    );
  });

  it('are never lost by a holder that renews in time, while clocks differ by less than 50 seconds', () => {
    const limitMs = 2 * TTL_MS - RENEW_MS;
    const polls = fc.array(
      fc.record({ owner: fc.constantFrom(1, 2), afterMs: fc.nat({ max: RENEW_MS - 1 }) }),
      {
        minLength: 1,
        maxLength: 4,
      },
    );
    fc.assert(
      fc.property(
        fc.integer({ min: -limitMs + 1, max: limitMs - 1 }),
        fc.integer({ min: -limitMs + 1, max: limitMs - 1 }),
        fc.array(polls, { minLength: 10, maxLength: 20 }),
        (offset1Ms, offset2Ms, rounds) => {
          const clocks = [0, offset1Ms, offset2Ms].map((offsetMs) => ({ offsetMs, driftPpm: 0 }));
          const world = new LeaseWorld(clocks, options);
          world.play({ owner: 0, afterMs: 0, cutOff: false });
          for (const round of rounds) {
            let leftMs = RENEW_MS;
            for (const { owner, afterMs } of round) {
              const waitMs = Math.min(afterMs, leftMs - 1);
              leftMs -= waitMs;
              world.play({ owner, afterMs: waitMs, cutOff: false });
            }
            world.play({ owner: 0, afterMs: leftMs, cutOff: false });
            expect(world.record).toMatchObject({ owner: '0', fence: 1 });
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('of a dead holder are free within two periods and a poll of the first look, whatever its clock said', () => {
    const dayMs = 24 * 3_600_000;
    fc.assert(
      fc.property(fc.integer({ min: -dayMs, max: dayMs }), (offsetMs) => {
        const world = new LeaseWorld(
          [
            { offsetMs, driftPpm: 0 },
            { offsetMs: 0, driftPpm: 0 },
          ],
          options,
        );
        world.play({ owner: 0, afterMs: 0, cutOff: false });
        for (let waitedMs = 0; waitedMs <= 2 * TTL_MS + RENEW_MS; waitedMs += RENEW_MS)
          world.play({ owner: 1, afterMs: RENEW_MS, cutOff: false });
        expect(world.record?.owner).toBe('1');
      }),
    );
  });
});
