/** Values of a record that are sealed by themselves, so that one which does not change keeps its sealed form. */
import { deepFreeze, jsonEqual, type JsonValue, type Message, type ToolResultPart } from '@lousho/contract';
import { sameValue } from './same-value.ts';
import {
  damaged,
  keyIdOf,
  tagOf,
  type RecordName,
  type Sealed,
  type SealKind,
  type Seals,
} from './sealed-text.ts';
import { textOf, wrap } from './sealed-transcripts.ts';

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

/**
 * @param tags of just these values, as the header names them
 * @throws LOUSHO_CHECKPOINT_CORRUPT and what `Seals.open` throws
 */
export async function openParts(
  seals: Seals,
  kind: SealKind,
  id: string,
  texts: readonly unknown[],
  tags: readonly string[],
  of: RecordName,
): Promise<readonly SealedPart[]> {
  const others = (): Error => damaged(of, new Error('the values are not those that were saved'));
  if (texts.length !== tags.length) throw others();
  const parts: SealedPart[] = [];
  for (const [index, text] of texts.entries()) {
    if (typeof text !== 'string' || tagOf(text) !== tags[index]) throw others();
    parts.push({ plain: deepFreeze(await seals.open(text, kind, id, of)), text, tag: tagOf(text) });
  }
  return parts;
}

/** The sealed text of held input, in exactly the form that holds it. */
export function heldText(message: Message): string | undefined {
  const text = textOf(message);
  return sameValue(message, wrap(text)) ? text : undefined;
}

/** A valid result to every store. */
export function wrapResult(text: string): ToolResultPart {
  return { type: 'tool-result', toolCallId: '', toolName: '', result: text };
}

/** The sealed text of a result, in exactly the form that holds it. */
export function resultText(part: ToolResultPart): string | undefined {
  const { result } = part;
  return typeof result === 'string' && sameValue(part, wrapResult(result)) ? result : undefined;
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
