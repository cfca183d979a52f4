/** What a model said, as our parts in its order. */
import {
  LLMProviderError,
  type AssistantPart,
  type CustomPart,
  type FileData,
  type FilePart,
  type JsonValue,
  type ToolCallPart,
  type ToolResultPart,
} from '@lousho/contract';
import type {
  AiSdkContent,
  AiSdkFile,
  AiSdkFileData,
  AiSdkToolCall,
  AiSdkToolResult,
} from './language-model.ts';
import { jsonOf, metadataOf } from './metadata.ts';

/** Of a custom part that a provider made; ours have no dot. */
export const PROVIDER_KIND = /^[^.]+\../;
/** Kind of the custom part that keeps a file made while reasoning (`v4`). */
export const REASONING_FILE = 'reasoning-file';

/** Streams of the `v4` Anthropic models have it, their complete responses do not, and nothing reads it. */
const IGNORED_KIND = 'anthropic.message_start';

/** Nothing for what is not worth keeping, and for types of a later release. */
export function readContent(content: AiSdkContent): readonly AssistantPart[] {
  switch (content.type) {
    case 'text':
    case 'reasoning':
      return readText(content.type, content.text, content.providerMetadata);
    case 'file':
      return [readFile(content)];
    case 'reasoning-file':
      return [readReasoningFile(content)];
    case 'tool-call':
      return [readCall(content)];
    case 'tool-result':
      return content.preliminary === true ? [] : [readResult(content)];
    case 'custom':
      return content.kind === IGNORED_KIND
        ? []
        : [{ type: 'custom', kind: content.kind, ...metadataOf(content.providerMetadata) }];
    case 'source':
    case 'tool-approval-request':
      return [readOther(content)];
    default:
      return [];
  }
}

/** Without text and without data of the provider it says nothing. A signature alone does: the next request needs it. */
export function readText(
  type: 'text' | 'reasoning',
  text: string,
  received: unknown,
): readonly AssistantPart[] {
  const metadata = metadataOf(received);
  return text === '' && metadata.providerMetadata === undefined ? [] : [{ type, text, ...metadata }];
}

function readCall(call: AiSdkToolCall): ToolCallPart {
  const { toolCallId, toolName, input, providerExecuted } = call;
  return {
    type: 'tool-call',
    toolCallId,
    toolName,
    ...readArgs(input),
    ...(providerExecuted === true ? { providerExecuted } : undefined),
    ...metadataOf(call.providerMetadata),
  };
}

/** Several models write nothing at all, or `null`, for a tool without parameters. */
function readArgs(input: string): Pick<ToolCallPart, 'args' | 'invalidArgs'> {
  if (input.trim() === '') return { args: {} };
  try {
    return { args: (JSON.parse(input) as JsonValue) ?? {} };
  } catch {
    return { args: {}, invalidArgs: input };
  }
}

function readResult(content: AiSdkToolResult): ToolResultPart {
  const { toolCallId, toolName, result, isError } = content;
  return {
    type: 'tool-result',
    toolCallId,
    toolName,
    result: jsonOf(result, `a result of "${toolName}"`),
    ...(isError === true ? { isError } : undefined),
    ...metadataOf(content.providerMetadata),
  };
}

function readFile(content: AiSdkFile): FilePart {
  const { mediaType, data, providerMetadata } = content;
  return { type: 'file', mediaType, data: readFileData(data), ...metadataOf(providerMetadata) };
}

function readReasoningFile(content: AiSdkFile): CustomPart {
  const { mediaType, data, providerMetadata } = content;
  return {
    type: 'custom',
    kind: REASONING_FILE,
    data: jsonOf({ mediaType, data: readFileData(data) }, 'a file'),
    ...metadataOf(providerMetadata),
  };
}

function readFileData(data: AiSdkFileData): FileData {
  if (typeof data === 'string' || data instanceof Uint8Array) return { type: 'data', data: base64Of(data) };
  switch (data.type) {
    case 'data':
      return { type: 'data', data: base64Of(data.data) };
    case 'url':
      return { type: 'url', url: String(data.url) };
    default:
      throw new LLMProviderError('The model gave a file of an unknown form.', {
        kind: 'invalid-response',
        retryable: true,
      });
  }
}

function base64Of(data: string | Uint8Array): string {
  if (typeof data === 'string') return data;
  let binary = '';
  for (const byte of data) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Kept for who shows the answer: where it comes from, and what the provider asks for a tool that it runs. No version takes it back. */
function readOther(content: AiSdkContent): CustomPart {
  const { type, providerMetadata, ...data } = content;
  return { type: 'custom', kind: type, data: jsonOf(data, `a ${type}`), ...metadataOf(providerMetadata) };
}
