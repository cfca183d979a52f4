/** Dies at every store call of a scenario, one after the other, and checks what is left. */
export {
  type CrashOutcome,
  type CrashPoint,
  type CrashReport,
  type CrashScenario,
  type CrashWorld,
} from './crash/crash-scenario.ts';
export { crashSweep } from './crash/crash-sweep.ts';
export { crashTest, type CrashableAgent, type CrashTestOptions } from './crash/crash-test.ts';
export { crashingStore, type CrashingStore, type CrashPlan, type StoreCall } from './crash/crashing-store.ts';
export {
  referenceStore,
  type ReferenceCheckpointStore,
  type ReferenceStore,
  type ReferenceStoreOptions,
} from './reference-store.ts';
