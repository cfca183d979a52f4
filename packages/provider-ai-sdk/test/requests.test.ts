/** What a model is asked: our messages, tools and settings in the words of its version. */
import {
  LLMProviderError,
  type AssistantPart,
  type FileData,
  type LLMRequest,
  type LLMResponse,
  type Message,
} from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { fromAiSdk, type FromAiSdkOptions } from '../src/index.ts';
import { requestOf, thrownBy } from './support/requests.ts';
import { scriptedModel, type ModelScript, type ScriptedModel } from './support/scripted-model.ts';

const versions = ['v2', 'v3', 'v4'] as const;

type Asked = ScriptedModel['asked'] & { readonly response: LLMResponse };

async function askedOf(
  request: Partial<LLMRequest>,
  script: ModelScript = {},
  options?: FromAiSdkOptions,
): Promise<Asked> {
  const model = scriptedModel(script);
  const response = await fromAiSdk(model, options).generate(requestOf(request));
  return { ...model.asked, response };
}
const promptOf = async (messages: readonly Message[], script?: ModelScript) =>
  (await askedOf({ messages }, script)).prompt;
const assistantPrompt = async (content: readonly AssistantPart[], specificationVersion = 'v4') =>
  (await promptOf([{ role: 'assistant', content }], { specificationVersion }))[0]?.content;

const result = (fields: object): Message => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'pay', result: null, ...fields }],
});

describe('messages', () => {
  it('carry the data of each provider back, and no mark of ours', async () => {
    const providerMetadata = { acme: { cache: true }, lousho: { instructions: true } };
    const prompt = await promptOf([
      { role: 'system', content: 'Be brief.', providerMetadata: { lousho: { instructions: true } } },
      { role: 'user', content: [{ type: 'text', text: 'hi', providerMetadata }], providerMetadata },
      { role: 'assistant', content: [{ type: 'reasoning', text: '', providerMetadata }], providerMetadata },
    ]);
    const providerOptions = { acme: { cache: true } };
    expect(prompt).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'hi', providerOptions }], providerOptions },
      { role: 'assistant', content: [{ type: 'reasoning', text: '', providerOptions }], providerOptions },
    ]);
  });

  it('of an assistant that said nothing are left out: services refuse them', async () => {
    const prompt = await promptOf([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'text', text: '' }] },
      { role: 'user', content: 'hello?' },
    ]);
    expect(prompt.map(({ role }) => role)).toEqual(['user', 'user']);
  });

  it('with results of one step are one: some services want as many results as there were calls', async () => {
    const results = ['a', 'b'].map((toolCallId) => ({
      ...result({ toolCallId }),
      providerMetadata: { acme: { [toolCallId]: 1 } },
    }));
    const prompt = await promptOf([...results, { role: 'user', content: 'hi' }, result({})]);
    expect(prompt.map(({ role, content }) => [role, (content as readonly object[]).length])).toEqual([
      ['tool', 2],
      ['user', 1],
      ['tool', 1],
    ]);
    expect(prompt[0]?.providerOptions).toEqual({ acme: { a: 1, b: 1 } });
  });
});

describe('a call', () => {
  const call = { type: 'tool-call', toolCallId: 'c', toolName: 'pay' } as const;

  it('whose arguments were no object is sent with an empty one: the services refuse anything else for ever', async () => {
    const content = await assistantPrompt([
      { ...call, args: {}, invalidArgs: 'five' },
      { ...call, args: [1] },
      { ...call, args: 'x', providerExecuted: true },
    ]);
    expect((content as readonly { readonly input: unknown }[]).map(({ input }) => input)).toEqual([
      {},
      {},
      'x',
    ]);
  });

  it('of a tool of the provider keeps arguments of its own form', async () => {
    const messages: Message[] = [
      { role: 'assistant', content: [{ ...call, toolName: 'patch', args: '*** diff' }] },
    ];
    const providerTools = [{ id: 'acme.patch', name: 'patch', args: {} }] as const;
    const { prompt } = await askedOf({ messages, providerTools });
    expect(prompt[0]?.content).toMatchObject([{ input: '*** diff' }]);
  });

  it('that the provider ran goes back with its result as JSON', async () => {
    const content = await assistantPrompt([
      { ...call, args: {}, providerExecuted: true },
      { type: 'tool-result', toolCallId: 'c', toolName: 'pay', result: 'done' },
      { type: 'tool-result', toolCallId: 'd', toolName: 'pay', result: { code: 1 }, isError: true },
    ]);
    expect(content).toMatchObject([
      { input: {}, providerExecuted: true },
      { output: { type: 'json', value: 'done' } },
      { toolCallId: 'd', output: { type: 'error-json', value: { code: 1 } } },
    ]);
  });
});

