import {
  LLMProviderError,
  isDeepFrozen,
  isMessage,
  ownCalls,
  parseCheckpoint,
  type AssistantPart,
  type LLMRequest,
  type LLMResponse,
  type LLMUsage,
  type ModelFinishReason,
} from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { acceptResponse, droppedUsage } from '../src/accept-response.ts';
import { fold } from '../src/fold.ts';
import { assistant, call, inProgress, user } from './checkpoints.ts';
import { fc } from './properties.ts';

const request = {
  messages: [user('x'.repeat(400))],
  tools: [],
  providerTools: [],
  settings: {},
  signal: new AbortController().signal,
} satisfies LLMRequest;

const accept = (response: unknown) => acceptResponse(response as LLMResponse, request, 'mock');
const withContent = (...content: readonly unknown[]) =>
  accept({ message: { role: 'assistant', content }, finishReason: 'stop', usage: {} });
const idsOf = (...ids: readonly unknown[]) =>
  ownCalls(withContent(...ids.map((id) => ({ ...call('x'), toolCallId: id }))).message).map(
    ({ toolCallId }) => toolCallId,
  );

describe('call ids', () => {
  it('stay as they are when they are usable and different', () => {
    expect(idsOf('call_0', 'toolu_01', 'Bash_0')).toEqual(['call_0', 'toolu_01', 'Bash_0']);
  });
  it('that repeat inside one message get a suffix', () => {
    expect(idsOf('call_0', 'call_0', 'call_0')).toEqual(['call_0', 'call_0_2', 'call_0_3']);
  });
  it('with a suffix do not meet one that the provider gave', () => {
    expect(new Set(idsOf('a', 'a', 'a_2')).size).toBe(3);
  });
  it.each([
    ['empty', ''],
    ['missing', undefined],
    ['a number', 7],
    ['10 kB long', 'x'.repeat(10_000)],
    ['made of control characters', '\u0000\u0007'],
  ])('that are %s are replaced', (_what, id) => {
    const [made] = idsOf(id);
    expect(made).toMatch(/^[\w-]{1,64}$/);
  });
  it('of calls that the provider ran itself stay: its results name them', () => {
    const ran: AssistantPart = { ...call('s'), providerExecuted: true };
    const found: AssistantPart = { type: 'tool-result', toolCallId: 's', toolName: 's', result: 'found' };
    const { message } = withContent(call('s'), ran, found);
    expect(message.content[1]).toEqual(ran);
    expect(message.content[2]).toEqual(found);
    expect(ownCalls(message).map(({ toolCallId }) => toolCallId)).toEqual(['s_2']);
  });
  it('are usable and unique whatever a provider gives', () => {
    const anyId = fc.oneof(
      fc.constantFrom('', 'call_0', 'call_0_2', 'call_1', undefined, null, 7, {}, 'x'.repeat(256)),
      fc.string({ unit: 'binary' }),
    );
    fc.assert(
      fc.property(fc.array(anyId, { maxLength: 8 }), (ids) => {
        const made = idsOf(...ids);
        expect(new Set(made).size).toBe(ids.length);
        for (const id of made) {
          expect(id.length > 0 && id.length <= 256 && id.isWellFormed()).toBe(true);
          expect(id).not.toMatch(/\p{Cc}/u);
        }
      }),
    );
  });
});

