import { LLMProviderError, SDKError, isSDKError, type LLMErrorDetails } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { calling, givenStorage, givenWorld, noting, refusal, until, type World } from './support.ts';

const providerError = (details: Partial<LLMErrorDetails>) =>
  new LLMProviderError('overloaded', { kind: 'api', retryable: true, ...details });
const withStatus = (status: number) => Object.assign(new Error(`status ${status}`), { status });

/** When each model call was made, in milliseconds after the first. */
function callTimes(world: World): readonly number[] {
  const times: number[] = [];
  const ask = world.model.generate.bind(world.model);
  world.model.generate = (request) => {
    times.push(world.clock.monotonicMs());
    return ask(request);
  };
  return times;
}
const gaps = (times: readonly number[]): readonly number[] =>
  times.slice(1).map((time, index) => time - (times[index] ?? 0));

describe('a model call that fails', () => {
  it('is tried twice more, each time after twice the wait', async () => {
    const world = givenWorld({ script: [providerError({}), providerError({}), 'hello'] });
    const times = callTimes(world);
    expect(await world.letTimePass(world.send('hi'), 100)).toMatchObject({ text: 'hello', steps: 1 });
    expect(gaps(times)).toEqual([1_000, 2_000]);
    const retries = world.events.filter(({ type }) => type === 'provider.retry');
    expect(retries).toMatchObject([
      { attempt: 1, delayMs: 1_000, error: { message: 'overloaded', code: 'LOUSHO_PROVIDER_ERROR' } },
      { attempt: 2, delayMs: 2_000 },
    ]);
  });

  it('rejects the run when the tries are used up', async () => {
    const last = providerError({ status: 529 });
    const world = givenWorld({ script: [providerError({}), providerError({}), last] });
    expect(await world.letTimePass(refusal(world.send('hi'), 'LOUSHO_PROVIDER_ERROR'), 100)).toBe(last);
    expect(world.model.calls).toHaveLength(3);
  });

  it('waits as long as the provider asks', async () => {
    const world = givenWorld({ script: [providerError({ retryAfterMs: 7_000 }), 'hello'] });
    const times = callTimes(world);
    await world.letTimePass(world.send('hi'), 100);
    expect(gaps(times)).toEqual([7_000]);
  });

  it('rejects the run at once when the provider asks for more patience than it has', async () => {
    const world = givenWorld({ script: [providerError({ retryAfterMs: 30_001 }), 'never'] });
    const error = await refusal(world.send('hi'), 'LOUSHO_PROVIDER_ERROR');
    expect(error.retryable).toBe(true);
    expect(world.model.calls).toHaveLength(1);
  });

  it('takes other numbers', async () => {
    const world = givenWorld({
      script: [providerError({}), providerError({}), providerError({}), 'hello'],
      retry: { maxRetries: 3, delayMs: 10, maxDelayMs: 40 },
    });
    const times = callTimes(world);
    await world.letTimePass(world.send('hi'), 5);
    expect(gaps(times)).toEqual([10, 20, 40]);
  });

  it.each([
    ['of a client', withStatus(400), false],
    ['of a client, as other libraries name it', Object.assign(new Error('no'), { statusCode: 401 }), false],
    ['that says so itself', Object.assign(new Error('no'), { retryable: false }), false],
    ['408', withStatus(408), true],
    ['409', withStatus(409), true],
    ['425', withStatus(425), true],
    ['429', withStatus(429), true],
    ['500', withStatus(500), true],
    ['of the network', new TypeError('fetch failed'), true],
    ['that is only a text', 'broken', true],
    ['that is nothing', undefined, true],
  ])('%s is wrapped, and tried again only when it may pass', async (_what, thrown, retryable) => {
    let asked = 0;
    const world = givenWorld({
      provider: {
        providerId: 'p',
        modelId: 'm',
        generate: () => {
          asked += 1;
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- what careless providers do
          return Promise.reject(thrown);
        },
      },
    });
    const error = await world.letTimePass(refusal(world.send('hi'), 'LOUSHO_PROVIDER_ERROR'), 100);
    expect(error).toBeInstanceOf(LLMProviderError);
    expect(error.retryable).toBe(retryable);
    expect(error.cause).toBe(thrown);
    expect(asked).toBe(retryable ? 3 : 1);
  });

  it('with an error of ours passes as it is', async () => {
    const ours = new SDKError('LOUSHO_MOCK_EXHAUSTED', { calls: 1 });
    const world = givenWorld({ script: [ours] });
    expect(await refusal(world.send('hi'), 'LOUSHO_MOCK_EXHAUSTED')).toBe(ours);
  });

  it('with no usable response is tried again', async () => {
    let asked = 0;
    const world = givenWorld({
      provider: {
        providerId: 'p',
        modelId: 'm',
        generate: () => {
          asked += 1;
          return Promise.resolve({
            message: { role: 'assistant', content: asked === 1 ? null : [] },
            finishReason: 'stop',
            usage: {},
          } as never);
        },
      },
    });
    expect((await world.letTimePass(world.send('hi'), 100)).finishReason).toBe('stop');
    expect(asked).toBe(2);
  });

  it('synchronously is a failure like any', async () => {
    const world = givenWorld({
      retry: { maxRetries: 0 },
      provider: {
        providerId: 'p',
        modelId: 'm',
        generate: () => {
          throw new Error('sync');
        },
      },
    });
    await refusal(world.send('hi'), 'LOUSHO_PROVIDER_ERROR');
  });
});

