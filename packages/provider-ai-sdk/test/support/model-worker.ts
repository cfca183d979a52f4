/** An agent in a Worker: models of the AI SDK, and a KV namespace that outlives it. */
import { createAnthropic } from 'anthropic-v3';
import { createOpenAI } from 'openai-v3';
import { createOpenAICompatible } from 'openai-compatible-v4';
import { createAgent, defineTool } from '@lousho/core';
import { KVStore, type KVNamespaceLike } from '@lousho/store-kv';
import { fromAiSdk, type AiSdkLanguageModel } from '../../src/index.ts';

interface Env {
  readonly RUNS: KVNamespaceLike;
  /** The service of the model. */
  readonly MODEL: { readonly fetch: typeof fetch };
}

type Setup = { readonly baseURL: string; readonly apiKey: string; readonly fetch: typeof fetch };

const models: Readonly<Record<string, (setup: Setup) => AiSdkLanguageModel>> = {
  'anthropic v3': (setup) => createAnthropic(setup)('claude-sonnet-4-5'),
  'openai responses v3': (setup) => createOpenAI(setup).responses('gpt-5'),
  'openai-compatible v4': (setup) => createOpenAICompatible({ name: 'local', ...setup }).chatModel('chat'),
};

const weather = defineTool({
  name: 'weather',
  description: 'The weather in a city.',
  input: { type: 'object', properties: { city: { type: 'string' } } },
  execute: () => ({ celsius: 7 }),
});
const now = defineTool({
  name: 'now',
  description: 'The time.',
  input: { type: 'object', properties: {} },
  needsApproval: true,
  execute: () => '12:00',
});

export default {
  /** `/start?model=...` asks and pauses on a call; `/approve?model=...` lets it run and gives the answer. */
  async fetch(request: Request, { RUNS, MODEL }: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const name = searchParams.get('model') ?? '';
    const model = models[name]?.({
      baseURL: 'https://model/v1',
      apiKey: 'key',
      fetch: (input, init) => MODEL.fetch(input, init),
    });
    if (model === undefined) return new Response(`There is no model "${name}".`, { status: 404 });
    const agent = createAgent({
      provider: fromAiSdk(model),
      store: new KVStore(RUNS),
      tools: [weather, now],
    });
    if (pathname === '/start') {
      const { finishReason } = await agent.stream('How is the weather?', { sessionId: 'run' }).result;
      return Response.json({ finishReason });
    }
    const [waiting] = await agent.approvals.list();
    const { text } = await agent.approvals.streamResolve({ id: waiting?.id ?? '', approved: true }).result;
    return Response.json({ text });
  },
};
