/** What encryption needs of the platform: Web Crypto, which Node, browsers and workers have alike. */

/** A `CryptoKey` of the platform: AES-GCM with 256 bits, usable to encrypt and to decrypt. It may be one that cannot be exported. */
export interface AesKey {
  readonly type: string;
  readonly extractable: boolean;
  readonly algorithm: { readonly name: string; readonly length?: number };
  readonly usages: readonly string[];
}

/** Counted and decided by tests. */
export interface CryptoPort {
  importKey(bytes: Uint8Array): Promise<AesKey>;
  /** So many bytes that nobody can foresee. */
  randomBytes(count: number): Uint8Array;
  /** Ciphertext with the tag of 16 bytes behind it. */
  encrypt(key: AesKey, nonce: Uint8Array, boundTo: Uint8Array, plain: Uint8Array): Promise<Uint8Array>;
  /** Rejects when a bit of any of them is another. */
  decrypt(key: AesKey, nonce: Uint8Array, boundTo: Uint8Array, sealed: Uint8Array): Promise<Uint8Array>;
}

type PlatformKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;
type Bytes = Uint8Array<ArrayBuffer>;

export const platformCrypto: CryptoPort = {
  async importKey(bytes) {
    return crypto.subtle.importKey('raw', bytes as Bytes, 'AES-GCM', false, ['encrypt', 'decrypt']);
  },
  randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  async encrypt(key, nonce, boundTo, plain) {
    const sealed = await crypto.subtle.encrypt(aesGcm(nonce, boundTo), key as PlatformKey, plain);
    return new Uint8Array(sealed);
  },
  async decrypt(key, nonce, boundTo, sealed) {
    const plain = await crypto.subtle.decrypt(aesGcm(nonce, boundTo), key as PlatformKey, sealed);
    return new Uint8Array(plain);
  },
};

function aesGcm(nonce: Uint8Array, boundTo: Uint8Array) {
  return { name: 'AES-GCM', iv: nonce as Bytes, additionalData: boundTo as Bytes, tagLength: 128 };
}
