/**
 * One sealed value: `lousho-sealed-1.<key id>.<base64 of nonce, ciphertext and tag>`.
 *
 * AES-256-GCM binds each value to its kind, its key and to one more text: the id of its record, or the tag of the value before it in a
 * chain. Whatever is opened as something else, or somewhere else, is refused like a value with a changed bit.
 */
import { ConfigurationError, SDKError, type ErrorDetails } from '@lousho/contract';
import { fromBase64, toBase64 } from './base64.ts';
import type { CryptoPort } from './crypto-ports.ts';
import type { ResolvedKeys } from './sealing-keys.ts';

export type RecordName = ErrorDetails['LOUSHO_CHECKPOINT_CORRUPT'];

/** What a value is. A value never opens as another kind. */
export type SealKind =
  | 'message'
  | `${'checkpoint' | 'session'}/${'inputs' | 'state' | 'header'}`
  | 'checkpoint/facts'
  | 'checkpoint/held'
  | 'checkpoint/result'
  | 'approval';

export interface Sealed {
  readonly text: string;
  /** The tag, base64: stands for the value where another one names it. Nobody without the key can make a second value with it. */
  readonly tag: string;
}

const FORMAT = 1;
/** 96 bits: what GCM takes as it is. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD = /^lousho-sealed-(\d{1,9})\.([A-Za-z0-9_-]{1,64})\./;
/** The base64 characters that hold the last 16 bytes, and up to two bytes before them. */
const TAG_CHARACTERS = 24;

export class Seals {
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();

  constructor(
    readonly keys: ResolvedKeys,
    readonly port: CryptoPort,
  ) {}

  get currentKeyId(): string {
    return this.keys.currentId;
  }

  /** Seals the JSON text of the value with the first key. */
  async seal(kind: SealKind, boundTo: string, value: unknown): Promise<Sealed> {
    // Before anything is awaited: a value that JSON cannot say changes nothing.
    const plain = this.#encoder.encode(JSON.stringify(value));
    const { currentId } = this.keys;
    const key = this.keys.find(currentId);
    if (key === undefined) throw new Error('Invariant: the first key is one of the keys.');
    const nonce = this.port.randomBytes(NONCE_BYTES);
    const sealed = await this.port.encrypt(await key, nonce, this.#binding(kind, currentId, boundTo), plain);
    const bytes = new Uint8Array(NONCE_BYTES + sealed.length);
    bytes.set(nonce);
    bytes.set(sealed, NONCE_BYTES);
    const text = `lousho-sealed-${FORMAT}.${currentId}.${toBase64(bytes)}`;
    return { text, tag: tagOf(text) };
  }

  /**
   * @param of what the error names
   * @throws LOUSHO_CHECKPOINT_CORRUPT, LOUSHO_STORE_KEY_UNKNOWN, LOUSHO_STORE_NOT_SEALED, LOUSHO_STORE_VERSION_UNSUPPORTED
   */
  async open(text: unknown, kind: SealKind, boundTo: string, of: RecordName): Promise<unknown> {
    const { keyId, bytes } = parse(text, of);
    const key = this.keys.find(keyId);
    if (key === undefined) throw new SDKError('LOUSHO_STORE_KEY_UNKNOWN', { ...of, keyId });
    try {
      const plain = await this.port.decrypt(
        await key,
        bytes.subarray(0, NONCE_BYTES),
        this.#binding(kind, keyId, boundTo),
        bytes.subarray(NONCE_BYTES),
      );
      return JSON.parse(this.#decoder.decode(plain)) as unknown;
    } catch (error) {
      throw unopened(of, keyId, error);
    }
  }

  #binding(kind: SealKind, keyId: string, boundTo: string): Uint8Array {
    return this.#encoder.encode(`lousho-sealed-${FORMAT}\n${kind}\n${keyId}\n${boundTo}`);
  }
}

/** Of a text that was sealed here or was opened; of any other text, something. */
export function tagOf(text: string): string {
  const bytes = fromBase64(text.slice(-TAG_CHARACTERS));
  return bytes === undefined ? '' : toBase64(bytes.subarray(-TAG_BYTES));
}

/** Id of the key that sealed the text. */
export function keyIdOf(text: string): string | undefined {
  return HEAD.exec(text)?.[2];
}

export function damaged(of: RecordName, cause: unknown): SDKError {
  return new SDKError('LOUSHO_CHECKPOINT_CORRUPT', of, { cause });
}

/** AES-GCM says no more than that key and value do not fit together. Who believes the damage may delete what the right key still opens. */
function unopened(of: RecordName, keyId: string, cause: unknown): SDKError {
  return new SDKError('LOUSHO_CHECKPOINT_CORRUPT', of, {
    message: `The stored ${of.record} "${of.id}" is damaged, or the key that is here as "${keyId}" is not the one that sealed it, which looks the same: check the keys before you delete anything.`,
    cause,
  });
}

function parse(text: unknown, of: RecordName): { readonly keyId: string; readonly bytes: Uint8Array } {
  if (typeof text !== 'string' || !text.startsWith('lousho-sealed-'))
    throw new SDKError('LOUSHO_STORE_NOT_SEALED', of);
  const [head = '', format, keyId = ''] = HEAD.exec(text) ?? [];
  if (format !== undefined && Number(format) > FORMAT) {
    throw new ConfigurationError('LOUSHO_STORE_VERSION_UNSUPPORTED', {
      found: Number(format),
      supported: FORMAT,
    });
  }
  const bytes = format === String(FORMAT) ? fromBase64(text.slice(head.length)) : undefined;
  if (bytes === undefined || bytes.length < NONCE_BYTES + TAG_BYTES)
    throw damaged(of, new Error('a sealed value is cut off or is no sealed value'));
  return { keyId, bytes };
}
