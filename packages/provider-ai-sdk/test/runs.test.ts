/** Runs over real models: what a person edits is what the model reads, and what fails is tried again or asked of somebody else. */
import {
  createAgent,
  defineTool,
  LLMProviderError,
  type Agent,
  type AgentConfig,
  type Message,
} from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, testPorts, type ManualClock } from '@lousho/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fromAiSdk, type FromAiSdkOptions } from '../src/index.ts';
import { modelNamed, models } from './support/models.ts';
import { thrownBy } from './support/requests.ts';
import { ANSWER, REASONING, TEXT } from './support/service.ts';
import { json, startWireServer, type WireServer } from './support/wire-server.ts';

let server: WireServer;
beforeAll(async () => {
  server = await startWireServer();
});
afterAll(() => server.close());

const providerOf = (name: string, options?: FromAiSdkOptions) =>
  fromAiSdk(modelNamed(name).create({ baseURL: server.baseUrl, apiKey: 'key' }), options);

function agentOf(config: Pick<AgentConfig, 'provider'> & Partial<AgentConfig>): Agent {
  const tools = ['weather', 'now'].map((name) =>
    defineTool({
      name,
      description: `Tells the ${name}.`,
      input: { type: 'object', properties: { city: { type: 'string' } } },
      execute: () => `the ${name}`,
    }),
  );
  return createAgent({ store: memoryStore(), tools, ...config });
}

const responses = models.filter(({ name }) => name.startsWith('openai responses'));

describe.each(responses)('a fork over $name', (model) => {
  const { service } = model;
  const edited = (messages: readonly Message[]): readonly Message[] =>
    messages.map((message) =>
      message.role !== 'assistant'
        ? message
        : {
            ...message,
            content: message.content.map((part) =>
              part.type === 'text' ? { ...part, text: 'EDITED' } : part,
            ),
          },
    );

  async function resumeEdited(options?: FromAiSdkOptions): Promise<string> {
    server.answerWith(service.firstStep, service.secondStep, service.secondStep);
    const agent = agentOf({ provider: providerOf(model.name, options) });
    await agent.send('How is the weather?', { sessionId: 'run' });
    const fork = await agent.fork('run', { fromStep: 1, patch: { messages: edited } });
    expect((await agent.resume(fork.sessionId))?.text).toBe(ANSWER);
    return JSON.stringify(server.requests[2]?.body);
  }

  it('sends what was edited, and the encrypted reasoning beside it', async () => {
    const sent = await resumeEdited();
    expect(sent).toContain('EDITED');
    expect(sent).not.toContain(TEXT);
    expect(sent).not.toContain('item_reference');
    expect(sent).toContain('"store":false');
    expect(server.requests[0]?.body.include).toEqual(['reasoning.encrypted_content']);
  });

  it('would be ignored where OpenAI may store: that is why it may not', async () => {
    expect(await resumeEdited({ openaiStore: true })).toContain('item_reference');
  });
});

describe.each(models.filter(({ name }) => /compatible|chat/.test(name)))(
  'arguments that are no JSON, of $name',
  (model) => {
    it.each(['send', 'stream'] as const)(
      'get an error result, and go back as an empty object: %s',
      async (way) => {
        const broken = {
          id: 'call_a',
          type: 'function',
          function: { name: 'weather', arguments: '{"city": Oslo' },
        };
        const message = { role: 'assistant', content: null, tool_calls: [{ index: 0, ...broken }] };
        const base = { id: 'c', created: 1, model: 'chat-test' };
        server.answerWith(
          ({ body }) =>
            body.stream === true
              ? {
                  headers: { 'content-type': 'text/event-stream' },
                  chunks: [
                    `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta: message, finish_reason: null }] })}\n\n`,
                    `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] })}\n\n`,
                    'data: [DONE]\n\n',
                  ],
                }
              : json({
                  ...base,
                  object: 'chat.completion',
                  choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
                }),
          model.service.secondStep,
        );
        const agent = agentOf({ provider: providerOf(model.name) });
        const result = await (way === 'send' ? agent.send('Go.') : agent.stream('Go.').result);
        expect(result).toMatchObject({
          text: ANSWER,
          toolCalls: [{ toolCallId: 'call_a', kind: 'validation' }],
        });
        const body = server.requests[1]?.body ?? {};
        expect(model.service.itemsIn(body)).toContainEqual({
          id: 'call_a',
          name: 'weather',
          arguments: '{}',
        });
        expect(JSON.stringify(model.service.resultsIn(body))).toContain('The arguments are not JSON.');
      },
    );
  },
);

