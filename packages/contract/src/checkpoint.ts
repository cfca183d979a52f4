/** The one state of a run. Everything else about a run is a function of this value. */
import type { ApprovalQuestion } from './approval.ts';
import type { StoredBackgroundTask } from './background-task.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Message, ToolResultPart } from './messages.ts';
import type { Principal, ReachedLimit, RunConfig, RunEnd, StoredError } from './run.ts';
import type { DelegatedUsage, RunUsage } from './usage.ts';

export type CheckpointStatus = 'in-progress' | 'awaiting-approval' | 'finished';
/** `tool`: run this call? `question`: the model or a tool asks. `interrupted`: this call may have run already, run it again? */
export type ApprovalKind = 'tool' | 'question' | 'interrupted';

/** Format number of a checkpoint that this release writes. */
export const CHECKPOINT_VERSION = 1;

export interface Decision {
  readonly approved: boolean;
  /** `person`: somebody resolved it. `callback`: the agent's `approve`. `expiry`: nobody did in time. */
  readonly source: 'person' | 'callback' | 'expiry';
  readonly by?: string;
  readonly note?: string;
  /** The arguments to run with instead of the proposed ones; valid for the tool's schema. */
  readonly args?: JsonValue;
  readonly answer?: string;
  readonly decidedAt: string;
}
/** One call that waits, or waited, for a person. */
export interface CheckpointApproval {
  /** Made from run, step and position: asking again after a crash gives the same id. */
  readonly id: string;
  readonly kind: ApprovalKind;
  readonly toolCallId: string;
  /** SHA-256 over tool name and canonical arguments: what the person saw is what runs. */
  readonly argsHash: string;
  /** What the person saw, when a hook changed the call's arguments before the pause; else they are the call's. */
  readonly args?: JsonValue;
  readonly createdAt: string;
  readonly expiresAt?: string;
  readonly decision?: Decision;
  /** The pause is inside this child of the `task` call `toolCallId`; the decision is handed down to it. */
  readonly childId?: string;
  /** The tool itself asks, in the middle of its work (`askPerson`). The question of an `ask_question` call is in its arguments. */
  readonly question?: ApprovalQuestion;
  /** What the tool gets back with the answer. */
  readonly state?: JsonValue;
}
/** What the lead knows of an unfinished child's spend; not yet in `usage`. */
export interface DelegatedInFlight {
  readonly checkpointId: string;
  readonly usage: DelegatedUsage;
}
export interface AgentFingerprint {
  /** Fingerprints of different versions are never compared. */
  readonly version: number;
  /** 16 hex characters of a SHA-256 over the parts. */
  readonly hash: string;
  readonly model?: string;
  /** Tool name to the hash of its JSON input schema. */
  readonly tools: { readonly [toolName: string]: string };
  /** Hash of the system instructions. */
  readonly instructions: string;
}
export interface CheckpointBase {
  readonly version: number;
  readonly runId: string;
  /** `name` of the agent that made it; `recover()` only takes its own. */
  readonly agentName: string;
  /** The whole transcript, valid for every provider apart from the last message's open calls. */
  readonly messages: readonly Message[];
  /** Model responses of this run so far: 1 after the first. */
  readonly stepIndex: number;
  readonly usage: RunUsage;
  /** Of a turn that took input when its budget was spent, and went on with a run of its own for it: what the runs before that one spent. */
  readonly spentBefore?: RunUsage;
  /** The caller's own state. `null` is a value, absent means never set. */
  readonly businessState?: JsonValue;
  /** Where in `messages` the input of this run is. */
  readonly runInput: { readonly start: number; readonly count: number };
  /** Input that waits until the open calls have results, then joins the transcript in this order. */
  readonly heldInput: readonly Message[];
  /** Every `inputId` that is in the transcript or held back. */
  readonly inputIds: readonly string[];
  /** Results that cannot be placed yet because an earlier call of the step is still open; in the order they settled. */
  readonly settledResults: readonly ToolResultPart[];
  /** Calls of the last message that may have begun (approved ones, and tools whose `onInterrupted` is not `'retry'`). */
  readonly startedToolCallIds: readonly string[];
  /** Approvals of the last message's calls, decided ones included, until every call has a result. Call order. */
  readonly approvals: readonly CheckpointApproval[];
  readonly delegatedInFlight: readonly DelegatedInFlight[];
  /** Tasks that this run gave in the background, in the order of their results; absent when there are none. */
  readonly backgroundTasks?: readonly StoredBackgroundTask[];
  /** Who answers after a handoff; absent: the agent itself. */
  readonly activeAgent?: string;
  readonly fingerprint?: AgentFingerprint;
  readonly runConfig?: RunConfig;
  readonly principal?: Principal;
  readonly metadata?: JsonObject;
  readonly forkedFrom?: { readonly sessionId: string; readonly step: number };
  /** W3C trace context of the last stretch of execution, so that the next one can link to it. */
  readonly traceparent?: string;
  readonly savedAt: string;
}
/** Executing, or interrupted, or aborted by a person, or failed. */
export interface InProgressCheckpoint extends CheckpointBase {
  readonly status: 'in-progress';
  /** A person stopped it: only `send` or `resume` continues it. */
  readonly finishReason?: 'aborted';
  readonly lastError?: StoredError;
  /** Failed attempts in a row. */
  readonly attempts?: number;
  /** Executions that began since the last progress, crashes included. 0: a fork that nobody has started. */
  readonly startsWithoutProgress?: number;
  /** When `recover()` gave up on it and said so; progress or an explicit resume removes it. */
  readonly parkedAt?: string;
}
/** At least one of `approvals` is undecided. */
export interface AwaitingApprovalCheckpoint extends CheckpointBase {
  readonly status: 'awaiting-approval';
  /** First of `approvalIds`. */
  readonly approvalId: string;
  /** The undecided ones in call order. Follows from `approvals`; written for readers, never decided on. */
  readonly approvalIds: readonly string[];
}
export interface FinishedCheckpoint extends CheckpointBase {
  readonly status: 'finished';
  readonly finishReason: RunEnd;
  readonly limit?: ReachedLimit;
}
export type Checkpoint = InProgressCheckpoint | AwaitingApprovalCheckpoint | FinishedCheckpoint;

