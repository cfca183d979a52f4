/**
 * Transcripts: each message is sealed once and on its own, and bound to the one before it.
 *
 * What binds a message is the tag of its predecessor, and the header of the record names the last tag and the number of messages. So a
 * header holds exactly one list of messages: one that is dropped, swapped, put in again or taken from elsewhere is noticed. A turn of a
 * session, or a fork, that begins with messages of another record shares their sealed form as it shares the messages.
 */
import {
  appendFrozen,
  deepFreeze,
  extendsList,
  frozenCopy,
  isDeepFrozen,
  type Message,
} from '@lousho/contract';
import { inBatches } from './in-batches.ts';
import { sameValue } from './same-value.ts';
import { damaged, keyIdOf, tagOf, type RecordName, type Seals } from './sealed-text.ts';

/** What a header says of a chain: how many, and the tag of the last; empty for none. */
export type ChainEnd = readonly [count: number, lastTag: string];

/** A list of messages in both forms. */
export interface Transcript {
  readonly plain: readonly Message[];
  readonly sealed: readonly Message[];
  /** The key of all; `undefined` when several sealed it. */
  readonly keyId: string | undefined;
}

const none: readonly Message[] = deepFreeze([]);

export class SealedTranscripts {
  /** The list that ends in this message: how a list that grew is found by what it grew from. */
  readonly #endingIn = new WeakMap<Message, Transcript>();
  /** Of sealed lists and messages that nobody can change any more: opened once. */
  readonly #transcripts = new WeakMap<readonly Message[], Transcript>();
  readonly #opened = new WeakMap<Message, { readonly plain: Message; readonly after: string }>();

  constructor(readonly seals: Seals) {}

  /** @param known the list that this record had before, if somebody remembers it; the new one may have been copied from it */
  async seal(messages: readonly Message[], known?: Transcript): Promise<Transcript> {
    const kept = this.#sealedPart(messages, known);
    const sealed: Message[] = [];
    let after = tagOfLast(kept);
    for (const message of messages.slice(kept.length)) {
      const { text, tag } = await this.seals.seal('message', after, message);
      const wrapped = deepFreeze(wrap(text));
      this.#opened.set(wrapped, { plain: message, after });
      sealed.push(wrapped);
      after = tag;
    }
    const transcript: Transcript = {
      plain: messages,
      sealed: appendFrozen(kept, sealed),
      keyId: this.seals.currentKeyId,
    };
    this.#remember(transcript);
    return transcript;
  }

  /** A list that is not needed any more because a longer one of the same record took its place. */
  forget(transcript: Transcript): void {
    const last = transcript.plain.at(-1);
    if (last !== undefined && this.#endingIn.get(last) === transcript) this.#endingIn.delete(last);
  }

  /**
   * @param end what the header of the record says
   * @param reader for one of many lists in one call: it is opened to be looked at, and messages that several of them hold are opened once.
   * Without one, the list is remembered: the next save may grow from it
   * @throws LOUSHO_CHECKPOINT_CORRUPT and what `Seals.open` throws
   */
  async open(
    stored: readonly Message[],
    end: ChainEnd,
    of: RecordName,
    reader?: MessageReader,
  ): Promise<Transcript> {
    if (stored.length !== end[0] || tagOfLast(stored) !== end[1])
      throw damaged(of, new Error('the messages are not those that were saved'));
    const sealed = reader === undefined ? frozenCopy(stored) : stored;
    const isShared = isDeepFrozen(sealed);
    const known = isShared ? this.#transcripts.get(sealed) : undefined;
    if (known !== undefined) return known;
    const plain = await inBatches(sealed, (message, index) => {
      const before = sealed[index - 1];
      return this.#openMessage(message, before === undefined ? '' : tagOf(textOf(before)), of, reader);
    });
    const transcript: Transcript = {
      plain: appendFrozen(none, plain),
      sealed,
      keyId: keyIdOfAll(sealed),
    };
    if (isShared) this.#remember(transcript);
    return transcript;
  }

  async #openMessage(
    message: Message,
    after: string,
    of: RecordName,
    reader: MessageReader | undefined,
  ): Promise<Message> {
    const text = textOf(message);
    if (message.role !== 'user' || Object.keys(message).length !== 2)
      throw damaged(of, new Error('a message has another form'));
    const known = this.#opened.get(message) ?? reader?.get(text);
    if (known?.after === after) return known.plain;
    const plain = deepFreeze((await this.seals.open(text, 'message', after, of)) as Message);
    if (isDeepFrozen(message)) this.#opened.set(message, { plain, after });
    else reader?.set(text, { plain, after });
    return plain;
  }

  /** The sealed form of as many of the first messages as have one: by origin where that is known, else by content. */
  #sealedPart(messages: readonly Message[], known: Transcript | undefined): readonly Message[] {
    const source = this.#grownFrom(messages, known);
    if (source !== undefined) return source.sealed;
    if (known === undefined || !this.#isCurrent(known)) return none;
    const most = Math.min(known.plain.length, messages.length);
    let same = 0;
    while (same < most && sameValue(known.plain[same], messages[same])) same += 1;
    return same === known.sealed.length ? known.sealed : deepFreeze(known.sealed.slice(0, same));
  }

  /** The longest list that it is known to have grown from: a conversation grows from the turn that ended, not from what it was before. */
  #grownFrom(messages: readonly Message[], known: Transcript | undefined): Transcript | undefined {
    const isSource = (candidate: Transcript | undefined): candidate is Transcript =>
      candidate !== undefined && this.#isCurrent(candidate) && extendsList(candidate.plain, messages);
    const own = isSource(known) ? known : undefined;
    for (let length = messages.length; length > (own?.plain.length ?? 0); length -= 1) {
      const candidate = this.#endingIn.get(messages[length - 1] as Message);
      if (isSource(candidate)) return candidate;
    }
    return own;
  }

  /** With a new first key, the next save seals all anew. */
  #isCurrent({ keyId }: Transcript): boolean {
    return keyId === this.seals.currentKeyId;
  }

  #remember(transcript: Transcript): void {
    this.#transcripts.set(transcript.sealed, transcript);
    const last = transcript.plain.at(-1);
    if (last !== undefined) this.#endingIn.set(last, transcript);
  }
}

/** Messages that were opened in one call, by their sealed text. */
export type MessageReader = Map<string, { readonly plain: Message; readonly after: string }>;

export function chainEnd({ sealed }: Transcript): ChainEnd {
  return [sealed.length, tagOfLast(sealed)];
}

/** A valid message to every store, and the same role for all. */
export function wrap(text: string): Message {
  return { role: 'user', content: text };
}

/** The sealed text; empty for a message of another form. */
export function textOf({ content }: Message): string {
  return typeof content === 'string' ? content : '';
}

function tagOfLast(sealed: readonly Message[]): string {
  const last = sealed.at(-1);
  return last === undefined ? '' : tagOf(textOf(last));
}

function keyIdOfAll(sealed: readonly Message[]): string | undefined {
  const ids = new Set(sealed.map((message) => keyIdOf(textOf(message))));
  return ids.size === 1 ? [...ids][0] : undefined;
}
