/** The part of a Workers KV namespace that the store uses. A binding fits as it is; no type of Cloudflare's is needed. */

export interface KVListedKey {
  readonly name: string;
  readonly metadata?: unknown;
}
export interface KVListPage {
  readonly keys: readonly KVListedKey[];
  readonly list_complete: boolean;
  readonly cursor?: string;
}
/** The part of a Workers KV namespace that we use. */
export interface KVNamespaceLike {
  get(key: string): Promise<string | null>;
  put(key: string, value: string, options?: { expirationTtl?: number; metadata?: unknown }): Promise<void>;
  delete(key: string): Promise<void>;
  /** Without it: no `list`, so no `pending()` and no `recover()`. */
  list?(options?: { prefix?: string; cursor?: string; limit?: number }): Promise<KVListPage>;
}

/** What Cloudflare documents, and what workerd enforces. */
export const MAX_KEY_BYTES = 512;
export const MAX_VALUE_BYTES = 25 * 1024 * 1024;
export const MAX_METADATA_BYTES = 1_024;
export const MIN_TTL_SECONDS = 60;

const encoder = new TextEncoder();

/** Bytes of the text in UTF-8. */
export function bytesOf(text: string): number {
  return encoder.encode(text).length;
}