/** What grows with the conversation, or is the caller's own: a header leaves it out. */
export type CheckpointContent = 'messages' | 'inputIds' | 'heldInput' | 'settledResults' | 'businessState';
type HeaderOf<C> = C extends Checkpoint
  ? Omit<C, CheckpointContent> & { readonly messageCount: number }
  : never;
/** A checkpoint without its content: what listing a store costs. */
export type CheckpointHeader = HeaderOf<Checkpoint>;

export function checkpointHeader(checkpoint: Checkpoint): CheckpointHeader {
  const {
    messages,
    inputIds: _ids,
    heldInput: _held,
    settledResults: _settled,
    businessState: _state,
    ...header
  } = checkpoint;
  return { ...header, messageCount: messages.length };
}

export interface CheckpointHistoryEntry {
  /** `checkpoint.stepIndex`. Two saves of one step are two entries. */
  readonly step: number;
  readonly savedAt: string;
  readonly status: CheckpointStatus;
  readonly checkpoint: Checkpoint;
}
export interface CheckpointListEntry {
  /** The checkpoint id. */
  readonly sessionId: string;
  readonly status: CheckpointStatus;
  /** `null` with `error` when the record is damaged; `status` is then `in-progress`. */
  readonly checkpoint: Checkpoint | null;
  readonly error?: StoredError;
}
export interface CheckpointHeaderEntry {
  /** The checkpoint id. */
  readonly sessionId: string;
  readonly status: CheckpointStatus;
  readonly header: CheckpointHeader | null;
  readonly error?: StoredError;
}
