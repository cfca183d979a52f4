/** What a model says, as parts of a message: in its order, with its provider's data untouched, and only whole. */
import {
  LLMProviderError,
  type AssistantPart,
  type LLMProviderError as ProviderError,
} from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { fromAiSdk } from '../src/index.ts';
import { eventsOf, requestOf, streamed, thrownBy } from './support/requests.ts';
import { scriptedModel, type ModelScript } from './support/scripted-model.ts';

const generated = (script: ModelScript) => fromAiSdk(scriptedModel(script)).generate(requestOf());
const contentOf = async (...content: readonly object[]): Promise<readonly AssistantPart[]> =>
  (await generated({ content })).message.content;
const heardFrom = (...parts: readonly object[]) => streamed(fromAiSdk(scriptedModel({ parts })), requestOf());

const call = (fields: object) => ({
  type: 'tool-call',
  toolCallId: 'c',
  toolName: 'pay',
  input: '{}',
  ...fields,
});

describe('the parts of an answer', () => {
  it('keep the data of their provider as it is', async () => {
    const providerMetadata = { acme: { signature: 'a/b+c==', nested: { list: [1, null, 'x'] }, no: null } };
    for (const type of ['text', 'reasoning']) {
      const [part] = await contentOf({ type, text: 'x', providerMetadata });
      expect(part).toEqual({ type, text: 'x', providerMetadata });
    }
    const [toolCall] = await contentOf(call({ providerMetadata }));
    expect(toolCall?.providerMetadata).toEqual(providerMetadata);
  });

  it('are kept without a text when their provider says something of them, and only then', async () => {
    const providerMetadata = { acme: { signature: 's' } };
    const parts = await contentOf(
      { type: 'reasoning', text: '', providerMetadata },
      { type: 'reasoning', text: '' },
      { type: 'text', text: '' },
      { type: 'text', text: '', providerMetadata },
      { type: 'text', text: '', providerMetadata: {} },
    );
    expect(parts).toEqual([
      { type: 'reasoning', text: '', providerMetadata },
      { type: 'text', text: '', providerMetadata },
    ]);
  });

  it.each([
    ['nothing', '', { args: {} }],
    ['blanks', ' \n', { args: {} }],
    ['null', 'null', { args: {} }],
    ['an object', '{"cents": 5}', { args: { cents: 5 } }],
    ['a list', '[1]', { args: [1] }],
    ['half an object', '{"cents": 5', { args: {}, invalidArgs: '{"cents": 5' }],
    ['prose', 'five cents', { args: {}, invalidArgs: 'five cents' }],
  ])('hold the arguments of a call: %s', async (_what, input, expected) => {
    expect(await contentOf(call({ input }))).toEqual([
      { type: 'tool-call', toolCallId: 'c', toolName: 'pay', ...expected },
    ]);
  });

  it('hold calls of tools that the provider runs, with their results, but for preliminary ones', async () => {
    const result = { type: 'tool-result', toolCallId: 'c', toolName: 'search' };
    const parts = await contentOf(
      call({ toolName: 'search', providerExecuted: true }),
      { ...result, result: { pages: 0 }, preliminary: true },
      { ...result, result: { pages: 2 } },
      { ...result, toolCallId: 'd', result: { code: 'down' }, isError: true },
    );
    expect(parts).toEqual([
      { type: 'tool-call', toolCallId: 'c', toolName: 'search', args: {}, providerExecuted: true },
      { ...result, result: { pages: 2 } },
      { ...result, toolCallId: 'd', result: { code: 'down' }, isError: true },
    ]);
  });

  it.each([
    ['base64', 'aGk=', { type: 'data', data: 'aGk=' }],
    ['bytes', new TextEncoder().encode('hi'), { type: 'data', data: 'aGk=' }],
    ['tagged base64', { type: 'data', data: 'aGk=' }, { type: 'data', data: 'aGk=' }],
    ['tagged bytes', { type: 'data', data: new Uint8Array([104, 105]) }, { type: 'data', data: 'aGk=' }],
    [
      'a URL',
      { type: 'url', url: new URL('https://example.com/a') },
      { type: 'url', url: 'https://example.com/a' },
    ],
  ])('hold files as JSON: %s', async (_what, data, expected) => {
    expect(await contentOf({ type: 'file', mediaType: 'text/plain', data })).toEqual([
      { type: 'file', mediaType: 'text/plain', data: expected },
    ]);
  });

  it('refuse a file of a form that nobody knows', async () => {
    const error = await thrownBy(contentOf({ type: 'file', mediaType: 'a/b', data: { type: 'hologram' } }));
    expect((error as ProviderError).details).toEqual({ kind: 'invalid-response', retryable: true });
  });

  it('keep what only the provider understands, and where an answer comes from', async () => {
    const parts = await contentOf(
      { type: 'custom', kind: 'acme.plan', providerMetadata: { acme: { plan: 1 } } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } },
      { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.com/', title: 'T' },
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
      // Only streams have it; transcripts of both kinds are the same without it.
      { type: 'custom', kind: 'anthropic.message_start' },
      { type: 'of-a-later-release' },
    );
    expect(parts).toEqual([
      { type: 'custom', kind: 'acme.plan', providerMetadata: { acme: { plan: 1 } } },
      {
        type: 'custom',
        kind: 'reasoning-file',
        data: { mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } },
      },
      {
        type: 'custom',
        kind: 'source',
        data: { sourceType: 'url', id: 's1', url: 'https://example.com/', title: 'T' },
      },
      { type: 'custom', kind: 'tool-approval-request', data: { approvalId: 'a', toolCallId: 'c' } },
    ]);
  });

  it('are JSON, or the answer is none', async () => {
    const error = await thrownBy(
      contentOf({ type: 'text', text: 'x', providerMetadata: { acme: { n: 1n } } }),
    );
    expect(error).toBeInstanceOf(LLMProviderError);
    expect((error as ProviderError).message).toBe(
      'The model gave provider metadata that is no JSON at acme.n.',
    );
  });
});

