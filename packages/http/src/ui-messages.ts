/** Messages and stream chunks as the AI SDK's `useChat` reads them (UI message stream protocol v1; the chunk set of `ai` 6). */
import type { ApprovalKind, ApprovalRequest, JsonValue } from '@lousho/contract';

/** A decision about a call, as a tool part carries it. */
export interface UIApproval {
  readonly id: string;
  readonly approved?: boolean;
  readonly reason?: string;
}
export interface UIToolPart {
  /** `tool-<name>` */
  readonly type: `tool-${string}`;
  readonly toolCallId: string;
  readonly state:
    | 'input-available'
    | 'approval-requested'
    | 'approval-responded'
    | 'output-available'
    | 'output-error'
    | 'output-denied';
  readonly input: JsonValue;
  readonly output?: JsonValue;
  readonly errorText?: string;
  readonly providerExecuted?: true;
  readonly approval?: UIApproval;
}
/** A call that waits for a person and that no tool part can show: one inside a sub-agent. */
export interface UIApprovalData {
  readonly approvalId: string;
  readonly kind: ApprovalKind;
  readonly toolName: string;
  readonly args: JsonValue;
  readonly subagentPath?: readonly string[];
  readonly question?: ApprovalRequest['question'];
  readonly expiresAt?: string;
}
export type UIPart =
  | { readonly type: 'step-start' }
  | { readonly type: 'text' | 'reasoning'; readonly text: string; readonly state?: 'done' }
  | {
      readonly type: 'file';
      readonly mediaType: string;
      readonly url: string;
      readonly filename?: string;
    }
  | { readonly type: 'data-lousho-approval'; readonly id: string; readonly data: UIApprovalData }
  | UIToolPart;
export interface UIMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: readonly UIPart[];
}

export type UIChunk =
  | { readonly type: 'start'; readonly messageId: string }
  | { readonly type: 'start-step' | 'finish-step' }
  | { readonly type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | {
      readonly type: 'tool-input-available';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: JsonValue;
      readonly providerExecuted?: true;
    }
  | {
      readonly type: 'tool-input-error';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: JsonValue;
      readonly errorText: string;
    }
  | { readonly type: 'tool-approval-request'; readonly approvalId: string; readonly toolCallId: string }
  | { readonly type: 'tool-output-available'; readonly toolCallId: string; readonly output: JsonValue }
  | { readonly type: 'tool-output-error'; readonly toolCallId: string; readonly errorText: string }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'file'; readonly url: string; readonly mediaType: string }
  | { readonly type: 'data-lousho-approval'; readonly id: string; readonly data: UIApprovalData }
  | { readonly type: 'data-lousho-handoff'; readonly data: { readonly from: string; readonly to: string } }
  | { readonly type: 'error'; readonly errorText: string }
  | { readonly type: 'abort' }
  | {
      readonly type: 'finish';
      readonly finishReason: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'other';
    };