describe('a result', () => {
  const outputOf = async (fields: object, specificationVersion: string = 'v4') => {
    const [message] = await promptOf([result(fields)], { specificationVersion });
    return (message?.content as readonly { readonly output: unknown }[])[0]?.output;
  };
  const failure = { error: 'It broke.', code: 'E_BROKEN' };

  it.each([
    ['a text', { result: 'done' }, { type: 'text', value: 'done' }],
    ['a value', { result: { ok: [1] } }, { type: 'json', value: { ok: [1] } }],
    ['null', { result: null }, { type: 'json', value: null }],
    [
      'a failure',
      { result: failure, isError: true, kind: 'execution' },
      { type: 'error-json', value: failure },
    ],
    ['a failure in words', { result: 'broken', isError: true }, { type: 'error-text', value: 'broken' }],
  ])('that is %s is told as such in every version', async (_what, fields, expected) => {
    for (const version of versions) expect(await outputOf(fields, version)).toEqual(expected);
  });

  it.each(['rejected', 'denied'])('that was %s says so where the version has a word for it', async (kind) => {
    const fields = { result: { error: 'A person said no.', note: 'Too much.' }, isError: true, kind };
    const reason = 'A person said no. Too much.';
    expect(await outputOf(fields, 'v2')).toEqual({ type: 'error-text', value: reason });
    for (const version of ['v3', 'v4'])
      expect(await outputOf(fields, version)).toEqual({ type: 'execution-denied', reason });
  });
});

describe('a file', () => {
  const filePart = (data: FileData): Message => ({
    role: 'user',
    content: [{ type: 'file', mediaType: 'image/png', filename: 'a.png', data }],
  });
  const sentAs = async (data: FileData, specificationVersion: string) => {
    const [message] = await promptOf([filePart(data)], { specificationVersion });
    return (message?.content as readonly { readonly data: unknown }[])[0];
  };
  const url = 'https://example.com/a.png';

  it.each([
    ['v2', { type: 'data', data: 'aGk=' }, 'aGk='],
    ['v3', { type: 'data', data: 'aGk=' }, 'aGk='],
    ['v4', { type: 'data', data: 'aGk=' }, { type: 'data', data: 'aGk=' }],
    ['v2', { type: 'url', url }, new URL(url)],
    ['v3', { type: 'url', url }, new URL(url)],
    ['v4', { type: 'url', url }, { type: 'url', url: new URL(url) }],
    ['v2', { type: 'url', url: 'data:image/png;base64,aGk=' }, 'aGk='],
    ['v4', { type: 'url', url: 'data:image/png;base64,aGk=' }, { type: 'data', data: 'aGk=' }],
    ['v2', { type: 'text', text: 'hi' }, new TextEncoder().encode('hi')],
    ['v4', { type: 'text', text: 'hi' }, { type: 'text', text: 'hi' }],
    [
      'v4',
      { type: 'reference', reference: { acme: 'f1' } },
      { type: 'reference', reference: { acme: 'f1' } },
    ],
  ] as const)('is given to %s in its form: %j', async (version, data, expected) => {
    expect(await sentAs(data, version)).toEqual({
      type: 'file',
      mediaType: 'image/png',
      filename: 'a.png',
      data: expected,
    });
  });

  it.each([
    ['a reference before v4', 'v3', { type: 'reference', reference: { acme: 'f1' } }],
    ['a URL that is none', 'v4', { type: 'url', url: 'not a url' }],
  ] as const)('that cannot be given is refused, once and for all: %s', async (_what, version, data) => {
    const error = await thrownBy(sentAs(data, version));
    expect((error as LLMProviderError).details).toEqual({ kind: 'unsupported', retryable: false });
  });
});

it('gives what only v4 takes back to v4 alone, and sources to nobody', async () => {
  const file = { mediaType: 'image/png', data: { type: 'data', data: 'aGk=' } };
  const providerMetadata = { acme: { plan: 1 } };
  const content: readonly AssistantPart[] = [
    { type: 'custom', kind: 'acme.plan', providerMetadata },
    { type: 'custom', kind: 'reasoning-file', data: file, providerMetadata },
    { type: 'custom', kind: 'source', data: { url: 'https://example.com/' } },
    { type: 'text', text: 'Hello.' },
  ];
  const text = { type: 'text', text: 'Hello.' };
  expect(await assistantPrompt(content, 'v4')).toEqual([
    { type: 'custom', kind: 'acme.plan', providerOptions: providerMetadata },
    { type: 'reasoning-file', ...file, providerOptions: providerMetadata },
    text,
  ]);
  expect(await assistantPrompt(content, 'v3')).toEqual([text]);
  expect(await assistantPrompt(content, 'v2')).toEqual([text]);
});

describe('tools', () => {
  const tool = { name: 'pay', description: 'Pays.', inputSchema: { type: 'object' } };
  const providerTool = { id: 'acme.search', name: 'search', args: { max: 3 } } as const;

  it('are told in the words of the version', async () => {
    for (const specificationVersion of versions) {
      const { tools } = await askedOf(
        { tools: [tool], providerTools: [providerTool] },
        { specificationVersion },
      );
      const type = specificationVersion === 'v2' ? 'provider-defined' : 'provider';
      expect(tools).toEqual([
        { type: 'function', ...tool },
        { type, ...providerTool },
      ]);
    }
  });

  it('may be chosen, where there are any', async () => {
    const settings = { toolChoice: { toolName: 'pay' } };
    expect((await askedOf({ tools: [tool], settings })).toolChoice).toEqual({
      type: 'tool',
      toolName: 'pay',
    });
    expect((await askedOf({ tools: [tool], settings: { toolChoice: 'required' } })).toolChoice).toEqual({
      type: 'required',
    });
    const without = await askedOf({ settings });
    expect(without).not.toHaveProperty('tools');
    expect(without).not.toHaveProperty('toolChoice');
  });
});

