/** Values of a record that are sealed by themselves, so that one which does not change keeps its sealed form. */
import { jsonEqual, type JsonValue } from '@lousho/contract';
import { sameValue } from './same-value.ts';
import { keyIdOf, type Sealed, type SealKind, type Seals } from './sealed-text.ts';

export interface SealedPart extends Sealed {
  readonly plain: unknown;
}

/** @param known parts of the same kind and record, sealed before */
export async function sealPart(
  seals: Seals,
  kind: SealKind,
  id: string,
  plain: unknown,
  known: readonly SealedPart[],
): Promise<SealedPart> {
  const same = known.find(
    (part) => sameMembers(part.plain, plain) && keyIdOf(part.text) === seals.currentKeyId,
  );
  return same ?? { plain, ...(await seals.seal(kind, id, plain)) };
}

export async function sealParts(
  seals: Seals,
  kind: SealKind,
  id: string,
  values: readonly unknown[],
  known: readonly SealedPart[],
): Promise<readonly SealedPart[]> {
  return Promise.all(values.map((value) => sealPart(seals, kind, id, value, known)));
}

/** Values in a new object are compared one by one: most of them are the same objects as before. */
function sameMembers(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!isPlain(a) || !isPlain(b)) return jsonEqual(a as JsonValue, b as JsonValue);
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameValue(a[key], b[key]))
  );
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
