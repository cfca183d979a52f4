/** Equal as JSON; values that are the same object are not looked at. */
import { jsonEqual, type JsonValue } from '@lousho/contract';

export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  return jsonEqual(a as JsonValue, b as JsonValue);
}
