/** One checkpoint into its sealed form and back. */
import {
  deepFreeze,
  parseCheckpoint,
  type Checkpoint,
  type CheckpointHeader,
  type JsonObject,
} from '@lousho/contract';
import { clearCheckpoint, hasFields, type StoredCheckpoint } from './clear-fields.ts';
import { inputsEnd, openInputs, sealInputs, type SealedInputs } from './sealed-inputs.ts';
import {
  heldText,
  openParts,
  resultText,
  sealPart,
  sealParts,
  wrapResult,
  type SealedPart,
} from './sealed-parts.ts';
import { damaged, tagOf, type RecordName, type SealKind, type Seals } from './sealed-text.ts';
import {
  chainEnd,
  wrap,
  type ChainEnd,
  type MessageReader,
  type SealedTranscripts,
  type Transcript,
} from './sealed-transcripts.ts';

/** A checkpoint in both forms, by its parts: what the next save of its record compares with. */
export interface KnownCheckpoint {
  readonly transcript: Transcript | undefined;
  readonly inputs: SealedInputs | undefined;
  readonly facts: SealedPart;
  readonly state: SealedPart | undefined;
  readonly held: readonly SealedPart[];
  readonly results: readonly SealedPart[];
}

/** What a header says beside the fields of the checkpoint: which other values belong to it. Absent: the checkpoint has no such field. */
interface Header {
  readonly fields: JsonObject;
  readonly facts: string;
  readonly messages?: ChainEnd;
  readonly inputs?: ChainEnd;
  readonly held?: readonly string[];
  readonly results?: readonly string[];
  readonly state?: string;
}

/** Set once in a run, so sealed apart: a store that keeps them once keeps their sealed form once. */
const FACTS = [
  'version',
  'runId',
  'agentName',
  'runInput',
  'fingerprint',
  'runConfig',
  'principal',
  'metadata',
  'forkedFrom',
] as const;
const FACT_NAMES: ReadonlySet<string> = new Set(FACTS);
const CONTENT = ['messages', 'inputIds', 'heldInput', 'settledResults', 'businessState'];
const SEALED_FIELDS = [...CONTENT, 'metadata', 'sealed'];
const SEALED_HEADER_FIELDS = ['metadata', 'sealed', 'messageCount'];

export class CheckpointSealer {
  constructor(
    readonly seals: Seals,
    readonly transcripts: SealedTranscripts,
  ) {}

  /** `checkpoint` is deeply frozen. */
  async seal(
    id: string,
    checkpoint: StoredCheckpoint,
    known: KnownCheckpoint | undefined,
  ): Promise<{ readonly sealed: Checkpoint; readonly known: KnownCheckpoint }> {
    const { seals } = this;
    const { messages, inputIds, heldInput, settledResults, businessState, ...rest } = checkpoint;
    const facts = await sealPart(
      seals,
      'checkpoint/facts',
      id,
      pick(rest, (field) => FACT_NAMES.has(field)),
      known === undefined ? [] : [known.facts],
    );
    const parts: KnownCheckpoint = {
      facts,
      transcript: messages && (await this.transcripts.seal(messages, known?.transcript)),
      inputs: inputIds && (await sealInputs(seals, 'checkpoint/inputs', id, inputIds, known?.inputs)),
      held: await sealParts(seals, 'checkpoint/held', id, heldInput ?? [], known?.held ?? []),
      results: await sealParts(seals, 'checkpoint/result', id, settledResults ?? [], known?.results ?? []),
      state:
        businessState === undefined
          ? undefined
          : await sealPart(seals, 'checkpoint/state', id, businessState, known?.state ? [known.state] : []),
    };
    const header: Header = {
      fields: pick(rest, (field) => !FACT_NAMES.has(field)),
      facts: facts.tag,
      ...(parts.transcript && { messages: chainEnd(parts.transcript) }),
      ...(parts.inputs && { inputs: inputsEnd(parts.inputs.sealed) }),
      ...(heldInput && { held: parts.held.map(({ tag }) => tag) }),
      ...(settledResults && { results: parts.results.map(({ tag }) => tag) }),
      ...(parts.state && { state: parts.state.tag }),
    };
    const { text } = await seals.seal('checkpoint/header', id, header);
    const sealed = {
      ...clearCheckpoint(checkpoint),
      messages: parts.transcript?.sealed ?? [],
      inputIds: parts.inputs?.sealed ?? [],
      heldInput: parts.held.map((part) => wrap(part.text)),
      settledResults: parts.results.map((part) => wrapResult(part.text)),
      ...(parts.state && { businessState: parts.state.text }),
      metadata: { sealed: facts.text },
      sealed: text,
    };
    return { sealed: deepFreeze(sealed) as unknown as Checkpoint, known: parts };
  }

