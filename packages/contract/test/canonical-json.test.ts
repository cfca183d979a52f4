/** `canonicalJson` and `jsonEqual`: hashes and comparisons do not depend on the order of keys or on the way a value came here. */
import { deepStrictEqual } from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, jsonEqual, type JsonValue } from '../src/json.ts';
import { anyJson } from './support/arbitraries.ts';

/** IEEE 754 bits to the text that RFC 8785, appendix B, gives for them. */
const numbers: readonly (readonly [string, string])[] = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555557', '333333333.33333343'],
];

describe('canonicalJson', () => {
  it('gives the text of RFC 8785 for its own example', () => {
    const value = JSON.parse(
      String.raw`{ "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false] }`,
    ) as JsonValue;
    expect(canonicalJson(value)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it('sorts keys by UTF-16 units', () => {
    const keys = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6', '10', '9', 'a', 'B', ''];
    const text = canonicalJson(Object.fromEntries(keys.map((key) => [key, 0])));
    expect(
      [...text.matchAll(/("(?:[^"\\]|\\.)*"):0/g)].map((match) => JSON.parse(match[1] ?? '') as string),
    ).toEqual([
      ...['', '\r', '1', '10', '9', 'B', 'a', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'],
    ]);
  });

  it.each(numbers)('writes the number with the bits %s as %s', (bits, text) => {
    expect(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text);
  });

  it('treats __proto__ as a key', () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"z":1,"a":2}}') as JsonValue)).toBe(
      '{"__proto__":{"a":2,"z":1},"b":1}',
    );
  });

  it('reads absent and undefined alike, as they are alike once stored', () => {
    const inMemory = { a: undefined, b: [undefined, 1] } as unknown as JsonValue;
    expect(canonicalJson(inMemory)).toBe('{"b":[null,1]}');
  });

  it('is JSON of the same value, and does not depend on the order of keys', () => {
    fc.assert(
      fc.property(anyJson(), (value) => {
        const text = canonicalJson(value);
        deepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(withKeysReversed(value))).toBe(text);
        expect(canonicalJson(JSON.parse(text) as JsonValue)).toBe(text);
      }),
    );
  });
});

describe('jsonEqual', () => {
  it('holds exactly for values that are deeply equal once stored', () => {
    fc.assert(
      fc.property(anyJson(2), anyJson(2), (a, b) => {
        expect(jsonEqual(a, withKeysReversed(a))).toBe(true);
        expect(jsonEqual(a, b)).toBe(isDeepStrictEqual(stored(a), stored(b)));
      }),
    );
  });

  it.each<readonly [string, JsonValue | undefined, JsonValue | undefined]>([
    ['a number and its text', 1, '1'],
    ['null and absent', null, undefined],
    ['an empty list and an empty object', [], {}],
    ['lists in another order', [1, 2], [2, 1]],
    ['a text and a list of it', 'a', ['a']],
    ['an object with one key more', { a: 1 }, { a: 1, b: null }],
  ])('tells %s apart', (_name, a, b) => {
    expect(jsonEqual(a, b)).toBe(false);
    expect(jsonEqual(b, a)).toBe(false);
  });
});

function stored(value: JsonValue): unknown {
  return JSON.parse(JSON.stringify(value));
}

function withKeysReversed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(withKeysReversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, withKeysReversed(member)]),
  );
}
