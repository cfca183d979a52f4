/** Deeply frozen values, and lists that only grow: what lets a store share memory and know what is new at once. */

/**
 * Values that are known to be frozen through and through; a frozen value never changes, so an entry never becomes wrong. Only values
 * that were asked about are in it, not their parts: an entry costs more than a second look at a part.
 */
const frozen = new WeakSet<object>();

/** Freezes a JSON-like value in place, once: what is known to be frozen is not walked again. */
export function deepFreeze<Value>(value: Value): Value {
  if (!isObject(value) || frozen.has(value)) return value;
  // Before the parts, so that a value that holds itself ends.
  frozen.add(value);
  freezeParts(value);
  return value;
}

/** `deepFreeze` for what a store has read. Its messages are remembered by themselves too: the next save has another state around the same list. */
export function freezeStored<Value extends { readonly messages: readonly unknown[] }>(value: Value): Value {
  deepFreeze(value.messages);
  return deepFreeze(value);
}

function freezeParts(value: object): void {
  Object.freeze(value);
  // Not with the keys of a list: each of them would become a text.
  if (Array.isArray(value)) {
    for (const part of value as readonly unknown[]) freezePart(part);
    return;
  }
  for (const key in value) freezePart((value as Record<string, unknown>)[key]);
}

function freezePart(part: unknown): void {
  if (isObject(part) && !frozen.has(part)) freezeParts(part);
}

/**
 * `deepFreeze` for a value that was just made of frozen ones and is soon replaced: a part that is frozen is taken to be so through and
 * through, and nothing is remembered.
 */
export function freezeFresh<Value extends object>(value: Value): Value {
  Object.freeze(value);
  for (const key in value) {
    const part: unknown = value[key];
    if (isObject(part) && !Object.isFrozen(part)) freezeFresh(part);
  }
  return value;
}

/** Whether a value can be shared instead of copied. Looks at the whole value the first time only. */
export function isDeepFrozen(value: unknown): boolean {
  if (!isObject(value) || frozen.has(value)) return true;
  if (!hasFrozenParts(value)) return false;
  frozen.add(value);
  return true;
}

function hasFrozenParts(value: object): boolean {
  if (frozen.has(value)) return true;
  return (
    Object.isFrozen(value) && Object.values(value).every((part) => !isObject(part) || hasFrozenParts(part))
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** A deeply frozen form of the value: itself when it is frozen already, else a frozen copy with JSON semantics. */
export function frozenCopy<Value>(value: Value): Value {
  if (isDeepFrozen(value)) return value;
  return deepFreeze(JSON.parse(JSON.stringify(value)) as Value);
}

/** One line of growth: every list in it is a prefix of every longer one. */
interface Lineage {
  /** Length of the newest list. Appending to an older one starts a line of its own. */
  newestLength: number;
}
const lineages = new WeakMap<readonly unknown[], Lineage>();

/** The list with more behind it. `extendsList` then knows without comparing that the old list is a prefix of the new one. */
export function appendFrozen<Item>(list: readonly Item[], added: readonly Item[]): readonly Item[] {
  if (added.length === 0) return list;
  for (const item of added) deepFreeze(item);
  const items = takeItems(list);
  for (const item of added) items.push(item);
  const grown: readonly Item[] = Object.freeze(items.slice());
  itemsOfNewest.set(grown, items);
  // A list that somebody may still change proves nothing about the lists made from it.
  if (isDeepFrozen(list)) {
    frozen.add(grown);
    lineages.set(grown, continueLineage(list, grown.length));
  }
  return grown;
}

/**
 * The items of the newest list of each line, in a list that is not frozen: a copy of a frozen one takes many times as long (V8 of Node 20).
 * Older lists have none, so that they keep nothing alive that came later.
 */
const itemsOfNewest = new WeakMap<readonly unknown[], unknown[]>();

/** The items of the list, for the list that grows from it. */
function takeItems<Item>(list: readonly Item[]): Item[] {
  const items = itemsOfNewest.get(list) as Item[] | undefined;
  itemsOfNewest.delete(list);
  return items ?? [...list];
}

function continueLineage(list: readonly unknown[], newestLength: number): Lineage {
  const lineage = lineages.get(list);
  if (lineage !== undefined && lineage.newestLength === list.length) {
    lineage.newestLength = newestLength;
    return lineage;
  }
  const started: Lineage = { newestLength };
  // A list that grows a second time keeps its first line; the second one proves nothing about it.
  if (lineage === undefined) lineages.set(list, started);
  return started;
}

/** `true` only with proof by origin; `false` says nothing about the content. */
export function extendsList(base: readonly unknown[], list: readonly unknown[]): boolean {
  if (base === list) return true;
  const lineage = lineages.get(base);
  return lineage !== undefined && lineage === lineages.get(list) && base.length <= list.length;
}
