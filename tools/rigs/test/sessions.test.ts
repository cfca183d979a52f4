/** Three processes that talk in the same conversations, killed and stopped at random: each turn stands in its transcript once. */
import { expect, it } from 'vitest';
import { describeViolations, findSessionViolations } from '../src/checker.ts';
import { seededRandom } from '../src/random.ts';
import { Rig } from '../src/rig.ts';
import { sessionTorture, summarizeSessions } from '../src/session-torture.ts';
import type { StoreKind } from '../workers/open-store.mjs';

/** `LOUSHO_SECONDS` makes it longer. */
const durationMs = 1_000 * Number(process.env['LOUSHO_SECONDS'] ?? 20);

it.each<StoreKind>(['sqlite', 'file'])(
  'keeps every turn once, and nothing else of it (%s)',
  { timeout: durationMs + 120_000 },
  async (storeKind) => {
    const rig = new Rig('sessions', { storeKind });
    const random = seededRandom(`sessions (${storeKind})`);
    const evidence = await sessionTorture(rig, { durationMs, random });
    const summary = summarizeSessions(evidence);
    console.log(`sessions (${storeKind}):`, JSON.stringify(summary));
    expect(describeViolations(findSessionViolations(evidence))).toBe('');
    // It was one: turns were cut and taken over, decided, forked and cleared.
    for (const count of Object.values(summary)) expect(count).toBeGreaterThan(0);
  },
);
