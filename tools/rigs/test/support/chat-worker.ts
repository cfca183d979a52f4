/** A chat in a Worker, as its author would write it: a model of the AI SDK, and runs in a KV namespace that outlives it. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createAgent, defineTool, type Tool } from '@lousho/core';
import { createChatHandler } from '@lousho/http';
import { fromAiSdk } from '@lousho/provider-ai-sdk';
import { KVStore, type KVNamespaceLike } from '@lousho/store-kv';

interface Env {
  readonly RUNS: KVNamespaceLike;
  /** The service of the model. */
  readonly MODEL: { readonly fetch: typeof fetch };
  /** Is told each time that a tool runs. */
  readonly TOOLS: { readonly fetch: typeof fetch };
}

export default {
  fetch(
    request: Request,
    { RUNS, MODEL, TOOLS }: Env,
    context: { waitUntil(work: Promise<void>): void },
  ): Promise<Response> {
    const anthropic = createAnthropic({
      baseURL: 'https://model/v1',
      apiKey: 'key',
      fetch: (input, init) => MODEL.fetch(input, init),
    });
    const tool = (name: string, needsApproval: boolean): Tool =>
      defineTool({
        name,
        description: name,
        input: { type: 'object', properties: { city: { type: 'string' } } },
        needsApproval,
        execute: async () => (await TOOLS.fetch(`https://tools/${name}`)).text(),
      });
    const agent = createAgent({
      provider: fromAiSdk(anthropic('claude-sonnet-4-5')),
      store: new KVStore(RUNS),
      tools: [tool('weather', false), tool('now', true)],
      lease: { ttlMs: 2_000 },
    });
    const handler = createChatHandler(agent, {
      authorize: () => true,
      waitUntil: (work) => context.waitUntil(work),
    });
    return handler(request);
  },
};
