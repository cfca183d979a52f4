/** The engine: one run from input to finished, paused, aborted or failed. */
export { AgentExecutor } from './execute.ts';
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
