/** For `@lousho/core`, which wires these together into an agent. Not for applications: it changes between minor versions. */
export { childIdsBelow } from './child-leftovers.ts';
export { askQuestionTool } from './ask-question.ts';
export { claimMark } from './claim-mark.ts';
export { isOver, type Conversation, type ConversationState } from './conversation.ts';
export { newMessages } from './accept-input.ts';
export {
  executePlan,
  executeWork,
  perform,
  planSend,
  streamPlan,
  streamWork,
  type ApplicationCall,
  type OrderPlan,
  type SendPlan,
} from './execute.ts';
export { exclusively } from './exclusively.ts';
export { isInstructions } from './instructions.ts';
export { knownSpend, turnSpend } from './next-action.ts';
export type { HeldLease } from './lease-keeper.ts';
export { loadCheckpoint, loadOrDamaged } from './load-checkpoint.ts';
export { refuseSealed, sealingKeyOf } from './refuse-sealed.ts';
export { inLine, isInLine, isInsideLine } from './run-queue.ts';
export { turnResult } from './run-result.ts';
export { ephemeralApprovals, ephemeralCheckpoints } from './ephemeral-store.ts';
export { findApproval, isExpired } from './decide-approval.ts';
export { conversationSource, requireHandoffs, type HandoffSpec } from './handoffs.ts';
export { awaitingApproval } from './open-run.ts';
export { forkRun } from './fork-run.ts';
export { parkRun } from './park-run.ts';
export { planDecision, type DecisionWiring } from './resume-after-approval.ts';
export type { AgentSource } from './resolved-agent.ts';
export { DEFAULT_MAX_SUBAGENT_DEPTH, requireSubAgents } from './sub-agents.ts';
export { refuseOption, requireFunction, requireObject, requireWholeNumber } from './require-option.ts';
export { requireLimits, resolveEngine, type Engine } from './run-options.ts';
export type { RunStop } from './run-stop.ts';
export { shownTasks } from './task-ledger.ts';
export { taskRecordsIn } from './task-records.ts';