describe('what a provider says', () => {
  it('has no lone surrogates any more, in texts, arguments and keys', () => {
    const { message } = withContent(
      { type: 'text', text: 'a\ud800b' },
      call('q', { ['k\udc00']: 'x\udc00' }),
    );
    expect(message.content).toEqual([
      { type: 'text', text: 'a\ufffdb' },
      call('q', { ['k\ufffd']: 'x\ufffd' }),
    ]);
  });
  it('keeps parts and metadata of the provider untouched', () => {
    const parts: readonly AssistantPart[] = [
      { type: 'reasoning', text: '', providerMetadata: { anthropic: { signature: 'abc' } } },
      { type: 'custom', kind: 'item', data: { id: 'i' } },
      { type: 'text', text: 'hi', providerMetadata: { openai: { id: 'm' } } },
    ];
    expect(withContent(...parts).message.content).toEqual(parts);
  });
  it('keeps __proto__ as a key like any other', () => {
    const args = JSON.parse('{"__proto__":{"x":1}}') as never;
    const [accepted] = ownCalls(withContent(call('p', args)).message);
    expect(Object.hasOwn(accepted?.args as object, '__proto__')).toBe(true);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
  it('may leave out the arguments of a call', () => {
    const { args: _args, ...bare } = call('a');
    expect(ownCalls(withContent(bare).message)[0]?.args).toEqual({});
  });
  it('is frozen', () => {
    expect(isDeepFrozen(withContent({ type: 'text', text: 'hi' }, call('a')).message)).toBe(true);
  });
  it('has the model id of the response, else the one that was asked', () => {
    const response = { message: assistant('hi'), finishReason: 'stop', usage: {} };
    expect([accept(response).modelId, accept({ ...response, modelId: 'mock-2' }).modelId]).toEqual([
      'mock',
      'mock-2',
    ]);
  });
});

describe('no response at all', () => {
  it.each<readonly [string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'hello'],
    ['no message', { finishReason: 'stop', usage: {} }],
    ['a message of a user', { message: user('hi'), finishReason: 'stop' }],
    ['a content that is no list', { message: { role: 'assistant', content: 'hi' } }],
    ['a part that is null', { message: { role: 'assistant', content: [null] } }],
    ['a part of an unknown type', { message: { role: 'assistant', content: [{ type: 'thought' }] } }],
    ['a text part without a text', { message: { role: 'assistant', content: [{ type: 'text' }] } }],
    [
      'a call without a name',
      { message: { role: 'assistant', content: [{ ...call('a'), toolName: undefined }] } },
    ],
    ['what JSON cannot say', { message: assistant('', call('a', { n: 1n } as never)) }],
  ])('%s is an error of the provider that may pass', (_what, response) => {
    let error: unknown;
    try {
      accept(response);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(LLMProviderError);
    expect(error).toMatchObject({ kind: 'invalid-response', retryable: true });
  });
});

describe('usage', () => {
  const usageOf = (usage: LLMUsage | undefined) =>
    accept({ message: assistant('y'.repeat(40)), finishReason: 'stop', usage }).usage;

  it('is what the provider reports, and counts one call', () => {
    const reported = {
      inputTokens: 100,
      outputTokens: 10,
      cachedInputTokens: 60,
      cacheWriteTokens: 5,
      reasoningTokens: 3,
      costUsd: 0.01,
    };
    expect(usageOf(reported)).toEqual({ ...reported, totalTokens: 110, modelCalls: 1 });
  });
  it('takes what is left out for 0, and an unknown cost for unknown', () => {
    expect(usageOf({ outputTokens: 10 })).toEqual({
      inputTokens: 0,
      outputTokens: 10,
      totalTokens: 10,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      modelCalls: 1,
    });
  });
  it.each([{}, undefined])('is estimated, and says so, when the provider reports %o', (usage) => {
    const estimated = usageOf(usage);
    expect(estimated).toMatchObject({ estimated: true, modelCalls: 1 });
    expect(estimated.inputTokens).toBeGreaterThanOrEqual(100);
    expect(estimated.outputTokens).toBeGreaterThanOrEqual(10);
    expect(estimated.totalTokens).toBe(estimated.inputTokens + estimated.outputTokens);
  });
  it('that is no number counts as not reported', () => {
    const broken = { inputTokens: NaN, outputTokens: '7', costUsd: Infinity, cachedInputTokens: -1 };
    expect(usageOf(broken as never)).toMatchObject({ estimated: true, cachedInputTokens: 0 });
    expect(usageOf(broken as never)).not.toHaveProperty('costUsd');
    expect(usageOf({ inputTokens: NaN, outputTokens: 7 })).toMatchObject({ inputTokens: 0, outputTokens: 7 });
  });
  it('of a call that nobody got the response of is estimated and counts as one call', () => {
    expect(droppedUsage(request.messages, '')).toMatchObject({ modelCalls: 1, estimated: true });
    expect(droppedUsage(request.messages, 'y'.repeat(40)).outputTokens).toBeGreaterThanOrEqual(10);
  });
});

it('whatever is accepted, a store can read the run again', () => {
  const hostile = {
    message: { role: 'assistant', content: [{ type: 'text', text: 'hi' }] },
    finishReason: 'end_turn' as ModelFinishReason,
    usage: { inputTokens: NaN, outputTokens: 1.5, costUsd: NaN },
    modelId: 7,
  };
  const { message, finishReason, modelId, usage } = accept(hostile);
  expect(isMessage(message)).toBe(true);
  const state = fold(inProgress(), {
    type: 'modelResponse',
    message,
    finishReason,
    modelId,
    usage,
    results: [],
  });
  const text = JSON.stringify(state);
  expect(parseCheckpoint(JSON.parse(text), 'order-7')).toEqual(state);
  expect(state).toMatchObject({ status: 'finished', finishReason: 'other' });
});
