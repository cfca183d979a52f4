/** The keys of a sealed store, checked once. Nothing of a key is ever in an error. */
import { ConfigurationError } from '@lousho/contract';
import { fromBase64 } from './base64.ts';
import type { AesKey, CryptoPort } from './crypto-ports.ts';

export interface SealingKey {
  /** Stored in clear beside each value that it sealed: 1-64 characters of `A-Za-z0-9_-`. A key keeps its id for ever. */
  readonly id: string;
  /** 32 bytes, or their base64 text, or a `CryptoKey` for AES-GCM with 256 bits and the usages `encrypt` and `decrypt`. */
  readonly key: Uint8Array | string | AesKey;
}

export interface ResolvedKeys {
  /** Seals. */
  readonly currentId: string;
  /** `undefined` for an id that is none of them. */
  find(id: string): Promise<AesKey> | undefined;
}

const KEY_BYTES = 32;
const KEY_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** @throws synchronously LOUSHO_CONFIG_INVALID */
export function resolveKeys(keys: readonly SealingKey[], port: CryptoPort): ResolvedKeys {
  const current = isList(keys) ? keys[0] : undefined;
  if (current === undefined) throw invalid('keys', 'a list of at least one key');
  const found = new Map<string, () => Promise<AesKey>>();
  for (const [index, { id, key }] of keys.entries()) {
    const option = `keys[${index}]`;
    if (typeof id !== 'string' || !KEY_ID.test(id))
      throw invalid(`${option}.id`, '1-64 characters of A-Z a-z 0-9 _ -');
    if (found.has(id)) throw invalid(`${option}.id`, 'an id that no other key has');
    found.set(id, loader(key, `${option}.key`, port));
  }
  return { currentId: current.id, find: (id) => found.get(id)?.() };
}

/** Imports the key when it is first used: Web Crypto has no synchronous way. */
function loader(key: SealingKey['key'], option: string, port: CryptoPort): () => Promise<AesKey> {
  if (isAesKey(key)) {
    const { name, length } = key.algorithm;
    const isUsable =
      name === 'AES-GCM' &&
      length === 8 * KEY_BYTES &&
      ['encrypt', 'decrypt'].every((usage) => key.usages.includes(usage));
    if (!isUsable)
      throw invalid(option, 'a CryptoKey for AES-GCM with 256 bits and the usages encrypt and decrypt');
    return async () => key;
  }
  const bytes = typeof key === 'string' ? fromBase64(key) : key;
  if (!(bytes instanceof Uint8Array) || bytes.length !== KEY_BYTES)
    throw invalid(option, `${KEY_BYTES} bytes, their base64 text, or a CryptoKey`);
  // A copy: the caller may clear its own.
  const copy = bytes.slice();
  let imported: Promise<AesKey> | undefined;
  return () => (imported ??= port.importKey(copy));
}

/** Not `Array.isArray` alone: that makes everything in it `any`. */
function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isAesKey(key: unknown): key is AesKey {
  return typeof key === 'object' && key !== null && 'algorithm' in key && 'usages' in key;
}

/** Without `got`: it would be the secret. */
function invalid(option: string, want: string): ConfigurationError {
  return new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, want });
}
