/** Thousands of stories of processes over one store: each keeps every promise, is the same for the same seed, and a flaw in the world shows. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { createAgent } from '@lousho/core';
import { simulate } from '@lousho/testing/simulation';
import { describe, expect, it } from 'vitest';
import { simulateSeed } from '../src/simulation/simulate-seed.ts';
import { flawedWorlds } from './support/flawed-worlds.ts';

const SEEDS = 5_000;
/** Until a flaw shows. */
const MOST_SEEDS = 60;

/** What they found stays mended: a sub-agent that began anew behind its end, for a lead that had slept and been taken over. */
it.each([507])('keeps every promise where it once did not (seed %i)', async (seed) => {
  expect(await simulateSeed(seed)).toBeUndefined();
});

it.each<[string, object]>([
  ['seed', { seed: 'x', createAgent }],
  ['seeds', { seed: 1, seeds: 5, createAgent }],
])('names %s when it cannot be used', async (option, options) => {
  await expect(simulate(options as Parameters<typeof simulate>[0])).rejects.toMatchObject({
    code: 'LOUSHO_CONFIG_INVALID',
    details: { option },
  });
});

it('is one story for one seed', async () => {
  for (const seed of [3, 8, 21, 34]) {
    const [once, again] = [await simulate({ seed, createAgent }), await simulate({ seed, createAgent })];
    expect(once.trace.length).toBeGreaterThan(20);
    expect(again.trace).toEqual(once.trace);
  }
});

describe('a flaw shows:', () => {
  it.each(flawedWorlds)('$flaw', async ({ breaks, options }) => {
    for (let seed = 1; seed <= MOST_SEEDS; seed += 1) {
      const { broken } = await simulate({ createAgent, ...options, seed, shrink: false });
      if (broken === undefined) continue;
      expect(breaks).toContain(broken.promise.split(/[ :]/)[0]);
      return;
    }
    throw new Error(`${MOST_SEEDS} seeds, and nothing shows.`);
  });
});

it(`keeps every promise over ${SEEDS} seeds`, { timeout: 1_800_000 }, () => {
  const script = path.resolve(import.meta.dirname, '../simulate.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--seeds', String(SEEDS)], {
    encoding: 'utf8',
  });
  console.log(stdout.trim().split('\n').at(-1));
  expect(stdout + stderr).toMatch(new RegExp(`^${SEEDS} seeds from 1 on, [\\d.]+ s, 0 failures$`, 'm'));
  expect(status).toBe(0);
});
