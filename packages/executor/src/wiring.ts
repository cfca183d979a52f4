/** For `@lousho/core`, which wires these together into an agent. Not for applications: it changes between minor versions. */
export { agentSource } from './agent-source.ts';
export { askQuestionTool } from './ask-question.ts';
export { executePlan, planSend, streamPlan, type OrderPlan, type SendPlan } from './execute.ts';
export { ephemeralApprovals } from './ephemeral-store.ts';
export { findApproval, isExpired } from './decide-approval.ts';
export { parkRun } from './park-run.ts';
export { planDecision, type DecisionWiring } from './resume-after-approval.ts';
export type { AgentSource } from './resolved-agent.ts';
export { DEFAULT_MAX_SUBAGENT_DEPTH, requireSubAgents } from './sub-agents.ts';
export { requireKnownOptions, requireWholeNumber, type OptionNames } from './require-option.ts';
export { resolveEngine, type Engine } from './run-options.ts';
export { isInLine } from './run-queue.ts';
export type { RunStop } from './run-stop.ts';
