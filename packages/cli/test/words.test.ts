import { expect, it } from 'vitest';
import { ago, count, duration, parseDuration, size } from '../src/terminal/words.ts';

const now = Date.parse('2026-11-30T12:00:00Z');

it.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [1_000, '1 s'],
  [59_999, '59 s'],
  [60_000, '1 min'],
  [2 * 3_600_000 + 5 * 60_000, '2 h 5 min'],
  [3 * 3_600_000, '3 h'],
  [25 * 3_600_000, '1 d 1 h'],
])('says %i ms as %s', (ms, words) => {
  expect(duration(ms)).toBe(words);
});

it('says when something was, and when it will be', () => {
  expect(ago('2026-11-30T11:57:00Z', now)).toBe('3 min ago');
  expect(ago(now + 20_000, now)).toBe('in 20 s');
  expect(ago(now, now)).toBe('just now');
  expect(ago(undefined, now)).toBe('unknown');
  expect(ago('no time', now)).toBe('no time');
});

it.each([
  [512, '512 B'],
  [3_400, '3.4 kB'],
  [12_300_000, '12 MB'],
])('says %i bytes as %s', (bytes, words) => {
  expect(size(bytes)).toBe(words);
});

it('counts', () => {
  expect(count(1, 'run')).toBe('1 run');
  expect(count(1_204, 'run')).toBe('1,204 runs');
});

it('reads times, and nothing else', () => {
  expect(parseDuration('90s')).toBe(90_000);
  expect(parseDuration('1.5h')).toBe(5_400_000);
  expect(parseDuration('30d')).toBe(30 * 86_400_000);
  for (const text of ['', '30', 'd', '-1d', '1y', '1d 2h']) expect(parseDuration(text)).toBeUndefined();
});
