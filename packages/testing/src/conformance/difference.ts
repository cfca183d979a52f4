/** Where two values differ as JSON, and how a value is shown in a failure. */

export interface Difference {
  /** For example `messages[2].content`; empty when the values themselves differ. */
  readonly path: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** The first difference, or `undefined` when they are equal. A member that is `undefined` counts as absent, and `null` is a value. */
export function firstDifference(expected: unknown, actual: unknown): Difference | undefined {
  return findDifference(expected, actual, '');
}

export function sameJson(expected: unknown, actual: unknown): boolean {
  return findDifference(expected, actual, '') === undefined;
}

function findDifference(expected: unknown, actual: unknown, path: string): Difference | undefined {
  if (expected === actual || (Object.is(expected, -0) && actual === 0)) return undefined;
  const here = { path, expected, actual };
  if (!isObject(expected) || !isObject(actual)) return here;
  if (Array.isArray(expected) !== Array.isArray(actual)) return here;
  for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    const memberPath = pathOf(path, key, Array.isArray(expected));
    const difference = findDifference(ownMember(expected, key), ownMember(actual, key), memberPath);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** `value.__proto__` would be the prototype of an object that has no such member of its own. */
function ownMember(value: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function pathOf(path: string, key: string, isItem: boolean): string {
  if (isItem) return `${path}[${key}]`;
  return path === '' ? key : `${path}.${key}`;
}

/** A value as one line: JSON, cut in the middle when it is longer than that. */
export function show(value: unknown, maxLength = 400): string {
  const text = textOf(value);
  if (text.length <= maxLength) return text;
  return `${text.slice(0, maxLength - 65)} ... ${text.slice(-60)}`;
}

function textOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'function') return 'a function';
  if (value instanceof Error) {
    const { code } = value as { readonly code?: unknown };
    return `${value.name}${typeof code === 'string' ? ` ${code}` : ''}: ${value.message}`;
  }
  try {
    const json = JSON.stringify(value) as string | undefined;
    return json ?? `a ${typeof value}`;
  } catch {
    return 'a value that is no JSON';
  }
}
