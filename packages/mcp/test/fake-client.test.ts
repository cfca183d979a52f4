/** What does not need a server: names, rules, limits, and what a connection does. */
import {
  ConfigurationError,
  isPersonQuestion,
  type NeedsApproval,
  type askPerson,
  type ToolContext,
} from '@lousho/contract';
import { expect, it } from 'vitest';
import {
  mcpTools,
  type McpCallParams,
  type McpClient,
  type McpToolInfo,
  type McpToolsOptions,
} from '../src/index.ts';

const inputSchema = { type: 'object' };

/** A client of line 2 whose server lists these tools, and answers what `answer` gives. */
function fakeClient(tools: readonly Partial<McpToolInfo>[], answer: () => unknown = () => ({})) {
  const state = { calls: 0, closes: 0 };
  const client = {
    getNegotiatedProtocolVersion: () => '2026-07-28',
    listTools: async () => ({ tools: tools.map((tool) => ({ name: 'tool', inputSchema, ...tool })) }),
    callTool: async () => {
      state.calls += 1;
      return answer();
    },
    close: async () => {
      state.closes += 1;
    },
  } satisfies McpClient & { getNegotiatedProtocolVersion(): string };
  return Object.assign(client as McpClient, { state });
}

const ctx = { idempotencyKey: 'k', toolCallId: 'c', signal: new AbortController().signal } as ToolContext;

async function resultOf(answer: unknown, options: McpToolsOptions = {}): Promise<unknown> {
  const [tool] = await mcpTools({ client: fakeClient([{}], () => answer), ...options });
  return tool?.execute({}, ctx);
}

/* ── Names ── */

it.each([
  ['a name of the server as it is', '', 'read_file', 'read_file'],
  ['the prefix before it', 'fs', 'read_file', 'fs_read_file'],
  ['an underscore for what providers refuse', 'x', 'a.b/c d', 'x_a_b_c_d'],
])('gives a tool %s', async (_what, prefix, name, expected) => {
  const client = fakeClient([{ name }]);
  const [tool] = await mcpTools({ client, ...(prefix === '' ? undefined : { prefix }) });
  expect(tool?.name).toBe(expected);
});

it('cuts a name that is too long, and keeps those apart that begin alike', async () => {
  const long = 'a'.repeat(80);
  const both = await mcpTools({
    client: fakeClient([{ name: `${long}1` }, { name: `${long}2` }]),
    prefix: 'p',
  });
  const alone = await mcpTools({ client: fakeClient([{ name: `${long}2` }]), prefix: 'p' });
  expect(both.map(({ name }) => name.length)).toEqual([64, 64]);
  expect(both[0]?.name).not.toBe(both[1]?.name);
  // Whatever else the server lists.
  expect(alone[0]?.name).toBe(both[1]?.name);
});

it('refuses two tools that come to one name, and says which', async () => {
  const options = { client: fakeClient([{ name: 'a.b' }, { name: 'a_b' }]) };
  await expect(mcpTools(options)).rejects.toThrow('"a.b" and "a_b" of the server are both "a_b" here');
  await expect(mcpTools({ ...options, exclude: ['a.b'] })).resolves.toHaveLength(1);
});

it('lists every page', async () => {
  const client = fakeClient([]);
  client.listTools = async (params) =>
    params?.cursor === undefined
      ? { tools: [{ name: 'one', inputSchema }], nextCursor: 'more' }
      : { tools: [{ name: 'two', inputSchema }] };
  expect((await mcpTools({ client })).map(({ name }) => name)).toEqual(['one', 'two']);
});

it('leaves out what cannot be called, and says why', async () => {
  const client = fakeClient([
    { name: 'task', execution: { taskSupport: 'required' } },
    { name: 'list', inputSchema: { type: 'array' } },
    { name: 'good' },
  ]);
  const tools = await mcpTools({ client });
  expect(tools.map(({ name }) => name)).toEqual(['good']);
  expect(tools.leftOut).toEqual([
    { name: 'task', reason: expect.stringContaining('task') },
    { name: 'list', reason: expect.stringContaining('the schema of an object') },
  ]);
});

/* ── Who must agree, and what a resume does ── */

const readOnly = { readOnlyHint: true };
const additive = { destructiveHint: false };
const idempotent = { idempotentHint: true };

