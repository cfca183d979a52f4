/** A tool's input from any library becomes the JSON Schema that a model reads, or is refused with the place that cannot be said. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  ConfigurationError,
  inputJsonSchema,
  validateArgs,
  type InputSchema,
  type JsonObject,
  type StandardSchema,
} from '../src/index.ts';

/** A library that follows Standard Schema and nothing else. */
function standardSchema(
  over: Partial<StandardSchema['~standard']> & { readonly jsonSchema?: unknown } = {},
): StandardSchema {
  return {
    '~standard': { version: 1, vendor: 'handmade', validate: (value) => ({ value }), ...over },
  };
}

/** As `standardSchema`, callable as ArkType's types are. */
function callableSchema(jsonSchema: JsonObject): StandardSchema {
  const { '~standard': standard } = standardSchema({ jsonSchema: { input: () => jsonSchema } });
  return Object.assign(() => undefined, { '~standard': standard });
}

function refusal(input: unknown): unknown {
  try {
    return inputJsonSchema(input as InputSchema, 'tools.pay.input');
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return [(error.details as { option: string }).option, (error.details as { want: string }).want];
  }
}

describe('inputJsonSchema', () => {
  it('reads Zod, as the model has to write it and not as the tool gets it', () => {
    const input = z.object({
      cents: z.number().int().describe('In cents.'),
      when: z.iso.datetime().transform((text) => new Date(text)),
      tags: z.array(z.string()).default([]),
      note: z.string().optional(),
    });
    const schema = inputJsonSchema(input, 'o');
    expect(schema).toMatchObject({
      type: 'object',
      properties: {
        cents: { type: 'integer', description: 'In cents.' },
        when: { type: 'string', format: 'date-time' },
        tags: { type: 'array', items: { type: 'string' } },
        note: { type: 'string' },
      },
      required: ['cents', 'when'],
    });
    expect(Object.keys(schema)).not.toContain('$schema');
    expect(Reflect.ownKeys(schema)).not.toContain('~standard');
    expect(JSON.parse(JSON.stringify(schema))).toStrictEqual(schema);
  });

  it('takes Zod schemas that offer no conversion of their own', () => {
    const input = z.object({ a: z.string() });
    const bare = Object.create(input, {
      '~standard': { value: { ...input['~standard'], jsonSchema: undefined } },
    }) as typeof input;
    expect(inputJsonSchema(bare, 'o')).toMatchObject({
      type: 'object',
      properties: { a: { type: 'string' } },
    });
  });

  it('takes what another library converts, in the dialect it is asked for', () => {
    const asked: unknown[] = [];
    const jsonSchema = {
      input(options: unknown) {
        asked.push(options);
        return { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: {} };
      },
    };
    expect(inputJsonSchema(standardSchema({ jsonSchema }), 'o')).toEqual({ type: 'object', properties: {} });
    expect(asked).toEqual([{ target: 'draft-07' }]);
    expect(inputJsonSchema(callableSchema({ type: 'object' }), 'o')).toEqual({ type: 'object' });
  });

  it('takes plain JSON Schema as it is, without sharing it', () => {
    const plain = { type: 'object', properties: { a: { enum: ['x'] } }, required: ['a'] } as const;
    const schema = inputJsonSchema(plain, 'o');
    expect(schema).toEqual(plain);
    expect(schema.properties).not.toBe(plain.properties);
  });

  it.each<readonly [string, unknown]>([
    ['an empty schema', {}],
    ['alternatives that are objects', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])],
    [
      'a choice by a field',
      z.discriminatedUnion('k', [z.object({ k: z.literal('a') }), z.object({ k: z.literal('b') })]),
    ],
    ['a record', z.record(z.string(), z.number())],
    ['a reference', { $ref: '#/definitions/a', definitions: { a: { type: 'object' } } }],
  ])('takes %s', (_name, input) => {
    expect(inputJsonSchema(input as InputSchema, 'o')).toBeTypeOf('object');
  });

  it.each<readonly [string, unknown, string, string]>([
    ['a Date in Zod', z.object({ order: z.object({ when: z.date() }) }), '.order.when', 'Date'],
    [
      'a BigInt in a list in Zod',
      z.object({ items: z.array(z.object({ n: z.bigint() })) }),
      '.items[].n',
      'BigInt',
    ],
    ['a Date in an alternative in Zod', z.object({ at: z.union([z.string(), z.date()]) }), '.at', 'Date'],
    [
      'a Date under a key called properties',
      z.object({ properties: z.object({ items: z.date() }) }),
      '.properties.items',
      'Date',
    ],
    ['a Zod Date itself', z.date(), '', 'Date'],
    ['two Zod schemas of one name', sameNameTwice(), '', 'uplicate'],
    ['a text', z.string(), '', 'the schema of an object'],
    ['a text or nothing', z.string().nullable(), '', 'the schema of an object'],
    ['an object or nothing', z.object({}).nullable(), '', 'the schema of an object'],
    [
      'alternatives of which one is a number',
      z.union([z.object({}), z.number()]),
      '',
      'the schema of an object',
    ],
    ['a list', { type: 'array' }, '', 'the schema of an object'],
    ['the fields of a Zod object alone', { city: z.string() }, '', 'z.object({ ... })'],
    ['fields alone, one named like a keyword', { title: z.string() }, '', 'z.object({ ... })'],
    ['names and types', { city: 'string' }, '', 'a schema of the whole object'],
    ['several types', { type: ['object', 'null'] }, '', 'the schema of an object'],
    ['a library that gives no JSON Schema', standardSchema(), '', 'handmade gives no JSON Schema'],
    [
      'a Zod of old, which has no conversion',
      standardSchema({ vendor: 'zod' }),
      '',
      'zod gives no JSON Schema',
    ],
    ['a conversion that throws', standardSchema({ jsonSchema: { input: fail } }), '', 'cannot be said'],
    [
      'a conversion that throws a text',
      standardSchema({ jsonSchema: { input: failWithText } }),
      '',
      'no way',
    ],
    ['a conversion that gives no schema', standardSchema({ jsonSchema: { input: () => 5 } }), '', 'a schema'],
    [
      'a function in plain JSON Schema',
      { type: 'object', properties: { a: { check: fail } } },
      '.properties.a.check',
      'JSON',
    ],
    ['a function', fail, '', 'JSON'],
    ['a text instead of a schema', 'object', '', 'a schema'],
    ['a list instead of a schema', [], '', 'a schema'],
  ])('refuses %s and names the place', (_name, input, place, want) => {
    expect(refusal(input)).toEqual([`tools.pay.input${place}`, expect.stringContaining(want)]);
  });

  it('keeps the error of the library as the cause', () => {
    expect(() => inputJsonSchema(standardSchema({ jsonSchema: { input: fail } }), 'o')).toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ message: 'cannot be said' }) }),
    );
  });
});

