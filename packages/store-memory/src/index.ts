/** A Lousho store in the memory of the process. */
export { memoryStore } from './memory-store.ts';
