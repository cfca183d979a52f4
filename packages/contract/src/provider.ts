/** A model, as the executor asks it: one request in, one complete response out. */
import type { JsonObject, JsonValue } from './json.ts';
import type { AssistantMessage, Message, ProviderMetadata } from './messages.ts';
import type { TokenUsage } from './usage.ts';

/** Why a model response ended. A provider that cannot complete one throws instead. */
export type ModelFinishReason = 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'other';

export interface LLMTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
}
/** A tool that the provider runs itself, such as web search. */
export interface ProviderTool {
  /** `<provider>.<tool>` */
  readonly id: `${string}.${string}`;
  readonly name: string;
  readonly args: JsonObject;
}
export interface ModelSettings {
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  readonly seed?: number | undefined;
  readonly reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'max' | undefined;
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly toolName: string } | undefined;
  readonly responseFormat?:
    { readonly type: 'json'; readonly schema?: JsonObject; readonly name?: string } | undefined;
  readonly providerOptions?: ProviderMetadata | undefined;
  readonly headers?: { readonly [name: string]: string } | undefined;
}
export interface LLMRequest {
  /** Absent: the provider's `modelId`. */
  readonly model?: string;
  readonly messages: readonly Message[];
  readonly tools: readonly LLMTool[];
  readonly providerTools: readonly ProviderTool[];
  readonly settings: ModelSettings;
  readonly signal: AbortSignal;
}
/** As the provider reports it; what it does not report is absent. */
export interface LLMUsage extends Partial<Omit<TokenUsage, 'totalTokens'>> {
  readonly costUsd?: number;
  readonly raw?: JsonValue;
}
/** A complete response. A stream that ended early is an `LLMProviderError`, never a short response. */
export interface LLMResponse {
  readonly message: AssistantMessage;
  readonly finishReason: ModelFinishReason;
  readonly rawFinishReason?: string;
  readonly usage: LLMUsage;
  readonly modelId?: string;
  readonly responseId?: string;
  readonly warnings?: readonly string[];
}
/** Deltas are for people who watch. The last event is one `finish` with the response that `generate` would have given. */
export type LLMStreamEvent =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly text: string }
  | {
      readonly type: 'tool-args-delta';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly text: string;
    }
  | { readonly type: 'finish'; readonly response: LLMResponse };
/** Everything in and out is JSON, apart from `signal`. It need not retry: the executor does. @throws LLMProviderError */
export interface LLMProvider {
  /** Key of its data in `providerMetadata`, for example `anthropic`. */
  readonly providerId: string;
  /** Part of the fingerprint. */
  readonly modelId: string;
  generate(request: LLMRequest): Promise<LLMResponse>;
  stream?(request: LLMRequest): AsyncIterable<LLMStreamEvent>;
}
