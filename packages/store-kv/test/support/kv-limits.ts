/** What Workers KV refuses, with the sentences that its runtime uses. */
import { bytesOf, MAX_KEY_BYTES, MAX_METADATA_BYTES, MAX_VALUE_BYTES } from '../../src/kv-namespace.ts';

export interface StoredValue {
  /** As bytes would keep it: well-formed. */
  readonly value: string;
  readonly metadata: unknown;
  readonly expiresAtMs: number;
}
export interface PutOptions {
  readonly expirationTtl?: number;
  readonly metadata?: unknown;
}

export function refuseKey(method: string, key: string): void {
  if (key === '' || key === '.' || key === '..') throw new TypeError(`Key name cannot be "${key}".`);
  const bytes = bytesOf(key);
  if (bytes > MAX_KEY_BYTES)
    throw new Error(
      `KV ${method} failed: 414 UTF-8 encoded length of ${bytes} exceeds key length limit of ${MAX_KEY_BYTES}.`,
    );
}

export function storedValue(
  value: string,
  { expirationTtl, metadata }: PutOptions,
  nowMs: number,
): StoredValue {
  const bytes = bytesOf(value);
  if (bytes > MAX_VALUE_BYTES)
    throw new Error(`KV PUT failed: 413 Value length of ${bytes} exceeds limit of ${MAX_VALUE_BYTES}.`);
  const beside = metadata === undefined ? undefined : JSON.stringify(metadata);
  if (beside !== undefined && bytesOf(beside) > MAX_METADATA_BYTES)
    throw new Error(
      `KV PUT failed: 413 Metadata length of ${bytesOf(beside)} exceeds limit of ${MAX_METADATA_BYTES}.`,
    );
  if (expirationTtl !== undefined && !(Number.isInteger(expirationTtl) && expirationTtl >= 60))
    throw new Error(
      `KV PUT failed: 400 Invalid expiration_ttl of ${expirationTtl}. Expiration TTL must be at least 60.`,
    );
  return {
    value: value.toWellFormed(),
    metadata: beside === undefined ? undefined : (JSON.parse(beside) as unknown),
    expiresAtMs: expirationTtl === undefined ? Infinity : nowMs + expirationTtl * 1_000,
  };
}