  /** @throws LOUSHO_CHECKPOINT_CORRUPT and what `Seals.open` and `parseCheckpoint` throw */
  async open(
    id: string,
    given: Checkpoint,
    record: RecordName['record'],
    reader?: MessageReader,
  ): Promise<{ readonly checkpoint: Checkpoint; readonly known: KnownCheckpoint }> {
    const { seals } = this;
    const of: RecordName = { id, record };
    // Also of a store that does not look at what it reads.
    const stored = parseCheckpoint(given, id);
    const { header, facts, fields } = await this.#openHeader(id, stored, of);
    if (!hasFields(stored, clearCheckpoint(fields), SEALED_FIELDS)) throw otherFields(of);
    const open = (kind: SealKind, texts: readonly unknown[], tags: readonly string[] = []) =>
      openParts(seals, kind, id, texts, tags, of);
    const known: KnownCheckpoint = {
      facts,
      transcript: await this.transcripts.open(stored.messages, header.messages ?? [0, ''], of, reader),
      inputs: await openInputs(seals, 'checkpoint/inputs', id, stored.inputIds, header.inputs ?? [0, ''], of),
      held: await open('checkpoint/held', stored.heldInput.map(heldText), header.held),
      results: await open('checkpoint/result', stored.settledResults.map(resultText), header.results),
      state: (
        await open(
          'checkpoint/state',
          stored.businessState === undefined ? [] : [stored.businessState],
          header.state === undefined ? [] : [header.state],
        )
      )[0],
    };
    const content = {
      ...(header.messages && { messages: known.transcript?.plain }),
      ...(header.inputs && { inputIds: known.inputs?.plain }),
      ...(header.held && { heldInput: known.held.map(({ plain }) => plain) }),
      ...(header.results && { settledResults: known.results.map(({ plain }) => plain) }),
      ...(known.state && { businessState: known.state.plain }),
    };
    const checkpoint = deepFreeze(parseCheckpoint({ ...fields, ...content }, id));
    return { checkpoint, known };
  }

  /** @throws LOUSHO_CHECKPOINT_CORRUPT and what `Seals.open` and `parseCheckpoint` throw */
  async openHeader(id: string, stored: CheckpointHeader): Promise<CheckpointHeader> {
    const of: RecordName = { id, record: 'checkpoint' };
    const { header, fields } = await this.#openHeader(id, stored, of);
    const isWhole =
      hasFields(stored, clearCheckpoint(fields), SEALED_HEADER_FIELDS) &&
      stored.messageCount === (header.messages?.[0] ?? 0);
    if (!isWhole) throw otherFields(of);
    // A header is checked as a checkpoint without content.
    const parsed = parseCheckpoint(
      { ...fields, messages: [], heldInput: [], inputIds: [], settledResults: [] },
      id,
    );
    const known = Object.entries(parsed).filter(([field]) => !CONTENT.includes(field));
    return deepFreeze({
      ...Object.fromEntries(known),
      messageCount: stored.messageCount,
    }) as unknown as CheckpointHeader;
  }

  async #openHeader(id: string, stored: Checkpoint | CheckpointHeader, of: RecordName) {
    const { sealed, metadata } = stored as { readonly sealed?: unknown; readonly metadata?: JsonObject };
    const header = (await this.seals.open(sealed, 'checkpoint/header', id, of)) as Header;
    const text = metadata?.sealed;
    if (typeof text !== 'string' || tagOf(text) !== header.facts || Object.keys(metadata ?? {}).length !== 1)
      throw damaged(of, new Error('the facts of the run are not those that were saved'));
    const plain = (await this.seals.open(text, 'checkpoint/facts', id, of)) as object;
    deepFreeze(plain);
    const facts: SealedPart = { plain, text, tag: header.facts };
    return { header, facts, fields: { ...plain, ...deepFreeze(header.fields) } as StoredCheckpoint };
  }
}

function otherFields(of: RecordName): Error {
  return damaged(of, new Error('the fields in clear are not those that were sealed'));
}

/** An own `__proto__` stays one. */
function pick(value: object, takes: (field: string) => boolean): JsonObject {
  return Object.fromEntries(Object.entries(value as JsonObject).filter(([field]) => takes(field)));
}
