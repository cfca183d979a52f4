/** A tool's `input`, whatever library it comes from, as the JSON Schema that models and fingerprints read; and its validation. */
import { toJSONSchema, type core } from 'zod';
import { ConfigurationError } from './errors.ts';
import { toJson, type JsonObject, type JsonValue } from './json.ts';
import type { InputSchema, StandardSchema } from './tool.ts';

export interface ArgsIssue {
  /** `items[0].price`; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}
export type ArgsOutcome =
  | { readonly ok: true; readonly args: unknown }
  | { readonly ok: false; readonly issues: readonly ArgsIssue[] };

/** Standard JSON Schema 1.1 (standardschema.dev/json-schema), as Zod and ArkType have it. */
interface WithJsonSchema {
  readonly jsonSchema?: { input(options: { target: 'draft-07' }): unknown };
}

/** @throws synchronously LOUSHO_CONFIG_INVALID with the path of what JSON Schema cannot say. */
export function inputJsonSchema(input: InputSchema, option: string): JsonObject {
  if (!isStandardSchema(input)) return requireObjectSchema(input, option);
  try {
    return requireObjectSchema(convertStandard(input), option);
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    const want = `a schema that JSON Schema can say (${error instanceof Error ? error.message : String(error)})`;
    const where = optionAt(option, unsayablePath(input));
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option: where, want }, { cause: error });
  }
}

/** Checks a call's arguments. A plain JSON Schema describes them to the model and takes every object. */
export async function validateArgs(input: InputSchema, args: unknown): Promise<ArgsOutcome> {
  return validateArgsNow(input, args);
}

/** The same; a promise only when the schema itself waits for something. @throws also synchronously what the schema's own check throws */
export function validateArgsNow(input: InputSchema, args: unknown): ArgsOutcome | Promise<ArgsOutcome> {
  if (!isStandardSchema(input)) {
    return isPlainObject(args)
      ? { ok: true, args }
      : { ok: false, issues: [{ path: '', message: 'The arguments must be an object.' }] };
  }
  const checking = input['~standard'].validate(args);
  return 'then' in checking ? Promise.resolve(checking).then(outcomeOf) : outcomeOf(checking);
}

type Checked = Awaited<ReturnType<StandardSchema['~standard']['validate']>>;

function outcomeOf(checked: Checked): ArgsOutcome {
  if (checked.issues === undefined) return { ok: true, args: checked.value };
  return {
    ok: false,
    issues: checked.issues.map((issue) => ({ path: pathText(issue.path ?? []), message: issue.message })),
  };
}

function isStandardSchema(input: InputSchema): input is StandardSchema {
  return (
    (typeof input === 'object' || typeof input === 'function') &&
    input !== null &&
    '~standard' in input &&
    input['~standard'] !== undefined
  );
}

function convertStandard(input: StandardSchema): unknown {
  const standard = input['~standard'] as StandardSchema['~standard'] & WithJsonSchema;
  if (standard.jsonSchema !== undefined) return standard.jsonSchema.input({ target: 'draft-07' });
  if (isZod(input)) return toJSONSchema(input, { io: 'input', target: 'draft-7' });
  throw new Error(
    `${standard.vendor} gives no JSON Schema; wrap the schema with its own converter, or give a plain JSON Schema`,
  );
}

/** Where Zod meets what it cannot convert; its own error does not say. Empty when it is not known. */
function unsayablePath(input: StandardSchema): string {
  let found: readonly PropertyKey[] = [];
  if (!isZod(input)) return '';
  try {
    toJSONSchema(input, {
      io: 'input',
      target: 'draft-7',
      unrepresentable({ path }) {
        if (found.length === 0) found = path;
        return 'any';
      },
    });
  } catch {
    // Zod refuses the schema for another reason, which has no place in it.
    return '';
  }
  return placeOf(found);
}

/** `order.items[]` for `properties`, `order`, `properties`, `items`, `items`. */
function placeOf(schemaPath: readonly PropertyKey[]): string {
  const steps = schemaPath[Symbol.iterator]();
  let place = '';
  for (const step of steps) {
    if (step === 'items') place += '[]';
    if (step === 'properties') place += `${place === '' ? '' : '.'}${String(steps.next().value)}`;
  }
  return place;
}

function isZod(input: StandardSchema): input is StandardSchema & core.$ZodType {
  return input['~standard'].vendor === 'zod' && '_zod' in input;
}

function requireObjectSchema(schema: unknown, option: string): JsonObject {
  if (isListOfFields(schema))
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option,
      got: schema,
      want: 'a schema of the whole object: with Zod z.object({ ... }) around these fields',
    });
  const converted = toJson(schema);
  if (!converted.ok)
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option: optionAt(option, converted.path),
      want: 'JSON',
    });
  if (!isPlainObject(converted.json))
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got: schema, want: 'a schema' });
  const { $schema: _dialect, ...body } = converted.json;
  const type = otherType(body);
  if (type !== undefined)
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', {
      option,
      got: type,
      want: 'the schema of an object',
    });
  return body;
}

/** What a JSON Schema of an object says something with. */
const KEYWORDS: ReadonlySet<string> = new Set([
  ...['type', 'properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames'],
  ...['minProperties', 'maxProperties', 'dependentRequired', 'dependentSchemas', 'unevaluatedProperties'],
  ...[
    '$ref',
    '$defs',
    'definitions',
    'anyOf',
    'oneOf',
    'allOf',
    'not',
    'if',
    'then',
    'else',
    'const',
    'enum',
  ],
  ...['title', 'description', 'default', 'examples', '$schema', '$id', '$comment'],
]);

/** `{ city: z.string() }` or `{ city: 'string' }` in place of a schema: it would let every object through. */
function isListOfFields(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  const fields = Object.entries(schema);
  const isAnySchema = fields.some(
    ([, value]) => typeof value === 'object' && value !== null && '~standard' in value,
  );
  return isAnySchema || (fields.length > 0 && !fields.some(([name]) => KEYWORDS.has(name)));
}

/** The type that the schema gives, or one of its alternatives does, when that is no object. */
function otherType(schema: JsonValue): JsonValue | undefined {
  if (!isPlainObject(schema)) return undefined;
  const { type, anyOf = [], oneOf = [] } = schema;
  if (type !== undefined) return type === 'object' ? undefined : type;
  return [anyOf, oneOf]
    .flat()
    .map(otherType)
    .find((found) => found !== undefined);
}

function optionAt(option: string, path: string): string {
  return path === '' ? option : `${option}.${path}`;
}

function pathText(path: readonly (PropertyKey | { readonly key: PropertyKey })[]): string {
  let text = '';
  for (const part of path) {
    const key = typeof part === 'object' ? part.key : part;
    text += typeof key === 'number' ? `[${key}]` : text === '' ? String(key) : `.${String(key)}`;
  }
  return text;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
