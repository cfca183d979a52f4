/** Encryption over any store, copies from one store to another, and everything of a store as text. */
export { encryptedStore } from './encrypted-store.ts';
export { type SealingKey } from './sealing-keys.ts';
export { type AesKey } from './crypto-ports.ts';
export { copyStore, type CopyOptions, type CopyProgress } from './copy-store.ts';
export { type CopiedRecord, type CopyCount, type CopyLeft, type CopyResult } from './copy-tally.ts';
export { exportStore, type ExportOptions, type ExportProgress } from './export-store.ts';
export {
  checkExport,
  importStore,
  type ExportSummary,
  type ImportOptions,
  type ImportProgress,
} from './import-store.ts';
export { type ExportText } from './export-records.ts';
export { type LeftReason } from './copy-run.ts';
