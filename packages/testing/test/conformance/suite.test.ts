import { describe, expect, it } from 'vitest';
import { check, type ConformanceReport } from '../../src/conformance.ts';
import { referenceStore } from '../../src/crash.ts';
import { eventualSubject } from './eventual-store.ts';
import { plainSubject } from './subjects.ts';

const failuresIn = ({ results }: ConformanceReport): unknown[] =>
  results.flatMap(({ failure }) => (failure === undefined ? [] : [failure.message]));
const skippedIn = ({ results }: ConformanceReport): Record<string, string | undefined> =>
  Object.fromEntries(
    results.filter(({ outcome }) => outcome === 'skipped').map(({ rule, reason }) => [rule.id, reason]),
  );

describe('nothing is wrong with', () => {
  it('a correct store, which is asked for all that it claims', async () => {
    const report = await check(plainSubject('plain'));
    expect(failuresIn(report)).toEqual([]);
    expect(report.passed).toBe(true);
    expect(skippedIn(report)).toEqual({
      W1: 'not claimed: best-effort leases',
      W2: 'not claimed: best-effort leases',
      W3: 'not claimed: eventual consistency',
    });
  });

  it(
    'a correct store behind a slow network, which is asked for the weaker sentences',
    { timeout: 60_000 },
    async () => {
      const report = await check(eventualSubject('eventual'));
      expect(failuresIn(report)).toEqual([]);
      expect(Object.keys(skippedIn(report))).toEqual([
        'L1',
        'L2',
        'F3',
        'model/checkpoints',
        'model/leases',
        'model/approvals',
        'model/sessions',
      ]);
    },
  );

  it('the reference store, whose storage has one handle', async () => {
    const report = await check({
      name: 'referenceStore',
      claims: referenceStore().checkpoints.claims,
      historyLimit: 50,
      async createStorage(clock) {
        const store = referenceStore({ clock });
        return { open: async () => store, destroy: async () => undefined };
      },
    });
    expect(failuresIn(report)).toEqual([]);
    expect(Object.keys(skippedIn(report)).join(' ')).toBe(
      'C14 C15 L4 L13 Q4 A5 A7 S3 Z2 Z3 Z4 Z5 Z6 Z7 W1 W2 W3',
    );
  });
});
