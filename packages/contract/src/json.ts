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

/**
 * Sorted keys, no whitespace (RFC 8785): what hashes and comparisons are made from. An `undefined` that came along in memory is read
 * as it is stored: a member is left out, an item is `null`.
 */
export function canonicalJson(value: JsonValue): string {
  if (value === undefined) return 'null';
  if (isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
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

/** Puts every field of the one into the other; `__proto__` becomes an own key. An object of several spreads takes many times as long to make. */
export function copyFields(from: { readonly [field: string]: unknown }, into: Record<string, unknown>): void {
  for (const field in from) {
    if (field === '__proto__')
      Object.defineProperty(into, field, {
        value: from[field],
        enumerable: true,
        configurable: true,
        writable: true,
      });
    else into[field] = from[field];
  }
}

/** Found deep inside a value; `toJson` turns it into an outcome. */
class NotJson extends Error {
  constructor(readonly path: string) {
    super(`JSON cannot say ${path}`);
  }
}

function convert(value: unknown, path: string, parents: readonly object[]): JsonValue {
  switch (typeof value) {
    case 'string':
      return value.toWellFormed();
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

/** What the value's own code throws (getters, `toJSON`, proxies) is one more thing that JSON cannot say. */
function convertObject(value: object, path: string, parents: readonly object[]): JsonValue {
  if (parents.includes(value) || parents.length >= MAX_DEPTH) throw new NotJson(path);
  try {
    return convertContent(value, path, [...parents, value]);
  } catch (error) {
    throw error instanceof NotJson ? error : new NotJson(path);
  }
}

function convertContent(value: object, path: string, inside: readonly object[]): JsonValue {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Number || value instanceof String || value instanceof Boolean)
    return convert(value.valueOf(), path, inside);
  if (value instanceof BigInt) throw new NotJson(path);
  const bytes = bytesOf(value);
  if (bytes !== undefined) return { $bytes: base64(bytes) };
  if (value instanceof Map) return convertEntries(mapEntries(value, path), path, inside);
  if (value instanceof Set) return convertList([...value], path, inside);
  if (Array.isArray(value)) return convertList(value, path, inside);
  if (value instanceof Error) return convertError(value);
  const toJSON = read(value, 'toJSON', memberPath(path, 'toJSON'));
  const asJson: unknown = typeof toJSON === 'function' ? toJSON.call(value) : value;
  return asJson === value
    ? convertEntries(ownEntries(value, path), path, inside)
    : convert(asJson, path, inside);
}

/** By index, not with `map`: that would keep the holes of a sparse list. */
function convertList(list: readonly unknown[], path: string, inside: readonly object[]): JsonValue {
  return Array.from({ length: list.length }, (_hole, index) => {
    const itemPath = `${path}[${index}]`;
    return convert(read(list, index, itemPath), itemPath, inside);
  });
}

function convertEntries(
  entries: Iterable<readonly [string, unknown]>,
  path: string,
  inside: readonly object[],
): JsonValue {
  const converted: [string, JsonValue][] = [];
  for (const [key, item] of entries) {
    if (item === undefined) continue;
    converted.push([key.toWellFormed(), convert(item, memberPath(path, key), inside)]);
  }
  return objectOf(converted);
}

function convertError(error: Error): JsonValue {
  return { name: String(error.name).toWellFormed(), message: String(error.message).toWellFormed() };
}

function* ownEntries(value: object, path: string): Iterable<readonly [string, unknown]> {
  for (const key of Object.keys(value)) yield [key, read(value, key, memberPath(path, key))];
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

function read(value: object, key: string | number, path: string): unknown {
  try {
    return (value as Record<string | number, unknown>)[key];
  } catch {
    throw new NotJson(path);
  }
}

function memberPath(path: string, key: string): string {
  return path === '' ? key.toWellFormed() : `${path}.${key.toWellFormed()}`;
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

function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