describe('a streamed model call', () => {
  it('gives the words as they come, and the response once', async () => {
    const world = givenWorld({ script: [{ text: 'Hello there', reasoning: 'hm hm' }] });
    const run = world.stream('hi');
    let text = '';
    for await (const words of run.textStream) text += words;
    expect(text).toBe('Hello there');
    expect((await run.result).text).toBe('Hello there');
    expect(world.events.filter(({ type }) => type === 'text.done')).toMatchObject([{ text: 'Hello there' }]);
    expect(world.events.filter(({ type }) => type === 'reasoning.delta')).toHaveLength(2);
  });

  it('that ends without a response is tried again', async () => {
    let asked = 0;
    const world = givenWorld({
      provider: {
        providerId: 'p',
        modelId: 'm',
        generate: () => Promise.reject(new Error('not streamed')),
        async *stream() {
          asked += 1;
          yield { type: 'text-delta', text: 'He' } as const;
          if (asked === 1) return;
          yield {
            type: 'finish',
            response: {
              message: { role: 'assistant', content: [{ type: 'text', text: 'Hello' }] },
              finishReason: 'stop',
              usage: {},
            },
          } as const;
        },
      },
    });
    const run = world.stream('hi');
    expect((await world.letTimePass(run.result, 100)).text).toBe('Hello');
    const [retry] = world.events.filter(({ type }) => type === 'provider.retry');
    expect(retry).toMatchObject({ error: { message: expect.stringContaining('without a response') } });
  });

  it('of a provider that cannot stream is an ordinary one', async () => {
    const world = givenWorld({ script: ['hello'] });
    const plain = givenWorld({
      provider: { providerId: 'p', modelId: 'm', generate: (request) => world.model.generate(request) },
    });
    const run = plain.stream('hi');
    expect((await run.result).text).toBe('hello');
    expect(plain.eventTypes()).toContain('text.done');
    expect(plain.eventTypes()).not.toContain('text.delta');
  });
});

describe('what the model is asked', () => {
  it('is the conversation, the tools, the settings and the model', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      agent: {
        model: 'big',
        instructions: 'Be kind.',
        providerTools: [{ id: 'p.search', name: 'search', args: {} }],
      },
      modelSettings: { temperature: 0 },
      script: ['hello'],
    });
    await world.send('hi');
    expect(world.model.calls[0]).toMatchObject({
      model: 'big',
      settings: { temperature: 0 },
      tools: [{ name: 'a', description: 'Does a.', inputSchema: { type: 'object' } }],
      providerTools: [{ id: 'p.search' }],
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'hi' },
      ],
    });
  });

  it("asks for the provider's own model without naming it", async () => {
    const world = givenWorld({ script: ['hello'] });
    await world.send('hi');
    expect(world.model.calls[0]).not.toHaveProperty('model');
  });

  it('is a conversation without our own marks on anything but the instructions', async () => {
    const world = givenWorld({ script: ['hello', 'fine'], agent: { instructions: 'Be kind.' } });
    await world.send('hi');
    await world.send('how are you?');
    expect(world.model.calls[1]?.messages.filter(({ role }) => role === 'system')).toHaveLength(1);
  });

  it('names the model in usage, per model', async () => {
    const world = givenWorld({ agent: { model: 'big' }, script: ['hello'] });
    expect((await world.send('hi')).usage.byModel).toMatchObject({ big: { modelCalls: 1 } });
  });
});

it('a run that must stop does not sit out the wait for the next try', async () => {
  const world = givenWorld({ script: [providerError({ retryAfterMs: 29_000 }), 'never'] });
  const run = world.stream('hi');
  await until(() => world.eventTypes().includes('provider.retry'));
  run.abort();
  expect((await run.result).finishReason).toBe('aborted');
});

it('the error of a run that rejected says whether to resume it', async () => {
  const storage = givenStorage();
  const world = givenWorld({
    storage,
    tools: [noting(storage, 'a')],
    script: [calling('a'), withStatus(400)],
  });
  const error = await refusal(world.send('go'), 'LOUSHO_PROVIDER_ERROR');
  expect(isSDKError(error, 'LOUSHO_PROVIDER_ERROR') && error.details).toMatchObject({
    status: 400,
    retryable: false,
  });
  expect((await world.unfinished()).lastError).toMatchObject({ retryable: false });
});
