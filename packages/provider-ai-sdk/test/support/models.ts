/** The twelve models: four wire formats, each as the AI SDK 5, 6 and 7 speak it (specification v2, v3 and v4). */
import { createAnthropic as anthropicV2 } from 'anthropic-v2';
import { createAnthropic as anthropicV3 } from 'anthropic-v3';
import { createAnthropic as anthropicV4 } from 'anthropic-v4';
import { createOpenAICompatible as compatibleV2 } from 'openai-compatible-v2';
import { createOpenAICompatible as compatibleV3 } from 'openai-compatible-v3';
import { createOpenAICompatible as compatibleV4 } from 'openai-compatible-v4';
import { createOpenAI as openaiV2 } from 'openai-v2';
import { createOpenAI as openaiV3 } from 'openai-v3';
import { createOpenAI as openaiV4 } from 'openai-v4';
import type { ProviderMetadata } from '@lousho/contract';
import type { AiSdkLanguageModel } from '../../src/index.ts';
import { anthropic } from './anthropic.ts';
import { openaiChat, openaiCompatible } from './openai-chat.ts';
import { openaiResponses } from './openai-responses.ts';
import type { Service } from './service.ts';

interface ModelSetup {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly fetch?: typeof fetch;
}
export interface TestedModel {
  /** For example `anthropic v3`. */
  readonly name: string;
  readonly version: 'v2' | 'v3' | 'v4';
  readonly service: Service;
  readonly create: (setup: ModelSetup) => AiSdkLanguageModel;
  readonly providerOptions: ProviderMetadata;
}

const versions = ['v2', 'v3', 'v4'] as const;

const compatible = { v2: compatibleV2, v3: compatibleV3, v4: compatibleV4 };
const openai = { v2: openaiV2, v3: openaiV3, v4: openaiV4 };
const claude = { v2: anthropicV2, v3: anthropicV3, v4: anthropicV4 };

export const models: readonly TestedModel[] = versions.flatMap((version) => [
  {
    name: `openai-compatible ${version}`,
    version,
    service: openaiCompatible,
    create: (setup) => compatible[version]({ name: 'local', includeUsage: true, ...setup }).chatModel('chat'),
    providerOptions: {},
  },
  {
    name: `openai chat ${version}`,
    version,
    service: openaiChat,
    create: (setup) => openai[version](setup).chat('gpt-4o'),
    providerOptions: {},
  },
  {
    name: `openai responses ${version}`,
    version,
    service: openaiResponses,
    create: (setup) => openai[version](setup).responses('gpt-5'),
    providerOptions: { openai: { reasoningSummary: 'auto' } },
  },
  {
    name: `anthropic ${version}`,
    version,
    service: anthropic,
    create: (setup) => claude[version](setup)('claude-sonnet-4-5'),
    providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } },
  },
]);

export function modelNamed(name: string): TestedModel {
  const model = models.find((one) => one.name === name);
  if (model === undefined) throw new Error(`There is no model "${name}".`);
  return model;
}
