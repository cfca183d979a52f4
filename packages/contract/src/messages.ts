/** Messages as ordered parts, so that a provider's own items survive the round trip in their order. */
import type { JsonObject, JsonValue } from './json.ts';

/** Opaque data of one provider (signatures, item ids), by provider id. Kept untouched and given back to that provider. */
export type ProviderMetadata = { readonly [provider: string]: JsonObject };

export interface WithProviderMetadata {
  readonly providerMetadata?: ProviderMetadata;
}
export interface TextPart extends WithProviderMetadata {
  readonly type: 'text';
  readonly text: string;
}
export interface ReasoningPart extends WithProviderMetadata {
  readonly type: 'reasoning';
  /** May be empty: a signature in `providerMetadata` alone is worth keeping. */
  readonly text: string;
}
/** `data` is base64. `reference` maps a provider id to that provider's own file id. */
export type FileData =
  | { readonly type: 'data'; readonly data: string }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'reference'; readonly reference: { readonly [provider: string]: string } }
  | { readonly type: 'text'; readonly text: string };
/** Also images: `mediaType: 'image/png'`. */
export interface FilePart extends WithProviderMetadata {
  readonly type: 'file';
  readonly mediaType: string;
  readonly filename?: string;
  readonly data: FileData;
}
export interface ToolCallPart extends WithProviderMetadata {
  readonly type: 'tool-call';
  /** Unique inside its message: a repeated id gets a suffix before the first save. */
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: JsonValue;
  /** The text that was no JSON. `args` is then `{}` and the call gets a `validation` result. */
  readonly invalidArgs?: string;
  /** The provider runs it and puts its result into the same message. We never run it and never wait for it. */
  readonly providerExecuted?: true;
}
/** Why a result did not come from the tool's own `execute`. */
export type ToolFailureKind =
  /** The arguments did not fit the schema. */
  | 'validation'
  /** No tool of that name. */
  | 'not-found'
  /** The tool threw, timed out, or returned what JSON cannot say. */
  | 'execution'
  /** A person said no. */
  | 'rejected'
  /** `needsApproval` or a hook said no, or the approval expired. */
  | 'denied'
  /** The run was aborted. */
  | 'cancelled'
  /** Steered away before it began, a handoff that the run could not make any more, or left over by an old snapshot. */
  | 'not-run'
  /** It had begun when the process died; it may or may not have taken effect. */
  | 'interrupted';
/** The `result` of a call with a `kind`. */
export interface ToolFailure {
  readonly error: string;
  /** What it is recognised by, of failures that are ours. */
  readonly code?: string;
  /** What the person who rejected it wrote. */
  readonly note?: string;
  readonly issues?: readonly { readonly path: string; readonly message: string }[];
}
export interface ToolResultPart extends WithProviderMetadata {
  readonly type: 'tool-result';
  readonly toolCallId: string;
  readonly toolName: string;
  /** The tool's own value as JSON, or a `ToolFailure` when `kind` is there. */
  readonly result: JsonValue;
  readonly isError?: true;
  readonly kind?: ToolFailureKind;
  /** Audit of the decision behind this result. */
  readonly approval?: ApprovalAudit;
  /** Audits of the decisions inside the sub-agent that this call ran, and of the answers to what its tool asked. */
  readonly innerApprovals?: readonly ApprovalAudit[];
}
/** Who decided what, and when. `proposedArgs`: what the model had asked, when a person changed it. */
export interface ApprovalAudit {
  readonly id: string;
  readonly approved: boolean;
  /** Absent: a person decided. */
  readonly source?: 'callback' | 'expiry';
  readonly decidedAt: string;
  readonly by?: string;
  readonly note?: string;
  readonly proposedArgs?: JsonValue;
}
/** Something that a provider emits and we do not model. Kept in its place and given back, never interpreted. */
export interface CustomPart extends WithProviderMetadata {
  readonly type: 'custom';
  readonly kind: string;
  readonly data?: JsonValue;
}
export type UserPart = TextPart | FilePart;
/** `tool-result` only for calls with `providerExecuted`. */
export type AssistantPart = TextPart | ReasoningPart | FilePart | ToolCallPart | ToolResultPart | CustomPart;

export interface SystemMessage extends WithProviderMetadata {
  readonly role: 'system';
  readonly content: string;
}
export interface UserMessage extends WithProviderMetadata {
  readonly role: 'user';
  readonly content: string | readonly UserPart[];
}
export interface AssistantMessage extends WithProviderMetadata {
  readonly role: 'assistant';
  readonly content: readonly AssistantPart[];
}
/** One message a result, directly behind the assistant message, in call order. */
export interface ToolMessage extends WithProviderMetadata {
  readonly role: 'tool';
  readonly content: readonly [ToolResultPart];
}
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** A text, the parts of one user message, one message, or several. `[]` adds nothing. */
export type AgentInput = string | readonly UserPart[] | Message | readonly Message[];
