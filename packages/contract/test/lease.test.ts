/** Who may have a lease: the table of every case, and what stays true when clocks disagree. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  endLease,
  extendLease,
  holdsLease,
  takeLease,
  type LeaseRecord,
  type TakeLeaseRequest,
} from '../src/index.ts';

const TTL_MS = 30_000;
const NOW_MS = 1_000_000;

function held(over: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    id: 'run',
    owner: 'a',
    fence: 7,
    renewCount: 3,
    expiresAtMs: NOW_MS + TTL_MS,
    ttlMs: TTL_MS,
    holder: { instanceId: 'A' },
    ...over,
  };
}

function request(over: Partial<TakeLeaseRequest> = {}): TakeLeaseRequest {
  return {
    id: 'run',
    owner: 'b',
    ttlMs: TTL_MS,
    nowMs: NOW_MS,
    graceMs: TTL_MS,
    holder: { instanceId: 'B' },
    ...over,
  };
}

describe('takeLease', () => {
  it('gives the first owner fence 1 and an expiry one period ahead', () => {
    expect(takeLease(null, request())).toEqual({
      id: 'run',
      owner: 'b',
      fence: 1,
      renewCount: 0,
      expiresAtMs: NOW_MS + TTL_MS,
      ttlMs: TTL_MS,
      holder: { instanceId: 'B' },
    });
  });

  it('writes no holder when the platform names none', () => {
    expect(takeLease(null, request({ holder: undefined }))).not.toHaveProperty('holder');
  });

  it('renews the lease of the owner itself: same fence, same holder', () => {
    expect(takeLease(held(), request({ owner: 'a', nowMs: NOW_MS + 10 }))).toEqual(
      held({ renewCount: 4, expiresAtMs: NOW_MS + 10 + TTL_MS }),
    );
  });

  it('renews it for its owner also long after the expiry, when nobody took it', () => {
    expect(takeLease(held(), request({ owner: 'a', nowMs: NOW_MS + 100 * TTL_MS }))?.fence).toBe(7);
  });

  it('gives a lease that was released away at once, under the next fence, also to the owner before', () => {
    for (const owner of ['a', 'b']) {
      const taken = takeLease(endLease(held()), request({ owner, ownDelayMs: 10 * TTL_MS }));
      expect(taken).toMatchObject({ owner, fence: 8, renewCount: 0 });
      expect(taken).not.toHaveProperty('released');
    }
  });

  const expiryMs = held().expiresAtMs;
  it.each<readonly [string, Partial<TakeLeaseRequest>, boolean]>([
    ['before it expires', {}, false],
    ['at its expiry', { nowMs: expiryMs }, false],
    ['1 ms before a whole period past its expiry', { nowMs: expiryMs + TTL_MS - 1 }, false],
    ['a whole period past its expiry', { nowMs: expiryMs + TTL_MS }, true],
    ['1 ms before its expiry, where all share one clock', { nowMs: expiryMs - 1, graceMs: 0 }, false],
    ['at its expiry, where all share one clock', { nowMs: expiryMs, graceMs: 0 }, true],
    ['when the holder is proven gone', { holderIsGone: true }, true],
    ['when it is not known whether the holder is gone', { holderIsGone: undefined }, false],
    ['when the holder is known to be there', { holderIsGone: false }, false],
    ['when it stood still for 1 ms less than two periods', { unchangedForMs: 2 * TTL_MS - 1 }, false],
    ['when it stood still for two periods', { unchangedForMs: 2 * TTL_MS }, true],
    ['right after the taker itself slept', { nowMs: expiryMs + 9 * TTL_MS, ownDelayMs: TTL_MS }, false],
    [
      'right after it slept, though the record stood still',
      { unchangedForMs: 9 * TTL_MS, ownDelayMs: TTL_MS },
      false,
    ],
    [
      'right after it slept, when the holder is proven gone',
      { holderIsGone: true, ownDelayMs: TTL_MS },
      true,
    ],
    ['after a delay of half a period', { nowMs: expiryMs + TTL_MS, ownDelayMs: TTL_MS / 2 }, true],
    [
      'after a delay of more than half a period',
      { nowMs: expiryMs + TTL_MS, ownDelayMs: TTL_MS / 2 + 1 },
      false,
    ],
  ])('decides about another owner %s', (_case, over, taken) => {
    const record = takeLease(held(), request(over));
    expect(record === null).toBe(!taken);
    if (record !== null) {
      const nowMs = over.nowMs ?? NOW_MS;
      expect(record).toEqual({ ...takeLease(null, request({ nowMs })), fence: 8 });
    }
  });

  it('waits by the period of the lease that is there, not by the one that is asked for', () => {
    const stoodStill = request({ ttlMs: 100, unchangedForMs: 1_000 });
    expect(takeLease(held(), stoodStill)).toBeNull();
    const slept = request({ ttlMs: 100, nowMs: expiryMs + TTL_MS, ownDelayMs: 1_000 });
    expect(takeLease(held(), slept)?.ttlMs).toBe(100);
  });

  it('is not fooled for ever by a holder whose clock is a day ahead', () => {
    const future = held({ expiresAtMs: NOW_MS + 24 * 3_600_000 });
    expect(takeLease(future, request({ unchangedForMs: 2 * TTL_MS }))?.fence).toBe(8);
  });
});

describe('extendLease', () => {
  it('moves the expiry and counts', () => {
    expect(extendLease(held(), { owner: 'a', fence: 7, ttlMs: TTL_MS, nowMs: NOW_MS + 5 })).toEqual(
      held({ renewCount: 4, expiresAtMs: NOW_MS + 5 + TTL_MS }),
    );
  });

  it('never moves the expiry back, when the clock steps back or a shorter period is asked for', () => {
    const back = extendLease(held(), { owner: 'a', ttlMs: TTL_MS, nowMs: NOW_MS - 3_600_000 });
    expect(back?.expiresAtMs).toBe(held().expiresAtMs);
    const shorter = extendLease(held(), { owner: 'a', ttlMs: 10, nowMs: NOW_MS });
    expect(shorter?.expiresAtMs).toBe(held().expiresAtMs);
  });

  it('is fine after the expiry', () => {
    expect(
      extendLease(held(), { owner: 'a', fence: 7, ttlMs: TTL_MS, nowMs: NOW_MS + 99 * TTL_MS }),
    ).not.toBeNull();
  });

  it.each<readonly [string, LeaseRecord | null, string, number | undefined]>([
    ['nobody has', null, 'a', 7],
    ['was released', endLease(held()), 'a', 7],
    ['another owner has', held(), 'b', 7],
    ['the owner has under another fence', held(), 'a', 6],
  ])('gives null for a lease that %s', (_case, record, owner, fence) => {
    expect(extendLease(record, { owner, fence, ttlMs: TTL_MS, nowMs: NOW_MS })).toBeNull();
    expect(holdsLease(record, owner, fence)).toBe(false);
  });

  it('asks for the owner alone when no fence is given', () => {
    expect(holdsLease(held(), 'a')).toBe(true);
    expect(holdsLease(held(), 'a', 7)).toBe(true);
    expect(holdsLease(held(), 'a', 0)).toBe(false);
  });
});

describe('endLease', () => {
  it('keeps the fence, so that no later lease has the same', () => {
    const ended = endLease(held());
    expect(ended).toEqual({ ...held(), released: true });
    expect(takeLease(ended, request())?.fence).toBe(8);
    expect(holdsLease(ended, 'a', 7)).toBe(false);
  });
});

describe('every sequence of lease steps', () => {
  const owner = fc.constantFrom('a', 'b', 'c');
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('take'),
      owner,
      afterMs: fc.nat({ max: 3 * TTL_MS }),
      graceMs: fc.constantFrom(0, TTL_MS),
      holderIsGone: fc.boolean(),
      unchangedForMs: fc.nat({ max: 3 * TTL_MS }),
      ownDelayMs: fc.constantFrom(0, 0, TTL_MS),
    }),
    fc.record({ kind: fc.constant('renew'), owner, afterMs: fc.nat({ max: TTL_MS }) }),
    fc.record({ kind: fc.constantFrom('release', 'delete'), owner, afterMs: fc.nat({ max: 100 }) }),
  );

  it('gives each fence to one owner only, in growing order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let record: LeaseRecord | null = null;
        let nowMs = 0;
        const ownerOf = new Map<number, string>();
        for (const next of steps) {
          nowMs += next.afterMs;
          const before: LeaseRecord | null = record;
          if (next.kind === 'take') {
            const taken: LeaseRecord | null = takeLease(before, {
              ...next,
              id: 'run',
              ttlMs: TTL_MS,
              nowMs,
            });
            record = taken ?? before;
          } else if (next.kind === 'renew') {
            record = extendLease(before, { owner: next.owner, ttlMs: TTL_MS, nowMs }) ?? before;
          } else if (before !== null && (next.kind === 'delete' || holdsLease(before, next.owner))) {
            record = endLease(before);
          }
          if (record === null) continue;
          expect(record.fence).toBeGreaterThanOrEqual(before?.fence ?? 1);
          expect(ownerOf.get(record.fence) ?? record.owner).toBe(record.owner);
          // A lease that ended is never alive again under its fence.
          if (before?.released === true && record.released !== true)
            expect(record.fence).toBe(before.fence + 1);
          ownerOf.set(record.fence, record.owner);
        }
      }),
      { numRuns: 500 },
    );
  });
});
