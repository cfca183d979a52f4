/** Frozen values are shared, all others are copied; lists that only grow know what they began with. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  appendFrozen,
  deepFreeze,
  extendsList,
  freezeFresh,
  freezeStored,
  frozenCopy,
  isDeepFrozen,
} from '../src/index.ts';
import { anyJson } from './support/arbitraries.ts';

describe('deepFreeze', () => {
  it('freezes everything inside, in place', () => {
    fc.assert(
      fc.property(anyJson(), (value) => {
        expect(deepFreeze(value)).toBe(value);
        expect(everyPartIsFrozen(value)).toBe(true);
        expect(isDeepFrozen(value)).toBe(true);
      }),
    );
  });

  it('freezes what is inside of a value that was frozen on the surface only', () => {
    const inner = { a: 1 };
    const outer = Object.freeze({ inner });
    deepFreeze(outer);
    expect(Object.isFrozen(inner)).toBe(true);
  });

  it('ends for a cycle', () => {
    const cyclic: { self?: unknown } = {};
    cyclic.self = [cyclic];
    deepFreeze(cyclic);
    expect(isDeepFrozen(cyclic)).toBe(true);
  });

  it.each([undefined, null, 1, 'x', true])('gives %s back', (value) => {
    expect(deepFreeze(value)).toBe(value);
    expect(isDeepFrozen(value)).toBe(true);
  });
});

describe('freezeStored', () => {
  it('freezes everything in place, the messages by themselves too', () => {
    const stored = { messages: [{ text: 'a' }], other: { b: 1 } };
    expect(freezeStored(stored)).toBe(stored);
    expect(Object.isFrozen(stored.messages[0])).toBe(true);
    expect(Object.isFrozen(stored.other)).toBe(true);
    expect(isDeepFrozen(stored.messages)).toBe(true);
  });
});

describe('freezeFresh', () => {
  it('freezes what is new in place, to its depth, and does not look into what is frozen', () => {
    const known = Object.freeze({ inner: { a: 1 } });
    const fresh = { known, list: [{ b: [2] }] };
    expect(freezeFresh(fresh)).toBe(fresh);
    expect(isDeepFrozen(fresh.list)).toBe(true);
    expect(Object.isFrozen(fresh)).toBe(true);
    expect(Object.isFrozen(known.inner)).toBe(false);
    expect(isDeepFrozen(fresh)).toBe(false);
  });
});

describe('isDeepFrozen', () => {
  it.each<readonly [string, () => unknown]>([
    ['an ordinary object', () => ({})],
    ['an ordinary list', () => []],
    ['a frozen object around an ordinary one', () => Object.freeze({ a: {} })],
    ['a frozen list around an ordinary one', () => Object.freeze([Object.freeze([]), [1]])],
    ['a sealed object', () => Object.seal({ a: 1 })],
    [
      'a frozen object with an ordinary __proto__ key',
      () => Object.freeze(JSON.parse('{"__proto__":{}}') as object),
    ],
  ])('is false for %s', (_name, make) => {
    const value = make();
    expect(isDeepFrozen(value)).toBe(false);
    expect(isDeepFrozen(value)).toBe(false);
  });

  it('sees a freeze that came after the first look', () => {
    const inner = { a: 1 };
    const outer = Object.freeze({ inner });
    expect(isDeepFrozen(outer)).toBe(false);
    Object.freeze(inner);
    expect(isDeepFrozen(outer)).toBe(true);
  });

  it('finds values frozen by others', () => {
    expect(isDeepFrozen(Object.freeze([Object.freeze({ a: Object.freeze([]) })]))).toBe(true);
  });
});

describe('frozenCopy', () => {
  it('shares what is frozen', () => {
    const value = deepFreeze({ a: [1] });
    expect(frozenCopy(value)).toBe(value);
  });

  it('copies what is not, deeply frozen and equal as JSON, and leaves the original alone', () => {
    fc.assert(
      fc.property(anyJson(), (value) => {
        const before = JSON.stringify(value);
        const copy = frozenCopy(value);
        expect(JSON.stringify(copy)).toBe(before);
        expect(isDeepFrozen(copy)).toBe(true);
        if (typeof value === 'object' && value !== null) {
          expect(copy).not.toBe(value);
          expect(Object.isFrozen(value)).toBe(false);
        }
      }),
    );
  });

  it('is not reached by a later change of the original', () => {
    const value = { list: [{ text: 'before' }] };
    const copy = frozenCopy(value);
    value.list[0]!.text = 'after';
    expect(copy).toEqual({ list: [{ text: 'before' }] });
  });
});

describe('appendFrozen', () => {
  it('gives a longer list, frozen with all that is in it, and leaves the old one as it was', () => {
    const list = deepFreeze([{ a: 1 }]);
    const item = { b: { c: 2 } };
    const grown = appendFrozen<object>(list, [item]);
    expect(grown).toEqual([{ a: 1 }, { b: { c: 2 } }]);
    expect(isDeepFrozen(grown)).toBe(true);
    expect(Object.isFrozen(item.b)).toBe(true);
    expect(list).toHaveLength(1);
    expect(grown[0]).toBe(list[0]);
  });

  it('gives the same list for nothing more', () => {
    const list = deepFreeze([1]);
    expect(appendFrozen(list, [])).toBe(list);
  });

  it('takes items that are lists as items', () => {
    expect(appendFrozen<readonly number[]>([[1]], [[2, 3]])).toEqual([[1], [2, 3]]);
  });
});

describe('extendsList', () => {
  it('knows every list on the way to a list as its prefix', () => {
    const lists: (readonly number[])[] = [deepFreeze<number[]>([])];
    for (let n = 1; n <= 5; n += 1) lists.push(appendFrozen(lists.at(-1)!, [n, n]));
    for (const [i, base] of lists.entries())
      for (const [j, list] of lists.entries()) expect(extendsList(base, list)).toBe(i <= j);
  });

  it('knows the first line of a list that grew twice, and nothing across the two', () => {
    const trunk = appendFrozen(deepFreeze<string[]>([]), ['a']);
    const first = appendFrozen(trunk, ['b']);
    const second = appendFrozen(trunk, ['c', 'd']);
    expect(extendsList(trunk, first)).toBe(true);
    expect(extendsList(first, second)).toBe(false);
    expect(extendsList(second, first)).toBe(false);
    expect(extendsList(second, appendFrozen(second, ['e']))).toBe(true);
    expect(extendsList(first, appendFrozen(second, ['e']))).toBe(false);
  });

  it('proves nothing about a list that was changed after it grew', () => {
    const list = ['a'];
    const grown = appendFrozen(list, ['b']);
    list[0] = 'changed';
    expect(extendsList(list, grown)).toBe(false);
    const items = Object.freeze([{ text: 'a' }]);
    const grownItems = appendFrozen(items, [{ text: 'b' }]);
    items[0]!.text = 'changed';
    expect(extendsList(items, grownItems)).toBe(false);
  });

  it('never says so without it being true, however lists branch', () => {
    /** Each command grows one of the lists there are, by up to three items. */
    const command = fc.record({
      from: fc.nat(),
      items: fc.array(fc.integer({ min: 0, max: 1 }), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(command, { maxLength: 30 }), fc.boolean(), (commands, frozenStart) => {
        const lists: (readonly number[])[] = [frozenStart ? deepFreeze<number[]>([]) : []];
        for (const { from, items } of commands) {
          const list = lists[from % lists.length]!;
          const grown = appendFrozen(list, items);
          lists.push(grown);
          if (isDeepFrozen(list)) expect(grown === list || isDeepFrozen(grown)).toBe(true);
        }
        for (const base of lists)
          for (const list of lists)
            if (extendsList(base, list)) expect(list.slice(0, base.length)).toEqual(base);
      }),
      { numRuns: 300 },
    );
  });

  it('knows the newest line at once, also when every list of it has grown a second time', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 20 }), (branches) => {
        let trunk: readonly number[] = deepFreeze<number[]>([]);
        for (const [index, branch] of branches.entries()) {
          const next = appendFrozen(trunk, [index]);
          if (branch) appendFrozen(trunk, [-1]);
          expect(extendsList(trunk, next)).toBe(true);
          trunk = next;
        }
      }),
    );
  });
});

function everyPartIsFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return (
    Object.isFrozen(value) &&
    Reflect.ownKeys(value).every((key) => everyPartIsFrozen(Reflect.get(value, key)))
  );
}
