/** Conversations of a sealed store: the transcript sealed message by message, the rest as one value. */
import {
  assertCheckpointId,
  deepFreeze,
  frozenCopy,
  parseSessionRecord,
  type JsonObject,
  type SessionRecord,
  type SessionStore,
} from '@lousho/contract';
import { clearSession, hasFields } from './clear-fields.ts';
import { InOrder } from './in-order.ts';
import { KnownRecords } from './known-records.ts';
import { inputsEnd, openInputs, sealInputs, type SealedInputs } from './sealed-inputs.ts';
import { sealPart, type SealedPart } from './sealed-parts.ts';
import { damaged, tagOf, type RecordName, type Seals } from './sealed-text.ts';
import { chainEnd, type ChainEnd, type SealedTranscripts, type Transcript } from './sealed-transcripts.ts';

interface KnownSession {
  readonly transcript: Transcript;
  readonly inputs: SealedInputs;
  readonly state: SealedPart | undefined;
}

/** The revision is that under which the record was to be stored: parts of two revisions do not fit together. */
interface Header {
  readonly fields: JsonObject;
  readonly revision: number;
  readonly messages: ChainEnd;
  readonly inputs: ChainEnd;
  readonly state?: string;
}

const SEALED_FIELDS = ['messages', 'inputIds', 'businessState', 'sealed'];

export class SealedSessions implements SessionStore {
  readonly #inner: SessionStore;
  readonly #seals: Seals;
  readonly #transcripts: SealedTranscripts;
  readonly #known = new KnownRecords<KnownSession>();
  readonly #order = new InOrder();

  constructor(inner: SessionStore, seals: Seals, transcripts: SealedTranscripts) {
    this.#inner = inner;
    this.#seals = seals;
    this.#transcripts = transcripts;
  }

  async started(): Promise<void> {
    await this.#order.started();
  }

  async load(id: string): Promise<SessionRecord | null> {
    const stored = await this.#inner.load(id);
    return stored === null || stored === undefined ? null : this.#open(id, stored);
  }

  async saveIfRevision(record: SessionRecord, expectedRevision: number): Promise<boolean> {
    assertCheckpointId(record.id);
    const given = frozenCopy(record);
    return this.#order.run(
      given.id,
      async () => this.#seal(given, expectedRevision + 1),
      async (sealed) => this.#inner.saveIfRevision(sealed, expectedRevision),
    );
  }

  async delete(id: string): Promise<void> {
    assertCheckpointId(id);
    await this.#order.run(
      id,
      async () => this.#known.forget(id),
      async () => this.#inner.delete(id),
    );
  }

  async list(): Promise<readonly string[]> {
    return (await this.#inner.list?.()) ?? [];
  }

  async #seal(record: SessionRecord, revision: number): Promise<SessionRecord> {
    const { id, messages, inputIds, businessState, ...rest } = record;
    const seals = this.#seals;
    const before = this.#known.get(id);
    const transcript = await this.#transcripts.seal(messages, before?.transcript);
    const inputs = await sealInputs(seals, 'session/inputs', id, inputIds, before?.inputs);
    const state =
      businessState === undefined
        ? undefined
        : await sealPart(seals, 'session/state', id, businessState, before?.state ? [before.state] : []);
    const header: Header = {
      fields: rest as unknown as JsonObject,
      revision,
      messages: chainEnd(transcript),
      inputs: inputsEnd(inputs.sealed),
      ...(state && { state: state.tag }),
    };
    const { text } = await seals.seal('session/header', id, header);
    if (before !== undefined && before.transcript !== transcript) this.#transcripts.forget(before.transcript);
    this.#known.saved(id, { transcript, inputs, state });
    return deepFreeze({
      ...clearSession(record, revision),
      messages: transcript.sealed,
      inputIds: inputs.sealed,
      ...(state && { businessState: state.text }),
      sealed: text,
    }) as unknown as SessionRecord;
  }

  async #open(id: string, given: SessionRecord): Promise<SessionRecord> {
    const of: RecordName = { id, record: 'session' };
    const stored = parseSessionRecord(given, id);
    const { sealed, businessState } = stored as SessionRecord & { readonly sealed?: unknown };
    const header = (await this.#seals.open(sealed, 'session/header', id, of)) as Header;
    const { revision } = header;
    const fields = { ...header.fields, id, revision } as unknown as SessionRecord;
    if (!hasFields(stored, clearSession(fields, revision), SEALED_FIELDS))
      throw damaged(of, new Error('the fields in clear are not those that were sealed'));
    const transcript = await this.#transcripts.open(stored.messages, header.messages, of);
    const inputs = await openInputs(this.#seals, 'session/inputs', id, stored.inputIds, header.inputs, of);
    const state = await this.#openState(id, businessState, header.state, of);
    this.#known.loaded(id, { transcript, inputs, state });
    const record = {
      ...fields,
      messages: transcript.plain,
      inputIds: inputs.plain,
      ...(state && { businessState: state.plain }),
    };
    return deepFreeze(parseSessionRecord(record, id));
  }

  async #openState(
    id: string,
    text: unknown,
    tag: string | undefined,
    of: RecordName,
  ): Promise<SealedPart | undefined> {
    if (text === undefined && tag === undefined) return undefined;
    if (typeof text !== 'string' || tagOf(text) !== tag)
      throw damaged(of, new Error('the state is not the one that was saved'));
    return { plain: deepFreeze(await this.#seals.open(text, 'session/state', id, of)), text, tag };
  }
}
