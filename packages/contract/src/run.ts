/** Words that results, events, checkpoints and approvals share: why a run ended, for whom it ran, what limits it. */
import type { JsonObject, JsonValue } from './json.ts';
import type { Message, ToolFailureKind } from './messages.ts';
import type { ModelFinishReason } from './provider.ts';

/** Why a run ended. */
export type RunEnd = Exclude<ModelFinishReason, 'tool-calls'> | 'max-steps' | 'limit';
/** Why `send` and its like came back. */
export type FinishReason = RunEnd | 'awaiting-approval' | 'aborted';
export type PendingKind = 'session' | 'run';
export type DriftReaction = 'warn' | 'error' | 'ignore';
/** What an agent is recognised by, and what to do when a part differs. */
export interface DriftReactions {
  readonly model?: DriftReaction | undefined;
  /** Added, removed, or with another input schema. */
  readonly tools?: DriftReaction | undefined;
  readonly instructions?: DriftReaction | undefined;
}
/** One reaction for all parts, or one for each; a part that is not named gets `'warn'`. */
export type DriftPolicy = DriftReaction | DriftReactions;
/** On whose behalf a run acts. Saved with the run; a resume acts as the same one. */
export interface Principal {
  readonly id: string;
  readonly [claim: string]: JsonValue;
}
/** A failure as it is stored: no stack, message at most 2 kB. */
export interface StoredError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** `false`: the next attempt would fail the same way; `recover()` leaves the run alone. */
  readonly retryable: boolean;
  readonly failedAt?: string;
}
/** A call and what became of it. */
export interface ToolCallRecord {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: JsonValue;
  readonly result?: JsonValue;
  readonly isError?: true;
  readonly kind?: ToolFailureKind;
}
/** What a dynamic agent's functions see, saved with the run so that a resume resolves the same. */
export interface RunContext {
  readonly input: readonly Message[];
  readonly sessionId?: string;
  readonly metadata: JsonObject;
  readonly principal?: Principal;
}
export interface RunConfig {
  readonly ctx: RunContext;
  readonly model?: string;
}
export interface RunLimits {
  readonly maxTotalTokens?: number | undefined;
  readonly maxModelCalls?: number | undefined;
  readonly maxToolCalls?: number | undefined;
  /** Counts only what providers report. */
  readonly maxCostUsd?: number | undefined;
}

/** The limit that ended a run. */
export interface ReachedLimit {
  readonly name: keyof RunLimits;
  readonly max: number;
  readonly used: number;
}
