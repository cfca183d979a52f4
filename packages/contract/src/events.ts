/** Everything that a run tells while it executes. */
import type { ApprovalRequest } from './approval.ts';
import type { ApprovalKind, CheckpointStatus } from './checkpoint.ts';
import type { JsonValue } from './json.ts';
import type { ToolFailureKind } from './messages.ts';
import type { ModelFinishReason } from './provider.ts';
import type { FinishReason } from './run.ts';
import type { ModelUsage, RunUsage } from './usage.ts';

export interface AgentDrift {
  readonly model?: { readonly saved?: string; readonly current?: string };
  readonly toolsAdded: readonly string[];
  readonly toolsRemoved: readonly string[];
  readonly toolsChanged: readonly string[];
  readonly instructions: boolean;
  /** The sub-agent that differs; absent: the agent itself. */
  readonly subagent?: string;
}

/* ── Events ── */

export interface CallEvent {
  readonly toolCallId: string;
  readonly toolName: string;
}
export interface ErrorEvent {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
}
/** Payload by type. Each `step.start` has one `step.done`; tool events lie between them. */
export interface AgentEventMap {
  /** First, once. `resumed`: the run was there before. */
  'run.start': { readonly agentName: string; readonly resumed: boolean };
  'step.start': { readonly step: number };
  'text.delta': { readonly text: string };
  /** The step's whole text, streamed or not. */
  'text.done': { readonly text: string };
  'reasoning.delta': { readonly text: string };
  /** In call order. */
  'tool.start': CallEvent & { readonly args: JsonValue };
  /** Instead of `tool.start`, for a call that a person decided. */
  'tool.resume': CallEvent & { readonly args: JsonValue; readonly approvalId: string };
  /** In the order they settle. */
  'tool.done': CallEvent & {
    readonly result: JsonValue;
    readonly durationMs: number;
    readonly replacedByHook?: true;
  };
  'tool.error': CallEvent & {
    readonly kind: ToolFailureKind;
    readonly error: ErrorEvent;
    readonly durationMs: number;
  };
  /** After the pause is saved; one for each call that waits. */
  'approval.requested': CallEvent & {
    readonly approvalId: string;
    readonly kind: ApprovalKind;
    readonly args: JsonValue;
    readonly question?: ApprovalRequest['question'];
    readonly expiresAt?: string;
  };
  'step.done': {
    readonly step: number;
    readonly finishReason: ModelFinishReason | 'awaiting-approval' | 'aborted' | 'steered' | 'error';
    readonly usage?: ModelUsage;
  };
  'checkpoint.saved': {
    readonly checkpointId: string;
    readonly status: CheckpointStatus;
    readonly step: number;
  };
  'input.queued': { readonly id: string; readonly text: string };
  'input.steered': { readonly id: string; readonly text: string; readonly applied: 'immediate' | 'queued' };
  /** That step's `step.start` follows at once. */
  'input.applied': { readonly id: string; readonly step: number };
  /** Directly after `run.start`. */
  'agent.drift': AgentDrift;
  /** Behind the `tool.done` of its call, which is stored in the save that makes `to` answer. */
  handoff: { readonly from: string; readonly to: string; readonly toolCallId: string };
  'provider.retry': { readonly attempt: number; readonly delayMs: number; readonly error: ErrorEvent };
  /** A model failed for good, and the next of `fallbackModels` is asked for this response. */
  'provider.fallback': { readonly from: string; readonly to: string; readonly error: ErrorEvent };
  /** The run rejects with it; `run.done` follows. */
  error: { readonly error: ErrorEvent };
  /** Last, once. In a session: after the transcript is saved. */
  'run.done': {
    readonly finishReason: FinishReason | 'error';
    readonly text: string;
    readonly usage?: RunUsage;
    readonly approvalIds?: readonly string[];
  };
}
export type AgentEventType = keyof AgentEventMap;
export interface AgentEventBase {
  /** Version of this list. */
  readonly v: 1;
  readonly runId: string;
  readonly sessionId?: string;
  /** From 0 without gaps, over one `AgentRun`. */
  readonly seq: number;
  /** ISO 8601. */
  readonly timestamp: string;
  /** Set on events of a sub-agent, outermost name first. */
  readonly subagentPath?: readonly string[];
  /** With `subagentPath`: the innermost `task` call that runs it. */
  readonly taskToolCallId?: string;
}
export type AgentEvent = {
  readonly [T in AgentEventType]: AgentEventBase & { readonly type: T } & AgentEventMap[T];
}[AgentEventType];
export type AgentEventOf<T extends AgentEventType> = Extract<AgentEvent, { readonly type: T }>;

const everyType: { readonly [T in AgentEventType]: true } = {
  'run.start': true,
  'step.start': true,
  'text.delta': true,
  'text.done': true,
  'reasoning.delta': true,
  'tool.start': true,
  'tool.resume': true,
  'tool.done': true,
  'tool.error': true,
  'approval.requested': true,
  'step.done': true,
  'checkpoint.saved': true,
  'input.queued': true,
  'input.steered': true,
  'input.applied': true,
  'agent.drift': true,
  handoff: true,
  'provider.retry': true,
  'provider.fallback': true,
  error: true,
  'run.done': true,
};
/** All types, for code that forwards events. Made from the type, so it cannot miss one. */
export const agentEventTypes = Object.keys(everyType) as readonly AgentEventType[];