it.each<[string, McpToolInfo['annotations'], McpToolsOptions, NeedsApproval, string]>([
  ['nothing is said', undefined, {}, true, 'never'],
  ['it only reads', readOnly, {}, false, 'never'],
  ['it only adds', additive, {}, true, 'never'],
  ['it is idempotent', idempotent, {}, true, 'never'],
  ['nothing is said by a trusted server', undefined, { trust: true }, true, 'never'],
  ['a trusted one says that it reads', readOnly, { trust: true }, false, 'retry'],
  ['a trusted one says that it adds', additive, { trust: true }, false, 'never'],
  ['a trusted one says that it is idempotent', idempotent, { trust: true }, true, 'retry'],
  ['all is to be asked', readOnly, { approve: 'always' }, true, 'never'],
  ['nothing is to be asked', undefined, { approve: 'never' }, false, 'never'],
  ['only destruction is to be asked', additive, { approve: 'destructive' }, false, 'never'],
  ['people decide about cut calls', readOnly, { onInterrupted: 'ask' }, false, 'ask'],
  ['a function decides', undefined, { approve: () => false, onInterrupted: () => 'retry' }, false, 'retry'],
])('when %s', async (_what, annotations, options, needsApproval, onInterrupted) => {
  const [tool] = await mcpTools({ client: fakeClient([{ annotations }]), ...options });
  expect(tool).toMatchObject({ needsApproval, onInterrupted });
});

/* ── Results ── */

const text = (value: string): object => ({ type: 'text', text: value });
const image = { type: 'image', mimeType: 'image/png', data: 'QUJDRA==' };

it('gives texts as one text, structured content as it is, and a list for what is mixed', async () => {
  expect(await resultOf({ content: [text('a'), text('b')] })).toBe('a\nb');
  expect(await resultOf({ content: [text('{"n":1}')], structuredContent: { n: 1 } })).toEqual({ n: 1 });
  const link = { type: 'resource_link', uri: 'file:///a', name: 'a' };
  expect(await resultOf({ content: [text('see'), link] })).toEqual({ content: [text('see'), link] });
  expect(await resultOf({ content: [] })).toBe('');
});

it('puts a note in the place of what is no text, unless it is wanted', async () => {
  expect(await resultOf({ content: [image] })).toBe('[image image/png, 6 bytes, left out]');
  expect(await resultOf({ content: [image] }, { binary: 'base64' })).toEqual({
    content: [{ type: 'image', mediaType: 'image/png', data: 'QUJDRA==' }],
  });
});

it('keeps as much of a text as the limit says, never half a character', async () => {
  const result = await resultOf({ content: [text('ä'.repeat(100)), text('more')] }, { maxResultBytes: 15 });
  expect(result).toBe(
    `${'ä'.repeat(7)}\n[186 bytes left out: of this result, 15 bytes are kept]\n[4 bytes left out: of this result, 15 bytes are kept]`,
  );
});