describe('a stream', () => {
  it('puts its blocks in the order in which they began, however they overlap', async () => {
    const { message } = await heardFrom(
      { type: 'reasoning-start', id: '1' },
      { type: 'reasoning-delta', id: '1', delta: 'hm' },
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'a' },
      { type: 'text-start', id: '2' },
      { type: 'text-delta', id: '2', delta: 'c' },
      { type: 'text-delta', id: '1', delta: 'b' },
      { type: 'text-end', id: '1' },
      call({}),
      { type: 'text-end', id: '2' },
      { type: 'reasoning-end', id: '1' },
    );
    expect(message.content.map((part) => ('text' in part ? part.text : part.type))).toEqual([
      'hm',
      'ab',
      'c',
      'tool-call',
    ]);
  });

  it('adds up what the provider says at the start, with a delta and at the end of a block; the last word counts', async () => {
    const { message } = await heardFrom(
      { type: 'reasoning-start', id: 'r', providerMetadata: { acme: { itemId: 'rs', encrypted: null } } },
      {
        type: 'reasoning-delta',
        id: 'r',
        delta: '',
        providerMetadata: { acme: { signature: 's' }, other: { x: 1 } },
      },
      { type: 'reasoning-end', id: 'r', providerMetadata: { acme: { encrypted: 'ENC' } } },
    );
    expect(message.content).toEqual([
      {
        ...{ type: 'reasoning', text: '' },
        providerMetadata: { acme: { itemId: 'rs', encrypted: 'ENC', signature: 's' }, other: { x: 1 } },
      },
    ]);
  });

  it('tells its words as they come, and the whole response once, at the end', async () => {
    const parts = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r' },
      { type: 'ping' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'Hel' },
      { type: 'text-delta', id: 't', delta: '' },
      { type: 'text-delta', id: 't', delta: 'lo' },
      { type: 'text-end', id: 't' },
      { type: 'tool-input-start', id: 'c', toolName: 'pay' },
      { type: 'tool-input-delta', id: 'c', delta: '{}' },
      { type: 'tool-input-end', id: 'c' },
      call({}),
      { type: 'response-metadata', id: 'resp_1', modelId: 'acme-1-0930' },
    ];
    const heard = await eventsOf(fromAiSdk(scriptedModel({ parts })), requestOf());
    expect(heard.slice(0, -1)).toEqual([
      { type: 'reasoning-delta', text: 'hm' },
      { type: 'text-delta', text: 'Hel' },
      { type: 'text-delta', text: 'lo' },
      { type: 'tool-args-delta', toolCallId: 'c', toolName: 'pay', text: '{}' },
    ]);
    expect(heard.at(-1)).toMatchObject({
      type: 'finish',
      response: {
        finishReason: 'tool-calls',
        responseId: 'resp_1',
        modelId: 'acme-1-0930',
        rawFinishReason: 'end',
      },
    });
  });

  it('that carries an error is one, whatever comes behind it', async () => {
    const error = await thrownBy(heardFrom({ type: 'error', error: 'out of paper' }));
    expect((error as ProviderError).message).toBe('out of paper');
    expect((error as ProviderError).details).toEqual({ kind: 'unknown', retryable: true });
  });
});

