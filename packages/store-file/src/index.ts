/** Lousho store that keeps runs in plain files. */
export { FileCheckpointStore, fileStore, type FileStoreOptions } from './file-store.ts';