describe('a model call that fails', () => {
  const busy = () =>
    json(
      { type: 'error', error: { type: 'rate_limit_error', message: 'Slow down.' } },
      { status: 429, headers: { 'retry-after': '7' } },
    );
  const refused = () =>
    json({ type: 'error', error: { type: 'invalid_request_error', message: 'Too long.' } }, { status: 400 });

  /** Moves time on as soon as the run waits for it, as often as it does. */
  function waitingOnly(clock: ManualClock): {
    readonly waits: number[];
    readonly onEvent: AgentConfig['onEvent'];
  } {
    const waits: number[] = [];
    return {
      waits,
      onEvent(event) {
        if (event.type !== 'provider.retry') return;
        waits.push(event.delayMs);
        setImmediate(() => void clock.advance(event.delayMs));
      },
    };
  }

  it.each(models)('is made again after as long as the service asks: $name', async (model) => {
    server.answerWith(busy, model.service.firstStep, busy, busy, model.service.secondStep);
    const clock = manualClock();
    const ports = testPorts(clock);
    const { waits, onEvent } = waitingOnly(clock);
    const agent = agentOf({
      provider: providerOf(model.name),
      store: memoryStore({ ports }),
      ports,
      onEvent,
    });
    const result = await agent.send('How is the weather?', { sessionId: 'run' });
    expect(result).toMatchObject({ text: ANSWER, steps: 2 });
    expect(waits).toEqual([7_000, 7_000, 7_000]);
    expect(server.requests).toHaveLength(5);
  });

  it('leaves a run that says whether to resume it', async () => {
    const { service } = modelNamed('anthropic v3');
    server.answerWith(service.firstStep, refused);
    const agent = agentOf({ provider: providerOf('anthropic v3') });
    const error = await thrownBy(agent.send('How is the weather?', { sessionId: 'run' }));
    expect((error as LLMProviderError).details).toMatchObject({ kind: 'api', status: 400, retryable: false });
    expect(await agent.pending()).toMatchObject([
      { sessionId: 'run', lastError: { message: 'Too long.', retryable: false } },
    ]);

    server.answerWith(service.secondStep);
    expect((await agent.resume('run'))?.text).toBe(ANSWER);
    expect(service.itemsIn(server.requests[0]?.body ?? {})).toEqual(service.itemsOfFirstStep);
  });

  it.each([
    ['openai responses v4', 'anthropic v4'],
    ['anthropic v3', 'openai responses v3'],
    ['openai responses v2', 'openai-compatible v3'],
  ])('of %s is made of %s, which reads all of the run but the reasoning of the other', async (own, other) => {
    const [ownService, otherService] = [modelNamed(own).service, modelNamed(other).service];
    server.answerWith(ownService.firstStep, refused, otherService.secondStep);
    const agent = agentOf({ provider: providerOf(own), fallbackModels: [providerOf(other)] });
    const result = await agent.send('How is the weather?', { sessionId: 'run' });
    expect(result).toMatchObject({ text: ANSWER, steps: 2 });
    const [, , last] = server.requests;
    expect(last?.path).toBe(otherService.path);
    expect(otherService.resultsIn(last?.body ?? {}).map(({ content }) => content)).toEqual([
      'the weather',
      'the now',
    ]);
    const sent = JSON.stringify(last?.body);
    expect(sent).toContain(TEXT);
    expect(sent).not.toMatch(/SIGNATURE|REDACTED|ENCRYPTED/);
    if (!other.includes('compatible')) expect(sent).not.toContain(REASONING);
  });
});
