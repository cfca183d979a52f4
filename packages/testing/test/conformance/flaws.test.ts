/** Each flaw is seen by exactly the rules that it is listed with, and each rule sees a flaw. */
import { describe, expect, it } from 'vitest';
import { check, conformanceRules, type StoreSubject } from '../../src/conformance.ts';
import { eventualSubject } from './eventual-store.ts';
import { flaws, weakFlaws } from './flaws.ts';
import { plainSubject } from './subjects.ts';

async function brokenBy(subject: StoreSubject): Promise<readonly string[]> {
  const { results } = await check(subject);
  return results.filter(({ outcome }) => outcome === 'failed').map(({ rule }) => rule.id);
}

describe('the suite sees a store that', () => {
  it.each(flaws)('$name', { timeout: 30_000 }, async ({ name, breaks, plant }) => {
    expect(await brokenBy(plainSubject(name, plant))).toEqual(breaks);
  });
});

describe('the suite sees an eventual store that', () => {
  it.each(weakFlaws)('$name', { timeout: 60_000 }, async ({ name, breaks, plant, order }) => {
    expect(await brokenBy(eventualSubject(name, plant, order))).toEqual(breaks);
  });
});

it('has a flaw for every rule', () => {
  const broken = new Set([...flaws, ...weakFlaws].flatMap(({ breaks }) => breaks));
  expect(conformanceRules.map(({ id }) => id).filter((id) => !broken.has(id))).toEqual([]);
});

it('has a flaw for every rule that no other rule of a promise sees', () => {
  // Of the rules that only ever fail together with others: what they add is a better message.
  const alone = new Set(
    flaws.filter(({ breaks }) => breaks.filter(isPromise).length === 1).flatMap(({ breaks }) => breaks),
  );
  const never = conformanceRules
    .map(({ id }) => id)
    .filter((id) => isPromise(id) && !id.startsWith('W') && !alone.has(id));
  expect(never).toEqual([]);
});

function isPromise(id: string): boolean {
  return !id.startsWith('model/');
}
