/** Tools that the service runs itself: their calls and results stay in the message, in order, and go back with it. */
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fromAiSdk } from '../src/index.ts';
import { searchBlocks, searchReply as anthropicSearch } from './support/anthropic.ts';
import { models } from './support/models.ts';
import { inputOf, searchItems, searchReply as openaiSearch } from './support/openai-responses.ts';
import { ANSWER } from './support/service.ts';
import { startWireServer, type WireServer } from './support/wire-server.ts';

let server: WireServer;
beforeAll(async () => {
  server = await startWireServer();
});
afterAll(() => server.close());

const searching = models.filter(({ name }) => /^(anthropic|openai responses)/.test(name));
const ways = ['send', 'stream'] as const;

describe.each(
  searching.flatMap((model) => ways.map((way) => ({ model, way, name: `${model.name}, ${way}` }))),
)('$name', ({ model, way }) => {
  it('gives a search back with everything that the service wants of it', async () => {
    const isAnthropic = model.name.startsWith('anthropic');
    server.answerWith(isAnthropic ? anthropicSearch : openaiSearch, model.service.secondStep);
    const store = memoryStore();
    const agent = createAgent({
      provider: fromAiSdk(model.create({ baseURL: server.baseUrl, apiKey: 'key' })),
      providerTools: [
        isAnthropic
          ? { id: 'anthropic.web_search_20250305', name: 'web_search', args: {} }
          : { id: 'openai.web_search', name: 'web_search', args: {} },
      ],
      modelSettings: { providerOptions: model.providerOptions },
      store,
    });
    const say = (text: string) =>
      way === 'send' ? agent.send(text, { sessionId: 's' }) : agent.stream(text, { sessionId: 's' }).result;

    const found = await say('How is the weather?');
    // The service ran the search: the agent has no call of its own to run, and none to wait for.
    expect(found).toMatchObject({ text: ANSWER, steps: 1, toolCalls: [], finishReason: 'stop' });
    await say('And tomorrow?');

    const asked = server.requests[0]?.body.tools as readonly { readonly type: string }[];
    expect(asked.map(({ type }) => type)).toEqual([isAnthropic ? 'web_search_20250305' : 'web_search']);
    const body = server.requests[1]?.body ?? {};
    if (isAnthropic) {
      expect(model.service.itemsIn(body)).toEqual(searchBlocks);
      return;
    }
    const [reasoning, search] = searchItems;
    const input = inputOf(body);
    expect(input.find(({ type }) => type === 'reasoning')).toMatchObject({
      id: reasoning?.id,
      encrypted_content: reasoning?.encrypted_content,
    });
    expect(input.map(({ type, role }) => type ?? role)).toEqual(
      // v2 sends no searches back unless OpenAI keeps them.
      model.version === 'v2'
        ? ['user', 'reasoning', 'assistant', 'user']
        : ['user', 'reasoning', search?.type, 'assistant', 'user'],
    );
    expect(body.store).toBe(false);
  });
});