describe('validateArgs', () => {
  const input = z.object({
    items: z.array(z.object({ price: z.number() })),
    at: z.string().transform((t) => t.length),
  });

  it('gives what the schema makes of the arguments', async () => {
    expect(await validateArgs(input, { items: [], at: 'abc', other: 1 })).toEqual({
      ok: true,
      args: { items: [], at: 3 },
    });
  });

  it('says what is wrong and where', async () => {
    const outcome = await validateArgs(input, { items: [{ price: 1 }, { price: 'x' }] });
    expect(outcome).toEqual({
      ok: false,
      issues: [
        { path: 'items[1].price', message: expect.any(String) },
        { path: 'at', message: expect.any(String) },
      ],
    });
    expect(await validateArgs(input, 5)).toMatchObject({ ok: false, issues: [{ path: '' }] });
  });

  it('takes paths of keys and of objects, and validators that are asynchronous', async () => {
    const path = [{ key: 'a' }, 0, { key: 1 }, 'b c', { key: Symbol('s') }];
    const slow = standardSchema({
      validate: async () => ({ issues: [{ message: 'no', path }, { message: 'never' }] }),
    });
    expect(await validateArgs(slow, {})).toEqual({
      ok: false,
      issues: [
        { path: 'a[0][1].b c.Symbol(s)', message: 'no' },
        { path: '', message: 'never' },
      ],
    });
  });

  it('takes every object for a plain JSON Schema, and only objects', async () => {
    const plain = { type: 'object', required: ['a'] } as const;
    const args = { b: 1 };
    const outcome = await validateArgs(plain, args);
    expect(outcome.ok && outcome.args).toBe(args);
    for (const other of [null, [], 'x', 5, undefined])
      expect(await validateArgs(plain, other)).toEqual({
        ok: false,
        issues: [{ path: '', message: 'The arguments must be an object.' }],
      });
  });

  it('lets a validator that breaks reject', async () => {
    await expect(validateArgs(standardSchema({ validate: fail }), {})).rejects.toThrow('cannot be said');
  });
});

function sameNameTwice(): z.ZodType {
  const named = { id: 'tool-schema.test' };
  return z.object({ a: z.string().meta(named), b: z.number().meta(named) });
}

function fail(): never {
  throw new Error('cannot be said');
}

function failWithText(): never {
  // eslint-disable-next-line @typescript-eslint/only-throw-error -- libraries do.
  throw 'no way';
}
