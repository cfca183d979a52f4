/** A Lousho store in a Workers KV namespace. */
export { KVCheckpointStore, KVStore } from './kv-store.ts';
export { type KVListedKey, type KVListPage, type KVNamespaceLike } from './kv-namespace.ts';
export { type KVStoreOptions } from './kv-options.ts';
