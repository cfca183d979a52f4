/** What stores on Node share: who holds a lease, whether that process is gone, and on which disk a folder lies. Node only. */
export { LeaseJudge, type LeaseClaim } from './node/lease-judge.ts';
export { LiveOwners } from './node/live-owners.ts';
export { fileSystemType, networkKind } from './node/network-folder.ts';
export { nodeProcesses, thisMachine, type ProcessReader } from './node/owner-liveness.ts';