it('falls back to the text of structured content that is too large', async () => {
  const answer = { content: [text('x'.repeat(50))], structuredContent: { x: 'x'.repeat(50) } };
  expect(await resultOf(answer, { maxResultBytes: 10 })).toMatch(/^x{10}\n\[40 bytes left out/);
});

it('throws what the tool answers as an error, in its words', async () => {
  await expect(resultOf({ isError: true, content: [text('no money')] })).rejects.toThrow(
    'MCP_TOOL_FAILED: no money',
  );
});

/* ── The connection ── */

it('shares one connection, and makes one attempt at a time to get it', async () => {
  let connects = 0;
  const client = fakeClient([{}]);
  const connect = async (): Promise<McpClient> => {
    connects += 1;
    return client;
  };
  const [tool] = await mcpTools({ connect });
  await Promise.all([tool?.execute({}, ctx), tool?.execute({}, ctx)]);
  expect(connects).toBe(1);
  client.onclose?.();
  await Promise.all([tool?.execute({}, ctx), tool?.execute({}, ctx)]);
  expect(connects).toBe(2);
});

it('sends a call once more when the first was certainly not sent, and never otherwise', async () => {
  const failures = [Object.assign(new Error('Not connected')), new Error('socket hang up')];
  const clients = failures.map((failure) =>
    fakeClient([{}], () => {
      throw failure;
    }),
  );
  const left = [...clients];
  const connect = (): McpClient => left.shift() ?? fakeClient([{}]);
  const [tool] = await mcpTools({ connect });
  await expect(tool?.execute({}, ctx)).rejects.toThrow('MCP_OUTCOME_UNKNOWN');
  expect(clients.map(({ state }) => state.calls)).toEqual([1, 1]);
});

it('tries again after an attempt to connect has failed', async () => {
  const client = fakeClient([{}]);
  const attempts: (() => McpClient)[] = [
    () => client,
    () => {
      throw new Error('no route');
    },
  ];
  const [tool] = await mcpTools({ connect: () => (attempts.shift() ?? (() => client))() });
  client.onclose?.();
  await expect(tool?.execute({}, ctx)).rejects.toThrow('MCP_UNREACHABLE');
  await expect(tool?.execute({}, ctx)).resolves.toBe('');
});

it('leaves a client that was given to whoever gave it', async () => {
  const client = fakeClient([{}]);
  const tools = await mcpTools({ client });
  await tools.close();
  expect(client.state.closes).toBe(0);
  await expect(tools[0]?.execute({}, ctx)).rejects.toThrow('MCP_CLOSED');
});

it('closes what it connected when the tools cannot be made', async () => {
  const client = fakeClient([{ name: 'a.b' }, { name: 'a_b' }]);
  await expect(mcpTools({ connect: () => client })).rejects.toThrow(ConfigurationError);
  expect(client.state.closes).toBe(1);
});

/* ── Input that a tool asks for ── */

type Asked = ReturnType<typeof askPerson>;
const wants = (properties: object, required: readonly string[] = Object.keys(properties)): object => ({
  resultType: 'input_required',
  inputRequests: {
    form: {
      method: 'elicitation/create',
      params: { message: 'Tell me.', requestedSchema: { type: 'object', properties, required } },
    },
  },
  requestState: 's1',
});

/** What a person is asked, one answer after the other, and what the server gets in the end. */
async function interview(asked: object, answers: readonly string[]) {
  const sent: McpCallParams[] = [];
  const replies = [asked, { content: [] }];
  const client = fakeClient([{}]);
  client.callTool = async (params) => {
    sent.push(params);
    return replies.shift();
  };
  const [tool] = await mcpTools({ client });
  const questions: Asked['question'][] = [];
  let given = await tool?.execute({}, ctx);
  for (const text of answers) {
    if (!isPersonQuestion(given)) throw new Error('It does not ask.');
    questions.push(given.question);
    given = await tool?.execute({}, { ...ctx, answer: { text, state: given.state } });
  }
  return { questions, given, sent };
}

it.each<[string, object, readonly string[], unknown]>([
  ['a text', { type: 'string' }, ['Ann'], 'Ann'],
  ['a number, asking again for what is none', { type: 'integer' }, ['some', '3'], 3],
  ['a yes', { type: 'boolean' }, ['Yes'], true],
  ['one of a list', { enum: ['a', 'b'] }, ['B'], 'b'],
  ['one of a list with titles', { oneOf: [{ const: 'x', title: 'The X' }] }, ['the x'], 'x'],
  ['several of a list', { type: 'array', items: { enum: ['a', 'b', 'c'] } }, ['a, C'], ['a', 'c']],
])('takes %s', async (_what, schema, answers, expected) => {
  const { sent, questions } = await interview(wants({ it: schema }), answers);
  expect(questions).toHaveLength(answers.length);
  expect(sent).toHaveLength(2);
  expect(sent[1]).toMatchObject({
    inputResponses: { form: { action: 'accept', content: { it: expected } } },
    requestState: 's1',
  });
});

it('leaves out what is optional and not wanted', async () => {
  const { sent } = await interview(wants({ a: { type: 'string' }, b: { type: 'string' } }, ['a']), [
    'x',
    '-',
  ]);
  expect(sent[1]?.inputResponses).toEqual({ form: { action: 'accept', content: { a: 'x' } } });
});

it('sends a person to an address, and goes on when that is done', async () => {
  const params = { mode: 'url', message: 'Sign in.', url: 'https://example.com/in', elicitationId: 'e' };
  const asked = {
    resultType: 'input_required',
    inputRequests: { sign: { method: 'elicitation/create', params } },
  };
  const { questions, sent } = await interview(asked, ['done']);
  expect(questions[0]?.text).toContain('https://example.com/in');
  expect(sent[1]?.inputResponses).toEqual({ sign: { action: 'accept' } });
});

it('refuses to ask a person for what only a client can give', async () => {
  const asked = {
    resultType: 'input_required',
    inputRequests: { sample: { method: 'sampling/createMessage', params: {} } },
  };
  await expect(resultOf(asked)).rejects.toThrow('MCP_INPUT_REQUIRED');
});

it('starts over when the server does not know its own state any more', async () => {
  const expired = Object.assign(new Error('Invalid or expired requestState'), { code: -32_602 });
  const replies = [() => wants({ it: {} }), () => Promise.reject(expired), () => wants({ it: {} })];
  const [tool] = await mcpTools({ client: fakeClient([{}], () => replies.shift()?.()) });
  const first = (await tool?.execute({}, ctx)) as Asked;
  const again = await tool?.execute({}, { ...ctx, answer: { text: 'x', state: first.state } });
  expect(isPersonQuestion(again)).toBe(true);
});

/* ── Options ── */

it.each<[string, object]>([
  ['connect', {}],
  ['connect', { connect: () => fakeClient([]), client: fakeClient([]) }],
  ['prefix', { prefix: 'a b' }],
  ['trust', { trust: 'yes' }],
  ['approve', { approve: 'sometimes' }],
  ['onInterrupted', { onInterrupted: 'maybe' }],
  ['include', { include: ['nope'] }],
  ['exclude', { exclude: ['nope'] }],
  ['timeoutMs', { timeoutMs: 0 }],
  ['maxResultBytes', { maxResultBytes: 1.5 }],
  ['binary', { binary: true }],
  ['timeout', { timeout: 5 }],
])('refuses a wrong %s', async (option, options) => {
  const base = option === 'connect' ? {} : { client: fakeClient([{}]) };
  await expect(mcpTools({ ...base, ...options })).rejects.toMatchObject({
    code: 'LOUSHO_CONFIG_INVALID',
    details: { option },
  });
});
