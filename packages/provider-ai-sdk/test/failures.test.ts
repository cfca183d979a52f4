/** What real AI SDK models make of services that fail, and what an agent gets to know of it. */
import { LLMProviderError } from '@lousho/contract';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { fromAiSdk, type FromAiSdkOptions } from '../src/index.ts';
import { models, type TestedModel } from './support/models.ts';
import { requestOf, streamed, thrownBy, ways } from './support/requests.ts';
import { events, json, startWireServer, type WireServer } from './support/wire-server.ts';

let server: WireServer;
beforeAll(async () => {
  server = await startWireServer();
});
afterAll(() => server.close());

const providerOf = (model: TestedModel, options?: FromAiSdkOptions) =>
  fromAiSdk(model.create({ baseURL: server.baseUrl, apiKey: 'key' }), options);

/** For what the network brings. */
const patiently = { interval: 2, timeout: 20_000 };

const refusals = [
  {
    what: 'too many requests',
    reply: json(
      { type: 'error', error: { type: 'rate_limit_error', message: 'Slow down.' } },
      { status: 429, headers: { 'retry-after': '7' } },
    ),
    details: {
      kind: 'api',
      status: 429,
      retryable: true,
      retryAfterMs: 7_000,
      providerCode: 'rate_limit_error',
    },
  },
  {
    what: 'too many requests, with milliseconds',
    reply: json(
      { error: { message: 'Slow down.' } },
      { status: 429, headers: { 'retry-after': '7', 'retry-after-ms': '250' } },
    ),
    details: { kind: 'api', status: 429, retryable: true, retryAfterMs: 250 },
  },
  {
    what: 'unavailable until a date',
    reply: json(
      { error: { message: 'Later.' } },
      {
        status: 503,
        headers: { date: 'Mon, 30 Nov 2026 07:00:00 GMT', 'retry-after': 'Mon, 30 Nov 2026 07:00:20 GMT' },
      },
    ),
    details: { kind: 'api', status: 503, retryable: true, retryAfterMs: 20_000 },
  },
  {
    what: 'overloaded',
    reply: json(
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      { status: 529 },
    ),
    details: { kind: 'api', status: 529, retryable: true, providerCode: 'overloaded_error' },
  },
  {
    what: 'a wrong request',
    reply: json({ type: 'error', error: { type: 'invalid_request_error', message: 'No.' } }, { status: 400 }),
    details: { kind: 'api', status: 400, retryable: false, providerCode: 'invalid_request_error' },
  },
  {
    what: 'a wrong key',
    reply: json({ type: 'error', error: { type: 'authentication_error', message: 'Who?' } }, { status: 401 }),
    details: { kind: 'api', status: 401, retryable: false, providerCode: 'authentication_error' },
  },
  {
    what: 'a page of a proxy',
    reply: { status: 502, headers: { 'content-type': 'text/html' }, chunks: ['<h1>Bad gateway</h1>'] },
    details: { kind: 'api', status: 502, retryable: true },
  },
] as const;

describe.each(models)('$name', (model) => {
  const { service } = model;

  it.each(refusals.flatMap((refusal) => ways.map((way) => ({ ...refusal, ...way }))))(
    'says whether $what may pass: $way',
    async ({ reply, details, ask }) => {
      server.answerWith(() => reply);
      const error = await thrownBy(ask(providerOf(model), requestOf()));
      expect(error).toBeInstanceOf(LLMProviderError);
      expect((error as LLMProviderError).details).toEqual(details);
      expect(server.requests).toHaveLength(1);
    },
  );

  it('calls half a response invalid, and worth another try', async () => {
    server.answerWith(() => ({ headers: { 'content-type': 'application/json' }, chunks: ['{"id":'] }));
    const error = await thrownBy(providerOf(model).generate(requestOf()));
    expect((error as LLMProviderError).details).toMatchObject({ kind: 'invalid-response', retryable: true });
  });

  it('never takes a stream that a proxy ended for a whole answer, wherever it ended', async () => {
    const list = service.firstEvents;
    // The last event that says anything new is the second to last of all formats; from there on the answer is whole.
    for (let count = 0; count < list.length - 2; count += 1) {
      server.answerWith(() => events(list.slice(0, count)));
      const error = await thrownBy(streamed(providerOf(model), requestOf()));
      expect(error, `after ${count} events`).toBeInstanceOf(LLMProviderError);
      expect((error as LLMProviderError).retryable, `after ${count} events`).toBe(true);
    }
  });

  it('calls a connection that breaks in the middle of a stream a broken stream', async () => {
    server.answerWith(() =>
      events(service.firstEvents.slice(0, service.eventsUntilText + 1), { end: 'cut' }),
    );
    const error = await thrownBy(streamed(providerOf(model), requestOf()));
    expect((error as LLMProviderError).details).toMatchObject({
      kind: 'stream-interrupted',
      retryable: true,
    });
  });

  it.each(ways)('passes the abort of the request as it is: $way', async ({ ask }) => {
    server.answerWith(() => ({ chunks: [], end: 'hang' }));
    const aborting = new AbortController();
    const asked = thrownBy(ask(providerOf(model), requestOf({ signal: aborting.signal })));
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), patiently);
    aborting.abort();
    const error = await asked;
    expect(error).not.toBeInstanceOf(LLMProviderError);
    expect((error as Error).name).toBe('AbortError');
  });

  it('asks nothing when the request was aborted before', async () => {
    server.answerWith(service.firstStep);
    await thrownBy(providerOf(model).generate(requestOf({ signal: AbortSignal.abort() })));
    expect(server.requests).toHaveLength(0);
  });

  it('hangs up when nobody listens to the stream any more', async () => {
    server.answerWith(() =>
      events(service.firstEvents.slice(0, service.eventsUntilText + 2), { end: 'hang' }),
    );
    for await (const event of providerOf(model).stream?.(requestOf()) ?? [])
      if (event.type === 'text-delta') break;
    await vi.waitFor(() => expect(server.leftEarly).toBe(1), patiently);
  });

  it('calls a server that is not there a matter of the network', async () => {
    const provider = fromAiSdk(model.create({ baseURL: 'http://127.0.0.1:9/v1', apiKey: 'key' }));
    const error = await thrownBy(provider.generate(requestOf()));
    expect((error as LLMProviderError).details).toMatchObject({ kind: 'network', retryable: true });
  });
});

