/** Encryption over any store, and copies from one store to another. */
export { encryptedStore } from './encrypted-store.ts';
export { type SealingKey } from './sealing-keys.ts';
export { type AesKey } from './crypto-ports.ts';
export {
  copyStore,
  type CopiedRecord,
  type CopyCount,
  type CopyLeft,
  type CopyOptions,
  type CopyProgress,
  type CopyResult,
} from './copy-store.ts';
export { type LeftReason } from './copy-run.ts';
