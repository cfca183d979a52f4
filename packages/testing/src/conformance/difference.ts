/** Where two values differ as JSON, and how a value is shown in a failure. */

/** Path of the first difference, for example `messages[2].content`; `(whole)` for the values themselves; `undefined` when equal. */
export function firstDifference(expected: unknown, actual: unknown): string | undefined {
  const path = findDifference(expected, actual, '');
  return path === '' ? '(whole)' : path;
}

export function sameJson(expected: unknown, actual: unknown): boolean {
  return findDifference(expected, actual, '') === undefined;
}

/** A member that is `undefined` counts as absent, and `null` is a value. */
function findDifference(expected: unknown, actual: unknown, path: string): string | undefined {
  if (expected === actual || (Object.is(expected, -0) && actual === 0)) return undefined;
  if (!isObject(expected) || !isObject(actual)) return path;
  if (Array.isArray(expected) !== Array.isArray(actual)) return path;
  if (Array.isArray(expected) && expected.length !== (actual as unknown as unknown[]).length)
    return `${path}.length`;
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

/** Longer than most records of a rule, short enough for a terminal. */
const MAX_SHOWN_LENGTH = 500;

/** A value as one line: JSON, cut in the middle when it is long. */
export function show(value: unknown): string {
  const text = textOf(value);
  if (text.length <= MAX_SHOWN_LENGTH) return text;
  return `${text.slice(0, MAX_SHOWN_LENGTH - 100)} ... ${text.slice(-95)}`;
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
