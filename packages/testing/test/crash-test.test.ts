import { expect, it } from 'vitest';
import { crashTest } from '../src/crash.ts';
import { workerAgent } from './fixtures.ts';

const input = 'Order 7, please.';

it('drives an agent through every crash, approving what it asks', async () => {
  const results: string[] = [];
  const report = await crashTest({
    agent: (world) => workerAgent(world, { gated: true }),
    input,
    check({ result, effects }) {
      results.push(result.finishReason);
      expect(effects.get('charge') ?? 0).toBeLessThanOrEqual(1);
    },
  });
  expect(report.failures).toEqual([]);
  expect(report.points).toBeGreaterThan(20);
  expect(results).toHaveLength(report.points + 1);
  expect(new Set(results)).toEqual(new Set(['stop']));
});

it('decides as it is told', async () => {
  const asked = new Set<string>();
  await crashTest({
    agent: async (world) => workerAgent(world, { gated: true }),
    input,
    decide({ toolName }) {
      asked.add(toolName);
      return { approved: false };
    },
    check({ effects }) {
      expect(effects.has('charge')).toBe(false);
    },
  });
  expect([...asked]).toEqual(['charge']);
});

it('rejects with the crash points that broke a promise', async () => {
  const testing = crashTest({
    agent: (world) => workerAgent(world, { bug: 'calls again what is recorded' }),
    input,
  });
  await expect(testing).rejects.toThrow(
    /^\d+ of 22 crash points broke a promise:\n {2}after saveIfLeased#2: /,
  );
});

it('rejects with what the check of a crash point throws', async () => {
  const testing = crashTest({
    agent: (world) => workerAgent(world),
    input,
    check: ({ effects }) => expect(effects.get('ship')).toBe(1),
  });
  await expect(testing).rejects.toThrow(
    /^2 of 22 crash points broke a promise:\n {2}after effect ship#1: .*\n {2}before saveIfLeased#4: The check failed/,
  );
});
