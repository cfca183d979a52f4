/** `toJson`: what a tool returns is recorded once, and means the same before a crash and after it. */
import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { toJson, objectOf, type JsonValue } from '../src/json.ts';
import { anyValue } from './support/arbitraries.ts';

class Point {
  constructor(
    readonly x: number,
    readonly y: number,
  ) {}
  get length(): number {
    return Math.hypot(this.x, this.y);
  }
}
class Money {
  constructor(
    readonly cents: number,
    private readonly printed = false,
  ) {}
  toJSON(): unknown {
    return this.printed ? `${this.cents}` : { cents: this.cents, currency: 'EUR' };
  }
}
class SelfPrinting {
  readonly total = 3;
  toJSON(): this {
    return this;
  }
}

const shared = { city: 'Oslo' };
const bytes = new Uint8Array([0, 1, 2, 253, 254, 255]);
/** Named by string only: a literal would set the prototype. */
const hostile: unknown = JSON.parse(
  '{"__proto__":{"polluted":true},"constructor":{"prototype":1},"toString":"text"}',
);

const accepted: readonly (readonly [string, unknown, JsonValue])[] = [
  ['undefined', undefined, null],
  ['null', null, null],
  ['a text', 'x', 'x'],
  ['true', true, true],
  ['a number', 1.5, 1.5],
  ['NaN', NaN, null],
  ['Infinity', [Infinity, -Infinity], [null, null]],
  ['minus zero', -0, 0],
  ['an undefined property', { a: undefined, b: 1 }, { b: 1 }],
  ['an undefined item', [undefined, 1], [null, 1]],
  ['a sparse list', Object.assign(Array<number>(3), { 1: 7 }), [null, 7, null]],
  ['a Date', new Date(Date.UTC(2024, 1, 29)), '2024-02-29T00:00:00.000Z'],
  ['an invalid Date', { at: new Date(NaN) }, { at: null }],
  [
    'a Map',
    new Map<unknown, unknown>([
      ['a', 1],
      [2, 'b'],
      [true, new Map([['c', null]])],
    ]),
    { a: 1, 2: 'b', true: { c: null } },
  ],
  ['a Map with an undefined value', new Map([['a', undefined]]), {}],
  ['a Set', new Set([1, new Set(['x'])]), [1, ['x']]],
  ['an Error', new TypeError('bad'), { name: 'TypeError', message: 'bad' }],
  ['a nested Error', { cause: new Error('x') }, { cause: { name: 'Error', message: 'x' } }],
  ['a class instance', new Point(3, 4), { x: 3, y: 4 }],
  ['toJSON', { price: new Money(5) }, { price: { cents: 5, currency: 'EUR' } }],
  ['toJSON that gives a text', new Money(5, true), '5'],
  ['toJSON that gives the object itself', new SelfPrinting(), { total: 3 }],
  ['boxed primitives', [Object(1), Object('x'), Object(false), Object(NaN)], [1, 'x', false, null]],
  ['a Buffer', Buffer.from('hello'), { $bytes: 'aGVsbG8=' }],
  ['a Uint8Array', bytes, { $bytes: 'AAEC/f7/' }],
  ['a view with an offset', bytes.subarray(1, 3), { $bytes: 'AQI=' }],
  ['an ArrayBuffer', bytes.buffer.slice(0, 2), { $bytes: 'AAE=' }],
  ['no bytes', new Uint8Array(0), { $bytes: '' }],
  ['a DataView', new DataView(bytes.buffer, 3, 1), { $bytes: '/Q==' }],
  ['wider items, as their bytes', new Uint16Array([1]), { $bytes: 'AQA=' }],
  ['a lone surrogate in a value', 'a\ud800b', 'a\ufffdb'],
  ['a lone surrogate in a key', { '\udc00': 1 }, { '\ufffd': 1 }],
  ['a surrogate pair', '\ud83d\ude00', '\ud83d\ude00'],
  ['the same object twice', { from: shared, to: shared }, { from: { city: 'Oslo' }, to: { city: 'Oslo' } }],
  ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
  [
    'an object of another realm',
    runInNewContext('({ at: new Date(0), list: [1,,2] })'),
    {
      at: '1970-01-01T00:00:00.000Z',
      list: [1, null, 2],
    },
  ],
  ['a list that also has properties', Object.assign([1], { total: 1 }), [1]],
  ['symbol keys', { [Symbol('s')]: 1, a: 2 }, { a: 2 }],
];

const unreadable: object = {
  get total(): number {
    throw new Error('not loaded');
  },
};
const cyclic: Record<string, unknown> = { name: 'a' };
cyclic.child = { parent: cyclic };
const cyclicMap = new Map<string, unknown>();
cyclicMap.set('self', [cyclicMap]);
const revoked = Proxy.revocable({}, {});
revoked.revoke();
const transferred = new ArrayBuffer(8);
structuredClone(transferred, { transfer: [transferred] });

