/** A store with a clock of its own: leases are short, and rules about time really wait. */
import { platformClock } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { check, type StoreSubject } from '../../src/conformance.ts';
import { HISTORY_LIMIT, Medium, plainClaims, plainStore } from './plain-store.ts';
import { withOverrides, type Plant } from './subjects.ts';

function ownClockSubject(plant: Plant = () => ({})): StoreSubject {
  return {
    name: 'own clock',
    claims: plainClaims,
    clock: 'store',
    historyLimit: HISTORY_LIMIT,
    async createStorage() {
      const medium = new Medium(platformClock);
      return {
        open: async () => {
          const right = plainStore(medium);
          return withOverrides(right, plant(right, medium, 0));
        },
        destroy: async () => undefined,
      };
    },
  };
}

describe('a store with its own clock', () => {
  it('passes when it is correct', { timeout: 120_000 }, async () => {
    const { results } = await check(ownClockSubject());
    expect(results.flatMap(({ failure }) => failure?.message ?? [])).toEqual([]);
    const skipped = results.filter(({ outcome }) => outcome === 'skipped').map(({ rule }) => rule.id);
    expect(skipped.join(' ')).toBe('C14 L4 Q4 A5 A7 S3 W1 W2 W3 model/leases');
  });

  it('fails when it never gives an expired lease away', { timeout: 120_000 }, async () => {
    const subject = ownClockSubject(({ checkpoints }, medium) => ({
      checkpoints: {
        acquireLease: async (id, owner, ttlMs) => {
          const lease = medium.leases.get(id);
          if (lease && lease.released !== true && lease.owner !== owner) return false;
          return checkpoints.acquireLease(id, owner, ttlMs);
        },
      },
    }));
    const { results } = await check(subject, { only: ['L3', 'L8', 'F1', 'F3'] });
    const broken = results.filter(({ outcome }) => outcome === 'failed').map(({ rule }) => rule.id);
    expect(broken).toEqual(['L3', 'F3']);
  });
});
