/** Messages as the conventions write them: JSON text, in the shape of their schemas. Nothing that only one provider can read goes out. */
import type {
  AssistantMessage,
  AssistantPart,
  FilePart,
  JsonValue,
  LLMTool,
  Message,
  SystemMessage,
  UserPart,
} from '@lousho/contract';

type Json = { readonly [name: string]: JsonValue };

/** The leading system messages: a provider gets them apart from the conversation. */
export function systemInstructions(messages: readonly Message[]): string | undefined {
  const leading = leadingSystem(messages);
  return leading.length === 0
    ? undefined
    : JSON.stringify(leading.map(({ content }) => ({ type: 'text', content })));
}

export function inputMessages(messages: readonly Message[]): string {
  const conversation = messages.slice(leadingSystem(messages).length);
  return JSON.stringify(conversation.map((message) => ({ role: message.role, parts: partsOf(message) })));
}

export function outputMessage({ role, content }: AssistantMessage): string {
  return JSON.stringify([{ role, parts: content.flatMap(partOf) }]);
}

export function outputText(text: string): string {
  return JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: text }] }]);
}

/** Names only: the schemas would make each span as large as the agent. */
export function toolDefinitions(tools: readonly LLMTool[]): string {
  return JSON.stringify(tools.map(({ name }) => ({ type: 'function', name })));
}

function leadingSystem(messages: readonly Message[]): readonly SystemMessage[] {
  const end = messages.findIndex(({ role }) => role !== 'system');
  return messages.slice(0, end === -1 ? messages.length : end) as readonly SystemMessage[];
}

function partsOf(message: Message): readonly Json[] {
  switch (message.role) {
    case 'assistant':
      return message.content.flatMap(partOf);
    case 'tool':
      return message.content.map(({ toolCallId, result }) => ({
        type: 'tool_call_response',
        id: toolCallId,
        response: result,
      }));
    default:
      return typeof message.content === 'string'
        ? [{ type: 'text', content: message.content }]
        : message.content.flatMap(partOf);
  }
}

function partOf(part: UserPart | AssistantPart): readonly Json[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', content: part.text }];
    case 'reasoning':
      // Without words it is a signature, which only its provider can read.
      return part.text === '' ? [] : [{ type: 'reasoning', content: part.text }];
    case 'file':
      return [filePart(part)];
    case 'tool-call': {
      const { toolCallId: id, toolName: name, args } = part;
      return part.providerExecuted === true
        ? [{ type: 'server_tool_call', id, name, server_tool_call: { type: name, arguments: args } }]
        : [{ type: 'tool_call', id, name, arguments: args }];
    }
    case 'tool-result': {
      const { toolCallId: id, toolName: type, result } = part;
      return [{ type: 'server_tool_call_response', id, server_tool_call_response: { type, result } }];
    }
    case 'custom':
      return [{ type: part.kind }];
  }
}

/** Bytes stay where they are: one picture would fill a span. */
function filePart({ mediaType, data }: FilePart): Json {
  const about = { mime_type: mediaType, modality: modalityOf(mediaType) };
  switch (data.type) {
    case 'url':
      return { type: 'uri', ...about, uri: data.url };
    case 'reference':
      return { type: 'file', ...about, file_id: Object.values(data.reference)[0] ?? '' };
    case 'text':
      return { type: 'text', content: data.text };
    case 'data':
      return { type: 'inline_file', ...about, base64_length: data.data.length };
  }
}

function modalityOf(mediaType: string): string {
  const [kind = ''] = mediaType.split('/');
  return ['image', 'video', 'audio'].includes(kind) ? kind : 'document';
}
