/** Random values for the property tests: anything JavaScript has, JSON, and the keys that break careless code. */
import fc from 'fast-check';
import type { JsonValue } from '../../src/json.ts';

const hostileKey = fc.constantFrom('__proto__', 'constructor', 'toString', 'toJSON', '\ud800', '', 'a.b');
const key = fc.oneof({ weight: 4, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }) }, hostileKey);

/** Any JSON value with hostile keys in it. */
export function anyJson(maxDepth = 3): fc.Arbitrary<JsonValue> {
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth, withCrossShrink: true },
      fc.oneof(
        fc.constant(null),
        fc.boolean(),
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
        fc.string({ maxLength: 6 }),
      ),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 3 }).map((entries) => Object.fromEntries(entries)),
    ),
  }));
  return value;
}

/** Whatever a tool may return: JSON, and everything that is not. */
export function anyValue(): fc.Arbitrary<unknown> {
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.oneof(
        fc.anything({ withDate: true, withTypedArray: true, withSparseArray: true, withNullPrototype: true }),
        fc.string({
          unit: fc.integer({ min: 0xd7ff, max: 0xe000 }).map((unit) => String.fromCharCode(unit)),
        }),
        fc.constantFrom<unknown>(undefined, Symbol.iterator, 1n, () => 1, new Error('x'), NaN, -0),
        fc.date({ noInvalidDate: false }),
        fc.uint8Array(),
      ),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((entries) => new Map(entries)),
      fc.array(tie('value'), { maxLength: 4 }).map((items) => new Set(items)),
    ),
  }));
  return value;
}
