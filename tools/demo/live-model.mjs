// The model of `--live`: whichever service the environment has a key for. Keys stay in the environment, which the processes inherit.
import { fromAiSdk } from '@lousho/provider-ai-sdk';
// The clients that the tests of provider-ai-sdk install: nobody has to install more for the demo.
import { createAnthropic } from 'anthropic-v3';
import { createOpenAICompatible } from 'openai-compatible-v3';
import { createOpenAI } from 'openai-v3';

export const howToGoLive = `--live needs a model. Set one of these, and run it again:

  OPENAI_API_KEY       a key of OpenAI
  ANTHROPIC_API_KEY    a key of Anthropic
  OPENAI_BASE_URL      any server that speaks OpenAI's chat completions, for
                       example http://localhost:11434/v1 of Ollama (with
                       OPENAI_API_KEY if it wants one)

--model <id> chooses another model of the service. A run makes about five calls.`;

/** `{ service, modelId }`, or `undefined` when the environment has none. @throws when a server with a base URL cannot say which models it has */
export async function findLiveModel(modelId, env = process.env) {
  if (isSet(env.OPENAI_BASE_URL))
    return { service: 'openai-compatible', modelId: modelId ?? (await firstModelOf(env)) };
  if (isSet(env.OPENAI_API_KEY)) return { service: 'openai', modelId: modelId ?? 'gpt-5-mini' };
  if (isSet(env.ANTHROPIC_API_KEY)) return { service: 'anthropic', modelId: modelId ?? 'claude-haiku-4-5' };
  return undefined;
}

export function liveProvider({ service, modelId }, env = process.env) {
  switch (service) {
    case 'openai-compatible': {
      const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = env;
      return fromAiSdk(createOpenAICompatible({ name: service, baseURL, apiKey })(modelId));
    }
    case 'openai':
      return fromAiSdk(createOpenAI()(modelId));
    case 'anthropic':
      return fromAiSdk(createAnthropic()(modelId));
    default:
      throw new Error(`Unknown service ${service}`);
  }
}

function isSet(value) {
  return value !== undefined && value !== '';
}

async function firstModelOf({ OPENAI_BASE_URL: url, OPENAI_API_KEY: key }) {
  const headers = isSet(key) ? { authorization: `Bearer ${key}` } : {};
  const response = await fetch(`${url.replace(/\/+$/, '')}/models`, { headers });
  const { data } = response.ok ? await response.json() : {};
  const id = data?.[0]?.id;
  if (typeof id !== 'string')
    throw new Error('OPENAI_BASE_URL does not say which models it has: choose one with --model <id>.');
  return id;
}
