/** The words, shapes and promises of Lousho. Stores import this package alone. */
export { askPerson, isPersonQuestion, type PersonQuestion } from './ask-person.ts';
export { assertNever } from './assert-never.ts';
export { type QueuedInput, type AgentRun } from './agent-run.ts';
export {
  type ApprovalQuestion,
  type ApprovalRequest,
  type ApprovalSnapshot,
  type ApprovalRecord,
  type ApprovalStore,
  type ApprovalDecision,
} from './approval.ts';
export type { LogEvent } from './checkpoint-log.ts';
export { nextEvent, type SharedPrefix } from './next-event.ts';
export { foldEvents, historyOf, headerFromEvent } from './fold-events.ts';
export {
  CHECKPOINT_VERSION,
  checkpointHeader,
  type CheckpointStatus,
  type ApprovalKind,
  type Decision,
  type CheckpointApproval,
  type DelegatedInFlight,
  type AgentFingerprint,
  type CheckpointBase,
  type InProgressCheckpoint,
  type AwaitingApprovalCheckpoint,
  type FinishedCheckpoint,
  type Checkpoint,
  type CheckpointContent,
  type CheckpointHeader,
  type CheckpointHistoryEntry,
  type CheckpointListEntry,
  type CheckpointHeaderEntry,
} from './checkpoint.ts';
export { defineTool, once } from './define-tool.ts';
export { errorTable, type ErrorDetails, type ErrorCode, type LLMErrorDetails } from './error-codes.ts';
export {
  SDKError,
  isSDKError,
  ConfigurationError,
  SessionAwaitingApprovalError,
  PropagatingToolError,
  LLMProviderError,
  storedError,
  cutText,
  type SDKErrorOptions,
  type ConfigurationErrorCode,
} from './errors.ts';
export {
  agentEventTypes,
  type AgentDrift,
  type CallEvent,
  type ErrorEvent,
  type AgentEventMap,
  type AgentEventType,
  type AgentEventBase,
  type AgentEvent,
  type AgentEventOf,
} from './events.ts';
export {
  deepFreeze,
  freezeFresh,
  freezeStored,
  isDeepFrozen,
  frozenCopy,
  appendFrozen,
  extendsList,
} from './freeze.ts';
export { type HookContext, type ToolHookContext, type AgentHooks, type BeforeToolOutcome } from './hooks.ts';
export {
  assertRunId,
  assertSessionId,
  assertCheckpointId,
  isCheckpointId,
  isSessionId,
  transcriptCheckpointId,
  turnCheckpointId,
  childCheckpointId,
  approvalIdInside,
  questionApprovalId,
  approvalIdOf,
  checkpointIdOfApproval,
  classifyCheckpointId,
  type CallPosition,
  type CheckpointIdKind,
} from './ids.ts';
export {
  toJson,
  canonicalJson,
  jsonEqual,
  objectOf,
  type JsonPrimitive,
  type JsonValue,
  type JsonObject,
  type JsonOutcome,
} from './json.ts';
export {
  takeLease,
  extendLease,
  holdsLease,
  endLease,
  type LeaseRecord,
  type TakeLeaseRequest,
  type ExtendLeaseRequest,
} from './lease.ts';
export { getCheckpointHistory, listCheckpoints, matchesStatus, compareSaves } from './list-checkpoints.ts';
export {
  type ProviderMetadata,
  type WithProviderMetadata,
  type TextPart,
  type ReasoningPart,
  type FileData,
  type FilePart,
  type ToolCallPart,
  type ToolFailureKind,
  type ToolFailure,
  type ApprovalAudit,
  type ToolResultPart,
  type CustomPart,
  type UserPart,
  type AssistantPart,
  type SystemMessage,
  type UserMessage,
  type AssistantMessage,
  type ToolMessage,
  type Message,
  type AgentInput,
} from './messages.ts';
export { parseCheckpoint, parseApprovalRecord, parseSessionRecord } from './parse-stored.ts';
export { platformClock, platformIds, platformProcesses, resolvePorts } from './platform-ports.ts';
export { type Clock, type Ids, type ProcessFacts, type Processes, type Ports } from './ports.ts';
export {
  type ModelFinishReason,
  type LLMTool,
  type ProviderTool,
  type ModelSettings,
  type LLMRequest,
  type LLMUsage,
  type LLMResponse,
  type LLMStreamEvent,
  type LLMProvider,
} from './provider.ts';
export {
  type ResultBase,
  type FinishedResult,
  type AbortedResult,
  type PausedResult,
  type ExecutionResult,
} from './result.ts';
export {
  type RunEnd,
  type FinishReason,
  type PendingKind,
  type DriftPolicy,
  type DriftReaction,
  type DriftReactions,
  type Principal,
  type StoredError,
  type ToolCallRecord,
  type RunContext,
  type RunConfig,
  type RunLimits,
  type ReachedLimit,
} from './run.ts';
export { isMessage } from './message-shape.ts';
export { type SessionRecord, type SessionStore, type TurnSummary } from './session.ts';
export { sessionAsCheckpoint, sessionOfCheckpoint } from './session-log.ts';
export { requireKnownOptions, type OptionNames } from './known-options.ts';
export { resolveStoreOptions, storeOptionNames, type ResolvedStoreOptions } from './store-options.ts';
export {
  CONTRACT_VERSION,
  type DeleteOptions,
  type HistoryOptions,
  type ListOptions,
  type PruneOptions,
  type PruneResult,
  type StoreClaims,
  type Lease,
  type CheckpointStore,
  type AgentStore,
  type FullCheckpointStore,
  type FullAgentStore,
  type StoreOptions,
  type DurabilityOptions,
} from './store.ts';
export {
  type BackgroundTask,
  type BackgroundTaskStatus,
  type StoredBackgroundTask,
} from './background-task.ts';
export { type RemoteAgent, type RemoteAnswer, type RemoteApproval, type RemoteTask } from './remote-agent.ts';
export { type Dynamic, type HandoffTarget, type SubAgent } from './sub-agent.ts';
export {
  type ModelCallInfo,
  type SegmentInfo,
  type Telemetry,
  type ToolCallEnd,
  type ToolCallInfo,
} from './telemetry.ts';
export {
  inputJsonSchema,
  validateArgs,
  validateArgsNow,
  type ArgsIssue,
  type ArgsOutcome,
} from './tool-schema.ts';
export {
  type StandardSchema,
  type StandardResult,
  type JsonSchema,
  type InputSchema,
  type ArgsOf,
  type ToolAnswer,
  type ToolContext,
  type ApprovalVerdict,
  type NeedsApproval,
  type OnInterrupted,
  type InterruptedOutcome,
  type ToolOptions,
  type ToolDefinition,
  type Tool,
  type SandboxCall,
  type SandboxExecute,
} from './tool.ts';
export {
  lastStep,
  ownCalls,
  textOf,
  lastAssistantText,
  answeredCalls,
  callRecords,
  resultOf,
  type LastStep,
  type AnsweredCall,
} from './transcript.ts';
export { handoffMark, withHandoffMark, type HandoffMark } from './handoff-mark.ts';
export {
  emptyUsage,
  addModelCall,
  addDelegated,
  addRun,
  sumUsage,
  type TokenUsage,
  type ModelUsage,
  type DelegatedUsage,
  type RunUsage,
} from './usage.ts';
