/** Input ids: those that a save adds are sealed as one value behind the ones before, so a save costs what is new. */
import { appendFrozen, deepFreeze } from '@lousho/contract';
import { damaged, keyIdOf, tagOf, type RecordName, type Seals } from './sealed-text.ts';
import type { ChainEnd } from './sealed-transcripts.ts';

export interface SealedInputs {
  readonly plain: readonly string[];
  /** Each text holds a list of ids. */
  readonly sealed: readonly string[];
}

type InputsKind = 'checkpoint/inputs' | 'session/inputs';

const none: readonly string[] = deepFreeze([]);

/** @param known the ids of the same record before */
export async function sealInputs(
  seals: Seals,
  kind: InputsKind,
  id: string,
  inputIds: readonly string[],
  known: SealedInputs | undefined,
): Promise<SealedInputs> {
  const before = known !== undefined && isGrownFrom(known, inputIds, seals) ? known : undefined;
  const sealed = before?.sealed ?? none;
  const added = inputIds.slice(before?.plain.length ?? 0);
  if (added.length === 0) return { plain: inputIds, sealed };
  const { text } = await seals.seal(kind, place(id, sealed), added);
  return { plain: inputIds, sealed: appendFrozen(sealed, [text]) };
}

/** @throws LOUSHO_CHECKPOINT_CORRUPT and what `Seals.open` throws */
export async function openInputs(
  seals: Seals,
  kind: InputsKind,
  id: string,
  stored: readonly string[],
  end: ChainEnd,
  of: RecordName,
): Promise<SealedInputs> {
  const sealed = deepFreeze([...stored]);
  const [count, lastTag] = inputsEnd(sealed);
  if (count !== end[0] || lastTag !== end[1])
    throw damaged(of, new Error('the input ids are not those that were saved'));
  const plain: string[] = [];
  for (const [index, text] of sealed.entries())
    plain.push(
      ...((await seals.open(text, kind, place(id, sealed.slice(0, index)), of)) as readonly string[]),
    );
  return { plain: deepFreeze(plain), sealed };
}

export function inputsEnd(sealed: readonly string[]): ChainEnd {
  const last = sealed.at(-1);
  return [sealed.length, last === undefined ? '' : tagOf(last)];
}

/** A checkpoint id has no line break. */
function place(id: string, before: readonly string[]): string {
  return `${id}\n${inputsEnd(before)[1]}`;
}

function isGrownFrom({ plain, sealed }: SealedInputs, inputIds: readonly string[], seals: Seals): boolean {
  return (
    (plain === inputIds || plain.every((inputId, index) => inputId === inputIds[index])) &&
    sealed.every((text) => keyIdOf(text) === seals.currentKeyId)
  );
}
