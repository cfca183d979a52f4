/** The engine: one run from input to finished, paused, aborted or failed. */
export { AgentExecutor, type ExecutorForkOptions } from './execute.ts';
export type { ForkPatch } from './fork-patch.ts';
export type { ForkOptions, ForkResult } from './fork-run.ts';
export {
  compareTrajectories,
  type TrajectoryComparison,
  type TrajectoryDrift,
  type TrajectoryStep,
} from './compare-trajectories.ts';
export {
  resumeAfterApproval,
  streamAfterApproval,
  type ResumeAfterApprovalOptions,
} from './resume-after-approval.ts';
export { ToolRegistry } from './tool-registry.ts';
export type {
  AgentDefinition,
  EngineOptions,
  ExecuteOptions,
  InputOptions,
  LeaseOptions,
  RetryOptions,
} from './run-options.ts';
