/** Code of the application that runs around model and tool calls. */
import type { JsonObject, JsonValue } from './json.ts';
import type { Message } from './messages.ts';
import type { LLMResponse } from './provider.ts';
import type { ExecutionResult } from './result.ts';
import type { Principal, ToolCallRecord } from './run.ts';

export interface HookContext {
  readonly runId: string;
  readonly sessionId?: string;
  readonly agentName: string;
  readonly step: number;
  readonly messages: readonly Message[];
  readonly metadata: JsonObject;
  readonly principal?: Principal;
  readonly subagentPath?: readonly string[];
}
export interface ToolHookContext extends HookContext {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: JsonValue;
  /** A person approved it before this hook ran; changed arguments are then refused. */
  readonly resumedAfterApproval?: true;
}
/** Awaited one by one. One that throws rejects the run; what was recorded stays. */
export interface AgentHooks {
  beforeModel?(ctx: HookContext): void | Promise<void>;
  afterModel?(ctx: HookContext, response: LLMResponse): void | Promise<void>;
  /** `args` are validated again; `result` replaces the call; `deny` refuses it. */
  beforeTool?(ctx: ToolHookContext): BeforeToolOutcome | Promise<BeforeToolOutcome>;
  /** Runs before the result is recorded; what it returns replaces it. When it throws, the tool's own result is recorded, then the run rejects. */
  afterTool?(
    ctx: ToolHookContext,
    record: ToolCallRecord,
  ): void | { readonly result: JsonValue } | Promise<void | { readonly result: JsonValue }>;
  onFinish?(ctx: HookContext, result: ExecutionResult): void | Promise<void>;
}
export type BeforeToolOutcome =
  void | { readonly args: JsonValue } | { readonly result: JsonValue } | { readonly deny: string };
