/** A request as the options of an AI SDK call: prompt, tools and settings. */
import type { LLMRequest, ModelSettings, ProviderMetadata } from '@lousho/contract';
import type { SpecVersion } from './language-model.ts';
import { mergeMetadata } from './metadata.ts';
import { writePrompt } from './write-prompt.ts';

export interface CallTarget {
  readonly version: SpecVersion;
  /** For example `openai.responses`. */
  readonly provider: string;
  /** Used where a request says nothing else. */
  readonly settings: ModelSettings;
  /** Whether responses may stay on OpenAI's side. */
  readonly openaiStore: boolean;
}

export interface WrittenCall {
  readonly options: object;
  /** What could not be said to a model of this version. */
  readonly warnings: readonly string[];
}

/** @throws LLMProviderError for what models of this version cannot be given */
export function writeCall(request: LLMRequest, target: CallTarget): WrittenCall {
  const { version } = target;
  const settings = mergeSettings(target.settings, request.settings);
  const { reasoning, toolChoice, providerOptions, stopSequences, ...others } = settings;
  const providerTools = new Set(request.providerTools.map(({ name }) => name));
  const tools = writeTools(request, version);
  const allProviderOptions = withoutStore(providerOptions, target);
  return {
    options: {
      ...others,
      prompt: writePrompt(request.messages, { version, providerTools }),
      ...(tools.length === 0 ? undefined : { tools }),
      ...(tools.length === 0 || toolChoice === undefined
        ? undefined
        : { toolChoice: writeToolChoice(toolChoice) }),
      ...(stopSequences === undefined ? undefined : { stopSequences: [...stopSequences] }),
      ...(allProviderOptions === undefined ? undefined : { providerOptions: allProviderOptions }),
      ...(version === 4 && reasoning !== undefined ? { reasoning } : undefined),
      abortSignal: request.signal,
    },
    warnings:
      version !== 4 && reasoning !== undefined
        ? [`unsupported: reasoning: models of specification v${version} take it in providerOptions only`]
        : [],
  };
}

/** The request's own wins, setting by setting; of provider options, option by option; of headers, header by header. */
function mergeSettings(base: ModelSettings, own: ModelSettings): ModelSettings {
  const providerOptions = mergeMetadata(base.providerOptions, own.providerOptions);
  const headers =
    base.headers === undefined && own.headers === undefined ? undefined : { ...base.headers, ...own.headers };
  return withoutUndefined({ ...withoutUndefined(base), ...withoutUndefined(own), providerOptions, headers });
}

function withoutUndefined(settings: ModelSettings): ModelSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

/**
 * OpenAI's Responses API keeps responses by default, and the AI SDK then sends references to them instead of what the transcript
 * says: an edit of a fork would be ignored, and a run that waited too long would name items that are gone. Unless somebody
 * decided otherwise, everything is sent, encrypted reasoning too.
 */
function withoutStore(
  options: ProviderMetadata | undefined,
  { provider, openaiStore }: CallTarget,
): ProviderMetadata | undefined {
  if (openaiStore || !provider.endsWith('.responses')) return options;
  // The models of Azure have read either key, depending on their version.
  const keys = provider.includes('azure') ? ['azure', 'openai'] : ['openai'];
  if (keys.some((key) => options?.[key]?.store !== undefined)) return options;
  return mergeMetadata(options, Object.fromEntries(keys.map((key) => [key, { store: false }])));
}

function writeTools({ tools, providerTools }: LLMRequest, version: SpecVersion): readonly object[] {
  return [
    ...tools.map(({ name, description, inputSchema }) => ({
      type: 'function',
      name,
      description,
      inputSchema,
    })),
    ...providerTools.map(({ id, name, args }) => ({
      type: version === 2 ? 'provider-defined' : 'provider',
      id,
      name,
      args,
    })),
  ];
}

function writeToolChoice(choice: NonNullable<ModelSettings['toolChoice']>): object {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.toolName };
}