describe('an error in the middle of a stream', () => {
  const sent = {
    anthropic: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    'openai responses': {
      type: 'error',
      sequence_number: 9,
      code: 'server_error',
      message: 'Boom',
      param: null,
    },
    'openai chat': { error: { message: 'Boom', type: 'server_error', param: null, code: null } },
    'openai-compatible': { error: { message: 'Boom', type: 'server_error', param: null, code: null } },
  };
  it.each(models)('may pass: $name', async (model) => {
    const event = sent[model.name.replace(/ v\d$/, '') as keyof typeof sent];
    const before = model.service.firstEvents.slice(0, model.service.eventsUntilText + 1);
    server.answerWith(() => events([...before, event]));
    const error = await thrownBy(streamed(providerOf(model), requestOf()));
    expect(error).toBeInstanceOf(LLMProviderError);
    expect((error as LLMProviderError).retryable).toBe(true);
  });
});

describe('a local server that ends its streams without a reason', () => {
  const local = models.filter(({ name }) => /^openai(-compatible| chat)/.test(name));
  const withoutReason = (model: TestedModel) =>
    events(model.service.firstEvents.slice(0, -2), { lastLine: '[DONE]' });

  it.each(local)('is an error: $name', async (model) => {
    server.answerWith(() => withoutReason(model));
    const error = await thrownBy(streamed(providerOf(model), requestOf()));
    expect((error as LLMProviderError).details).toEqual({ kind: 'stream-interrupted', retryable: true });
  });

  it.each(local)('is believed where it is allowed: $name', async (model) => {
    server.answerWith(() => withoutReason(model));
    const provider = providerOf(model, { allowMissingFinishReason: true });
    const { finishReason, message } = await streamed(provider, requestOf());
    expect(finishReason).toBe('other');
    expect(message.content).toContainEqual({ type: 'text', text: 'Let me check.' });
  });
});

describe('a response that failed on the side of OpenAI', () => {
  const failed = (error: object) => ({
    ...{ id: 'resp_1', object: 'response', created_at: 1, model: 'gpt-5-test', status: 'failed' },
    ...{ error: { message: 'Boom', ...error }, incomplete_details: null, output: [] },
    usage: { input_tokens: 1, output_tokens: 0, total_tokens: 1 },
  });
  const responses = models.filter(({ name }) => name.startsWith('openai responses'));

  it.each(responses)('is an error that may pass: $name', async (model) => {
    server.answerWith(() => json(failed({ code: 'server_error' })));
    const error = await thrownBy(providerOf(model).generate(requestOf()));
    expect((error as LLMProviderError).details).toMatchObject({ kind: 'invalid-response', retryable: true });
  });

  // The models give such a response the status 400, whoever is at fault.
  it.each(responses)('is judged by its code where it has all fields of an error: $name', async (model) => {
    const answerOf = (code: string) => json(failed({ code, type: 'error', param: null }));
    server.answerWith(
      () => answerOf('server_error'),
      () => answerOf('invalid_prompt'),
    );
    const error = await thrownBy(providerOf(model).generate(requestOf()));
    expect((error as LLMProviderError).details).toMatchObject({
      retryable: true,
      providerCode: 'server_error',
    });
    const refused = await thrownBy(providerOf(model).generate(requestOf()));
    expect((refused as LLMProviderError).details).toMatchObject({
      retryable: false,
      providerCode: 'invalid_prompt',
    });
  });

  it.each(responses)('is an error in a stream too: $name', async (model) => {
    const event = { type: 'response.failed', sequence_number: 9, response: failed({ code: 'server_error' }) };
    server.answerWith(() => events([...model.service.firstEvents.slice(0, 4), event]));
    const error = await thrownBy(streamed(providerOf(model), requestOf()));
    expect(error).toBeInstanceOf(LLMProviderError);
    expect((error as LLMProviderError).retryable).toBe(true);
  });
});
