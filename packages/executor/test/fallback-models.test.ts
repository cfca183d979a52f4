/** Models that take the place of one that fails. */
import { LLMProviderError, SDKError, type LLMErrorDetails, type ModelCallInfo } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { calling, givenStorage, givenWorld, noting, refusal } from './support.ts';

const failing = (details: Partial<LLMErrorDetails> = {}) =>
  new LLMProviderError('down', { kind: 'api', retryable: false, ...details });
const down = failing({ status: 529, retryable: true });
const other = (...script: Parameters<typeof mockModel>[0]) => mockModel(script, { modelId: 'other' });

describe('a response that the own model fails to give', () => {
  it('is asked of the next one, once the retries are used up', async () => {
    const fallback = other('hello');
    const world = givenWorld({ script: [down, down, down], fallbackModels: [fallback] });
    const result = await world.letTimePass(world.send('hi'), 100);
    expect(result).toMatchObject({ text: 'hello', steps: 1 });
    expect(world.model.calls).toHaveLength(3);
    expect(world.events.filter(({ type }) => type === 'provider.fallback')).toMatchObject([
      { from: 'mock', to: 'other', error: { message: 'down', code: 'LOUSHO_PROVIDER_ERROR' } },
    ]);
  });

  it('is asked of the next one at once when it would fail the same way', async () => {
    const world = givenWorld({ script: [failing({ status: 400 })], fallbackModels: [other('hello')] });
    expect((await world.send('hi')).text).toBe('hello');
    expect(world.model.calls).toHaveLength(1);
  });

  it('is asked of the next one at once when the service wants more patience than there is', async () => {
    const busy = failing({ status: 429, retryable: true, retryAfterMs: 60_000 });
    const world = givenWorld({ script: [busy], fallbackModels: [other('hello')] });
    expect((await world.send('hi')).text).toBe('hello');
    expect(world.eventTypes()).not.toContain('provider.retry');
  });

  it('is asked with the same conversation, but without the name of a model of somebody else', async () => {
    const fallback = other('hello');
    const world = givenWorld({ agent: { model: 'big' }, script: [failing()], fallbackModels: [fallback] });
    await world.send('hi');
    const [own] = world.model.calls;
    const [asked] = fallback.calls;
    expect(own?.model).toBe('big');
    expect(asked).not.toHaveProperty('model');
    expect(asked?.messages).toEqual(own?.messages);
  });

  it('is counted for the model that gave it', async () => {
    const world = givenWorld({ script: [failing()], fallbackModels: [other('hello')] });
    const { usage } = await world.send('hi');
    expect(usage.byModel).toMatchObject({ other: { modelCalls: 1 } });
    expect(usage.byModel).not.toHaveProperty('mock');
  });

  it('is streamed by whoever gives it', async () => {
    const world = givenWorld({ script: [failing()], fallbackModels: [other('hello there')] });
    const run = world.stream('hi');
    let text = '';
    for await (const words of run.textStream) text += words;
    expect(text).toBe('hello there');
  });

  it('is told to telemetry as a call of each model', async () => {
    const told: ModelCallInfo[] = [];
    const world = givenWorld({
      script: [failing()],
      fallbackModels: [{ ...other('hello'), providerId: 'elsewhere' }],
      telemetry: {
        modelCall(info, work) {
          told.push(info);
          return work();
        },
      },
    });
    await world.send('hi');
    expect(told.map(({ providerId, modelId }) => [providerId, modelId])).toEqual([
      ['mock', 'mock'],
      ['elsewhere', 'other'],
    ]);
  });
});

it('the next response is asked of the own model again', async () => {
  const storage = givenStorage();
  const fallback = other(calling('a'));
  const world = givenWorld({
    storage,
    tools: [noting(storage, 'a')],
    script: [failing(), 'done'],
    fallbackModels: [fallback],
  });
  expect((await world.send('hi')).text).toBe('done');
  expect(fallback.calls).toHaveLength(1);
  expect(storage.effects).toEqual(['a']);
});

it('they are asked in the order in which they are named', async () => {
  const second = mockModel([failing()], { modelId: 'second' });
  const third = mockModel(['hello'], { modelId: 'third' });
  const world = givenWorld({ script: [failing()], fallbackModels: [second, third] });
  expect((await world.send('hi')).text).toBe('hello');
  const events = world.events.filter(({ type }) => type === 'provider.fallback');
  expect(events).toMatchObject([
    { from: 'mock', to: 'second' },
    { from: 'second', to: 'third' },
  ]);
});

describe('when all of them fail', () => {
  const wrongKey = failing({ status: 401 });

  it.each([
    ['the own model may come back', [down], [wrongKey], down],
    ['another one may come back', [wrongKey], [down], down],
    ['none may come back', [wrongKey], [failing({ status: 400 })], wrongKey],
  ] as const)(
    'the run rejects with the failure that says whether to resume it: %s',
    async (_what, own, others, expected) => {
      const world = givenWorld({ script: own, fallbackModels: [other(...others)], retry: { maxRetries: 0 } });
      expect(await refusal(world.send('hi'), 'LOUSHO_PROVIDER_ERROR')).toBe(expected);
    },
  );
});

it('an error that is none of a model is not for another model to mend', async () => {
  const fallback = other('hello');
  const ours = new SDKError('LOUSHO_MOCK_EXHAUSTED', { calls: 1 });
  const world = givenWorld({ script: [ours], fallbackModels: [fallback] });
  expect(await refusal(world.send('hi'), 'LOUSHO_MOCK_EXHAUSTED')).toBe(ours);
  expect(fallback.calls).toHaveLength(0);
});

it('a run that was stopped during the last try asks no other model', async () => {
  const fallback = other('hello');
  const world = givenWorld({ script: [{ text: 'late', delayMs: 5_000 }], fallbackModels: [fallback] });
  const run = world.stream('hi');
  await Promise.resolve();
  run.abort();
  expect((await run.result).finishReason).toBe('aborted');
  expect(fallback.calls).toHaveLength(0);
});