describe('settings', () => {
  it('of the request win over those of the provider, option by option', async () => {
    const asked = await askedOf(
      {
        settings: {
          ...{ temperature: 0, maxOutputTokens: undefined, stopSequences: ['END'] },
          providerOptions: { acme: { effort: 'low' } },
          headers: { 'x-run': '1' },
        },
      },
      {},
      {
        settings: {
          ...{ temperature: 1, maxOutputTokens: 100, topP: 0.5, seed: 7 },
          providerOptions: { acme: { effort: 'high', cache: true }, other: { on: true } },
          headers: { 'x-app': 'a', 'x-run': '0' },
          responseFormat: { type: 'json', schema: { type: 'object' }, name: 'order' },
        },
      },
    );
    expect(asked).toMatchObject({
      ...{ temperature: 0, maxOutputTokens: 100, topP: 0.5, seed: 7, stopSequences: ['END'] },
      providerOptions: { acme: { effort: 'low', cache: true }, other: { on: true } },
      headers: { 'x-app': 'a', 'x-run': '1' },
      responseFormat: { type: 'json', schema: { type: 'object' }, name: 'order' },
    });
  });

  it('are not sent when nobody set them', async () => {
    const { response: _response, ...asked } = await askedOf({});
    expect(Object.keys(asked).sort()).toEqual(['abortSignal', 'prompt']);
  });

  it('say how much to reason where the version can be told, and warn where it cannot', async () => {
    const settings = { reasoning: 'high' } as const;
    expect((await askedOf({ settings })).reasoning).toBe('high');
    for (const specificationVersion of ['v2', 'v3']) {
      const asked = await askedOf({ settings }, { specificationVersion });
      expect(asked).not.toHaveProperty('reasoning');
      expect(asked.response.warnings).toEqual([
        `unsupported: reasoning: models of specification ${specificationVersion} take it in providerOptions only`,
      ]);
    }
  });
});

describe('the Responses API', () => {
  const storeOf = async (provider: string, options?: FromAiSdkOptions, settings = {}) =>
    (await askedOf({ settings }, { provider }, options)).providerOptions;

  it('is told to store nothing, whatever the provider is called', async () => {
    expect(await storeOf('openai.responses')).toEqual({ openai: { store: false } });
    expect(await storeOf('mine.responses')).toEqual({ openai: { store: false } });
    expect(await storeOf('azure.responses')).toEqual({ azure: { store: false }, openai: { store: false } });
    expect(await storeOf('openai.chat')).toBeUndefined();
  });

  it('may store when somebody says so', async () => {
    expect(await storeOf('openai.responses', { openaiStore: true })).toBeUndefined();
    const own = { providerOptions: { openai: { store: true } } };
    expect(await storeOf('openai.responses', {}, own)).toEqual(own.providerOptions);
    expect(await storeOf('openai.responses', { settings: own })).toEqual(own.providerOptions);
  });

  it('keeps its other options', async () => {
    const settings = { providerOptions: { openai: { reasoningSummary: 'auto' } } };
    expect(await storeOf('openai.responses', {}, settings)).toEqual({
      openai: { reasoningSummary: 'auto', store: false },
    });
  });
});

describe('a provider', () => {
  it('is named after the key of its data, and its model', () => {
    expect(fromAiSdk(scriptedModel({ provider: 'anthropic.messages' }))).toMatchObject({
      providerId: 'anthropic',
      modelId: 'acme-1',
    });
  });

  it('is one model: another one is refused instead of silently not asked', async () => {
    expect((await askedOf({ model: 'acme-1' })).prompt).toHaveLength(1);
    const error = await thrownBy(askedOf({ model: 'acme-2' }));
    expect((error as LLMProviderError).details).toEqual({ kind: 'config', retryable: false });
    expect((error as Error).message).toContain('"acme-2"');
  });

  it.each([undefined, null, 'openai/gpt-5', {}])('names what it takes when it is given %j', (model) => {
    expect(() => fromAiSdk(model as never)).toThrow(
      expect.objectContaining({
        code: 'LOUSHO_CONFIG_INVALID',
        details: expect.objectContaining({ option: 'model' }),
      }),
    );
  });

  it('is not made of a model of a version that nobody knows', () => {
    expect(() => fromAiSdk(scriptedModel({ specificationVersion: 'v5' }))).toThrow(LLMProviderError);
  });

  it('is not made with an option that nobody knows', () => {
    expect(() => fromAiSdk(scriptedModel(), { store: true } as never)).toThrow(/"store"/);
  });
});
