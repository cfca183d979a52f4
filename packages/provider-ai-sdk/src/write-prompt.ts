/** Our messages as the prompt of an AI SDK model: the same parts in the same order, each with its provider's data. */
import {
  assertNever,
  LLMProviderError,
  type AssistantPart,
  type FileData,
  type FilePart,
  type JsonValue,
  type Message,
  type ToolCallPart,
  type UserPart,
} from '@lousho/contract';
import type { SpecVersion } from './language-model.ts';
import { mergeMetadata, providerOptionsOf } from './metadata.ts';
import { PROVIDER_KIND, REASONING_FILE } from './read-content.ts';
import { writeProviderResult, writeResult } from './write-result.ts';

export interface PromptOptions {
  readonly version: SpecVersion;
  /** Names of tools whose arguments are whatever their provider makes them. */
  readonly providerTools: ReadonlySet<string>;
}

interface PromptMessage {
  readonly role: Message['role'];
  readonly content: string | readonly object[];
  readonly providerOptions?: object;
}

/** @throws LLMProviderError for a file that models of this version cannot be given */
export function writePrompt(messages: readonly Message[], options: PromptOptions): readonly PromptMessage[] {
  return joinResults(messages)
    .map((message) => writeMessage(message, options))
    .filter((message) => message.role !== 'assistant' || message.content.length > 0);
}

/** Ours holds one result a message; some services want all results of a step in one. */
type JoinedMessage =
  | Exclude<Message, { readonly role: 'tool' }>
  | (Omit<Extract<Message, { readonly role: 'tool' }>, 'content'> & {
      readonly content: readonly Extract<Message, { readonly role: 'tool' }>['content'][0][];
    });

function joinResults(messages: readonly Message[]): readonly JoinedMessage[] {
  const joined: JoinedMessage[] = [];
  for (const message of messages) {
    const before = joined.at(-1);
    if (message.role !== 'tool' || before?.role !== 'tool') {
      joined.push(message);
      continue;
    }
    const providerMetadata = mergeMetadata(before.providerMetadata, message.providerMetadata);
    joined[joined.length - 1] = {
      role: 'tool',
      content: [...before.content, ...message.content],
      ...(providerMetadata === undefined ? undefined : { providerMetadata }),
    };
  }
  return joined;
}

function writeMessage(message: JoinedMessage, options: PromptOptions): PromptMessage {
  const { role } = message;
  const providerOptions = providerOptionsOf(message);
  switch (role) {
    case 'system':
      return { role, content: message.content, ...providerOptions };
    case 'user':
      return { role, content: writeUser(message.content, options), ...providerOptions };
    case 'assistant': {
      const content = message.content.flatMap((part) => writeAssistantPart(part, options));
      return { role, content, ...providerOptions };
    }
    case 'tool':
      return {
        role,
        content: message.content.map((part) => writeResult(part, options.version)),
        ...providerOptions,
      };
    default:
      return assertNever(message);
  }
}

function writeUser(content: string | readonly UserPart[], { version }: PromptOptions): readonly object[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text, ...providerOptionsOf(part) }
      : writeFile(part, version),
  );
}

function writeAssistantPart(part: AssistantPart, options: PromptOptions): readonly object[] {
  const providerOptions = providerOptionsOf(part);
  switch (part.type) {
    case 'text':
    case 'reasoning':
      // Services refuse an empty block; one with data of its provider (a signature, an item id) is no empty one.
      if (part.text === '' && providerOptions.providerOptions === undefined) return [];
      return [{ type: part.type, text: part.text, ...providerOptions }];
    case 'file':
      return [writeFile(part, options.version)];
    case 'tool-call':
      return [writeCall(part, options)];
    case 'tool-result':
      return [writeProviderResult(part)];
    case 'custom':
      return writeCustom(part.kind, part.data, providerOptions, options.version);
    default:
      return assertNever(part);
  }
}

/** Arguments that are no object got a `validation` result; sent back as they are they would make every later request invalid. */
function writeCall(part: ToolCallPart, { providerTools }: PromptOptions): object {
  const { toolCallId, toolName, args, providerExecuted } = part;
  const isSendable = isObject(args) || providerExecuted === true || providerTools.has(toolName);
  return {
    type: 'tool-call',
    toolCallId,
    toolName,
    input: isSendable ? args : {},
    ...(providerExecuted === true ? { providerExecuted } : undefined),
    ...providerOptionsOf(part),
  };
}

/** `v4` alone takes back what it made; a source or a request for an approval is nothing that any version takes back. */
function writeCustom(
  kind: string,
  data: JsonValue | undefined,
  providerOptions: object,
  version: SpecVersion,
): readonly object[] {
  if (version !== 4) return [];
  if (PROVIDER_KIND.test(kind)) return [{ type: 'custom', kind, ...providerOptions }];
  if (kind !== REASONING_FILE) return [];
  const file = data as unknown as Pick<FilePart, 'mediaType' | 'data'>;
  return [
    {
      type: 'reasoning-file',
      mediaType: file.mediaType,
      data: writeFileData(file.data, version),
      ...providerOptions,
    },
  ];
}

function writeFile(part: FilePart, version: SpecVersion): object {
  const { mediaType, filename, data } = part;
  return {
    type: 'file',
    mediaType,
    ...(filename === undefined ? undefined : { filename }),
    data: writeFileData(data, version),
    ...providerOptionsOf(part),
  };
}

/** Before `v4`: base64, bytes or a URL; since: the same words as ours. */
function writeFileData(data: FileData, version: SpecVersion): unknown {
  switch (data.type) {
    case 'data':
      return version === 4 ? data : data.data;
    case 'url':
      return writeUrl(data.url, version);
    case 'text':
      return version === 4 ? data : new TextEncoder().encode(data.text);
    case 'reference':
      if (version === 4) return data;
      throw unsupported(
        `A reference to a file of a provider needs a model of specification v4; this one is v${version}.`,
      );
    default:
      return assertNever(data);
  }
}

/** What a URL holds itself is sent as it is: no service would fetch it. */
function writeUrl(text: string, version: SpecVersion): unknown {
  const inside = /^data:[^,]*;base64,(?<base64>.*)$/s.exec(text)?.groups?.base64;
  if (inside !== undefined) return writeFileData({ type: 'data', data: inside }, version);
  const url = urlOf(text);
  return version === 4 ? { type: 'url', url } : url;
}

function urlOf(url: string): URL {
  try {
    return new URL(url);
  } catch (error) {
    throw unsupported(`The URL of a file is no URL: ${url.slice(0, 80)}`, error);
  }
}

function unsupported(message: string, cause?: unknown): LLMProviderError {
  return new LLMProviderError(message, { kind: 'unsupported', retryable: false }, { cause });
}

function isObject(value: JsonValue): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