describe('the end of an answer', () => {
  const endingWith = (finishReason: unknown, content: readonly object[] = []) =>
    generated({ content, result: { finishReason } });

  it.each([
    ['stop', [], 'stop'],
    ['stop', [call({})], 'tool-calls'],
    ['stop', [call({ providerExecuted: true })], 'stop'],
    ['tool-calls', [call({})], 'tool-calls'],
    ['length', [call({})], 'length'],
    ['content-filter', [], 'content-filter'],
    ['other', [], 'other'],
    ['unknown', [], 'other'],
    ['a-later-word', [], 'other'],
  ])('%s is told in our words', async (reason, content, expected) => {
    expect((await endingWith(reason, content)).finishReason).toBe(expected);
    const { finishReason, rawFinishReason } = await endingWith({ unified: reason, raw: 'RAW' }, content);
    expect([finishReason, rawFinishReason]).toEqual([expected, 'RAW']);
  });

  it.each([
    ['an error', 'error', []],
    ['calls that are not there', 'tool-calls', [{ type: 'text', text: 'I call a tool.' }]],
  ])('that says %s makes it no answer', async (_what, reason, content) => {
    const error = await thrownBy(endingWith({ unified: reason, raw: 'RAW' }, content));
    expect((error as ProviderError).details).toEqual({ kind: 'invalid-response', retryable: true });
  });

  it('that was not reached makes it no answer either', async () => {
    const error = await thrownBy(endingWith({ unified: 'interrupted', raw: 'RAW' }));
    expect((error as ProviderError).details).toEqual({ kind: 'stream-interrupted', retryable: true });
  });

  it('is missing when the model gives no content at all', async () => {
    const error = await thrownBy(generated({ result: { content: undefined } }));
    expect((error as ProviderError).details).toEqual({ kind: 'invalid-response', retryable: true });
  });
});

describe('usage', () => {
  const usageOf = async (usage: unknown, result: object = {}) =>
    (await generated({ result: { usage, ...result } })).usage;

  it('has totals with their parts, in both forms', async () => {
    expect(
      await usageOf({
        inputTokens: 10,
        outputTokens: 5,
        totalTokens: 15,
        cachedInputTokens: 4,
        reasoningTokens: 2,
      }),
    ).toEqual({ inputTokens: 10, outputTokens: 5, cachedInputTokens: 4, reasoningTokens: 2 });
    expect(
      await usageOf({
        inputTokens: { total: 10, noCache: 5, cacheRead: 4, cacheWrite: 1 },
        outputTokens: { total: 5, text: 3, reasoning: 2 },
        raw: { prompt: 10 },
      }),
    ).toEqual({
      ...{ inputTokens: 10, outputTokens: 5, cachedInputTokens: 4, cacheWriteTokens: 1, reasoningTokens: 2 },
      raw: { prompt: 10 },
    });
  });

  it('leaves out what is not reported', async () => {
    expect(await usageOf(undefined)).toEqual({});
    expect(await usageOf({ inputTokens: undefined, outputTokens: NaN })).toEqual({});
    expect(await usageOf({ inputTokens: { total: undefined }, outputTokens: { total: 5 } })).toEqual({
      outputTokens: 5,
    });
  });

  it('of Anthropic in v2 counts the cache, which that version leaves out', async () => {
    const usage = { inputTokens: 60, outputTokens: 20, cachedInputTokens: 40 };
    const anthropic = (cacheCreationInputTokens: unknown) => ({
      providerMetadata: { anthropic: { cacheCreationInputTokens } },
    });
    expect(await usageOf(usage, anthropic(5))).toEqual({
      ...{ inputTokens: 105, outputTokens: 20, cachedInputTokens: 40, cacheWriteTokens: 5 },
    });
    expect(await usageOf(usage, anthropic(null))).toMatchObject({ inputTokens: 100, cacheWriteTokens: 0 });
  });
});

it('tells the warnings of every version in one line each', async () => {
  const { warnings } = await generated({
    result: {
      warnings: [
        { type: 'unsupported-setting', setting: 'topK', details: 'not here' },
        { type: 'unsupported-tool', tool: { name: 'search' } },
        { type: 'unsupported', feature: 'seed' },
        { type: 'other', message: 'Be careful.' },
        { type: 'odd' },
      ],
    },
  });
  expect(warnings).toEqual([
    'unsupported-setting: topK: not here',
    'unsupported-tool: search',
    'unsupported: seed',
    'other: Be careful.',
    'odd',
  ]);
});
