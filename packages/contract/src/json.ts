/** JSON as Lousho stores it: the value types, the one conversion of foreign values, and the canonical text. */

export type JsonPrimitive = string | number | boolean | null;
export type JsonValue = JsonPrimitive | readonly JsonValue[] | { readonly [key: string]: JsonValue };
export type JsonObject = { readonly [key: string]: JsonValue };

export type JsonOutcome =
  | { readonly ok: true; readonly json: JsonValue }
  /** `path` names what JSON cannot say, for example `order.items[2].total`; empty for the value itself. */
  | { readonly ok: false; readonly path: string };

/** Deeper values are refused: no tool result needs it, and a parser of another program may not take it. */
const MAX_DEPTH = 500;

/**
 * A tool's value as it is recorded: converted once, so that what was before a crash and what is after it is the same.
 * `undefined` becomes `null` (a property: left out), `Date` ISO text, bytes `{ "$bytes": base64 }`, `Map` an object, `Set` an
 * array, an `Error` its name and message, `NaN` and infinities `null`; lone surrogates are replaced by U+FFFD. `BigInt`, functions,
 * symbols, cycles and getters that throw are refused with their path. `__proto__` is a key like any other.
 */
export function toJson(value: unknown): JsonOutcome {
  try {
    return { ok: true, json: convert(value, '', []) };
  } catch (error) {
    if (error instanceof NotJson) return { ok: false, path: error.path };
    throw error;
  }
}

/** Sorted keys, no whitespace (RFC 8785): what hashes and comparisons are made from. */
export function canonicalJson(value: JsonValue): string {
  if (isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as JsonValue)}`);
  return `{${members.join(',')}}`;
}

/** Equal as JSON: the order of keys does not count. */
export function jsonEqual(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  return canonicalJson(a) === canonicalJson(b);
}

/** An object from entries whose keys a user or a model chose; `__proto__` becomes an own key. */
export function objectOf<Value>(entries: Iterable<readonly [string, Value]>): { [key: string]: Value } {
  return Object.fromEntries(entries);
}

class NotJson {
  constructor(readonly path: string) {}
}

function convert(value: unknown, path: string, parents: readonly object[]): JsonValue {
  switch (typeof value) {
    case 'string':
      return wellFormed(value);
    case 'number':
      return Number.isFinite(value) ? (Object.is(value, -0) ? 0 : value) : null;
    case 'boolean':
      return value;
    case 'undefined':
      return null;
    case 'object':
      return value === null ? null : convertObject(value, path, parents);
    default:
      throw new NotJson(path);
  }
}

function convertObject(value: object, path: string, parents: readonly object[]): JsonValue {
  if (parents.includes(value) || parents.length >= MAX_DEPTH) throw new NotJson(path);
  const inside = [...parents, value];
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Number || value instanceof String || value instanceof Boolean)
    return convert(value.valueOf(), path, inside);
  const bytes = bytesOf(value);
  if (bytes !== undefined) return { $bytes: base64(bytes) };
  if (value instanceof Map) return convertEntries(mapEntries(value, path), path, inside);
  if (value instanceof Set)
    return [...value].map((item, index) => convert(item, `${path}[${index}]`, inside));
  if (Array.isArray(value)) return value.map((item, index) => convert(item, `${path}[${index}]`, inside));
  if (value instanceof Error) return convertError(value);
  const asJson = read(value, 'toJSON', path);
  if (typeof asJson === 'function') return convert(call(asJson as () => unknown, value, path), path, inside);
  return convertEntries(ownEntries(value, path), path, inside);
}

function convertEntries(
  entries: Iterable<readonly [string, unknown]>,
  path: string,
  parents: readonly object[],
): JsonValue {
  const converted: [string, JsonValue][] = [];
  for (const [key, item] of entries) {
    if (item === undefined) continue;
    converted.push([wellFormed(key), convert(item, path === '' ? key : `${path}.${key}`, parents)]);
  }
  return objectOf(converted);
}

function convertError(error: Error): JsonValue {
  return { name: wellFormed(String(error.name)), message: wellFormed(String(error.message)) };
}

function* ownEntries(value: object, path: string): Iterable<readonly [string, unknown]> {
  for (const key of Object.keys(value)) yield [key, read(value, key, path)];
}

function* mapEntries(
  value: ReadonlyMap<unknown, unknown>,
  path: string,
): Iterable<readonly [string, unknown]> {
  for (const [key, item] of value) {
    if (typeof key !== 'string' && typeof key !== 'number' && typeof key !== 'boolean')
      throw new NotJson(path);
    yield [String(key), item];
  }
}

function read(value: object, key: string, path: string): unknown {
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    throw new NotJson(path === '' ? key : `${path}.${key}`);
  }
}

function call(method: () => unknown, value: object, path: string): unknown {
  try {
    return method.call(value);
  } catch {
    throw new NotJson(path);
  }
}

function bytesOf(value: object): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return undefined;
}

function base64(bytes: Uint8Array): string {
  let binary = '';
  // In chunks: `String.fromCharCode` takes as many arguments as the stack holds.
  for (let start = 0; start < bytes.length; start += 8_192) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 8_192));
  }
  return btoa(binary);
}

/** `String.prototype.toWellFormed` of ES2024, which every supported runtime has and the library types do not name yet. */
export function wellFormed(text: string): string {
  return (text as string & { toWellFormed(): string }).toWellFormed();
}

function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
