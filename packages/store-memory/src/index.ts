/** A Lousho store in the memory of the process, and one in the storage of a browser. */
export { LocalStorageCheckpointStore, type LocalStorageOptions } from './local-storage-store.ts';
export { memoryStore } from './memory-store.ts';
export { type WebStorageLike } from './web-storage.ts';
