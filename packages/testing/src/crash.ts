/** Dies at every store call of a scenario, one after the other, and checks what is left. */
export {
  referenceStore,
  type ReferenceCheckpointStore,
  type ReferenceStore,
  type ReferenceStoreOptions,
} from './reference-store.ts';