const refused: readonly (readonly [string, unknown, string])[] = [
  ['a BigInt', 1n, ''],
  ['a nested BigInt', { order: { items: [{}, {}, { total: 5n }] } }, 'order.items[2].total'],
  ['a boxed BigInt', { n: Object(1n) as unknown }, 'n'],
  ['a function', { run: () => 1 }, 'run'],
  ['a symbol', [Symbol('x')], '[0]'],
  ['a cycle', cyclic, 'child.parent'],
  ['a cycle through a Map', cyclicMap, 'self[0]'],
  ['a getter that throws', { order: unreadable }, 'order.total'],
  ['a getter that throws in a list', Object.defineProperty([1], 0, { get: fail, enumerable: true }), '[0]'],
  ['toJSON that throws', { a: { toJSON: fail } }, 'a'],
  ['toJSON that gives a BigInt', { a: { toJSON: () => 1n } }, 'a'],
  ['a toJSON getter that throws', { a: Object.defineProperty({}, 'toJSON', { get: fail }) }, 'a.toJSON'],
  ['an Error whose message throws', [Object.defineProperty(new Error(), 'message', { get: fail })], '[0]'],
  ['a Map with object keys', { m: new Map([[{}, 1]]) }, 'm'],
  ['a revoked proxy', { p: revoked.proxy }, 'p'],
  ['an ArrayBuffer that was handed over', { b: transferred }, 'b'],
  ['a BigInt under a key with a lone surrogate', { 'a\ud800': 1n }, 'a\ufffd'],
  ['a function in a Set', { s: new Set([1, () => 1]) }, 's[1]'],
  ['a BigInt in a Map', { m: new Map([['k', 1n]]) }, 'm.k'],
];

function fail(): never {
  throw new Error('thrown by the value');
}

describe('toJson', () => {
  it.each(accepted)('records %s', (_name, value, json) => {
    expect(toJson(value)).toStrictEqual({ ok: true, json });
  });

  it.each(refused)('refuses %s and names where it is', (_name, value, path) => {
    expect(toJson(value)).toEqual({ ok: false, path });
  });

  it('keeps __proto__, constructor and toString as plain keys and pollutes nothing', () => {
    const outcome = toJson(hostile);
    expect(outcome.ok && Object.keys(outcome.json as object)).toEqual([
      '__proto__',
      'constructor',
      'toString',
    ]);
    expect(JSON.stringify(outcome.ok && outcome.json)).toBe(JSON.stringify(hostile));
    expect('polluted' in {}).toBe(false);
    const fromMap = toJson(new Map([['__proto__', { polluted: true }]]));
    expect(JSON.stringify(fromMap.ok && fromMap.json)).toBe('{"__proto__":{"polluted":true}}');
  });

  it('takes values 500 deep and refuses deeper ones instead of running out of stack', () => {
    const nested = (depth: number): unknown => {
      let value: unknown = [];
      for (let level = 1; level < depth; level += 1) value = [value];
      return value;
    };
    expect(toJson(nested(500)).ok).toBe(true);
    expect(toJson(nested(501))).toEqual({ ok: false, path: '[0]'.repeat(500) });
    expect(toJson(nested(50_000)).ok).toBe(false);
    const endless = (): object => ({ toJSON: endless });
    expect(toJson(endless()).ok).toBe(false);
  });

  it('takes bytes of any size', () => {
    const large = new Uint8Array(300_000).map((_byte, index) => index % 251);
    expect(toJson(large)).toEqual({ ok: true, json: { $bytes: Buffer.from(large).toString('base64') } });
  });

  it('never throws, and gives JSON that survives the round trip unchanged and is a fixed point', () => {
    fc.assert(
      fc.property(anyValue(), (value) => {
        const outcome = toJson(value);
        if (!outcome.ok) return;
        const text = JSON.stringify(outcome.json);
        // Not `toStrictEqual`: it stumbles over a key called `constructor`.
        deepStrictEqual(JSON.parse(text), outcome.json);
        deepStrictEqual(toJson(outcome.json), outcome);
        expect(text.isWellFormed()).toBe(true);
        expect(text).not.toMatch(/\\ud[89a-f]/);
      }),
      { numRuns: 1_000 },
    );
  });

  it('changes nothing about what is JSON already, apart from minus zero', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        deepStrictEqual(toJson(value), { ok: true, json: JSON.parse(JSON.stringify(value)) });
      }),
    );
  });

  it('shares nothing with the value: a later change of it does not reach what is recorded', () => {
    const value = { list: [{ a: 1 }] };
    const outcome = toJson(value);
    value.list.push({ a: 2 });
    expect(outcome).toEqual({ ok: true, json: { list: [{ a: 1 }] } });
  });
});

describe('objectOf', () => {
  it('makes an own key of every name', () => {
    const made = objectOf([
      ['__proto__', 1],
      ['a', 2],
    ]);
    expect(Object.keys(made)).toEqual(['__proto__', 'a']);
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype);
  });
});
