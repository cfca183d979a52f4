/** The model: a real one when there is a key for it, else a script. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import type { LLMProvider } from '@lousho/core';
import { fromAiSdk } from '@lousho/provider-ai-sdk';
import { scriptedModel } from './scripted-model.ts';

export function chooseModel(environment: NodeJS.ProcessEnv): LLMProvider {
  const { ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENAI_BASE_URL, MODEL, WORD_MS = '60' } = environment;
  if (ANTHROPIC_API_KEY)
    return fromAiSdk(createAnthropic({ apiKey: ANTHROPIC_API_KEY })(MODEL ?? 'claude-sonnet-4-5'));
  // Servers that speak like OpenAI mostly know chat completions alone.
  if (OPENAI_BASE_URL)
    return fromAiSdk(
      createOpenAI({ apiKey: OPENAI_API_KEY ?? 'none', baseURL: OPENAI_BASE_URL }).chat(
        MODEL ?? 'gpt-5-mini',
      ),
    );
  if (OPENAI_API_KEY) return fromAiSdk(createOpenAI({ apiKey: OPENAI_API_KEY })(MODEL ?? 'gpt-5-mini'));
  return scriptedModel(Number(WORD_MS));
}
