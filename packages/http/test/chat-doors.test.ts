/** What else knocks: strangers, broken requests, other servers, questions, and calls inside sub-agents. */
import { createAgent, defineTool, type LLMProvider, type Principal } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { expect, it, vi } from 'vitest';
import { z } from 'zod';
import { createAgentRoutes, createChatHandler, type Access } from '../src/index.ts';
import { approvalIdsIn, openPage, partsOf } from './support/chat-page.ts';
import { deferred, serveChat } from './support/served.ts';
import { lookTool, refundTool } from './support/tools.ts';

const BASE = 'http://localhost/api/chat';

function post(body: unknown, path = ''): Request {
  return new Request(`${BASE}${path}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

const hello = {
  id: 'chat',
  messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }],
};

async function codeOf(response: Response): Promise<unknown> {
  return ((await response.json()) as { error?: { code?: unknown } }).error?.code;
}

it('is not made without somebody who says who may do what', () => {
  const agent = createAgent({ provider: mockModel([]) });
  const open = {} as Parameters<typeof createChatHandler>[1];
  expect(() => createChatHandler(agent, open)).toThrow(
    expect.objectContaining({
      code: 'LOUSHO_CONFIG_INVALID',
      details: expect.objectContaining({ option: 'authorize' }),
    }),
  );
});

it('knows every option that it takes', () => {
  const agent = createAgent({ provider: mockModel([]) });
  const options = { authorize: () => true, basepath: '/chat' };
  const refused = expect.objectContaining({ details: expect.objectContaining({ option: 'basepath' }) });
  expect(() => createChatHandler(agent, options)).toThrow(refused);
  expect(() => createAgentRoutes(agent, options)).toThrow(refused);
});

it('asks who may do what before anything is read or done, and strangers change nothing', async () => {
  const model = mockModel(['Hello.']);
  const agent = createAgent({ provider: model, store: memoryStore() });
  const asked: Access[] = [];
  const handler = createChatHandler(agent, {
    authorize: (_request, access) => {
      asked.push(access);
      return false;
    },
  });
  for (const request of [
    post(hello),
    new Request(`${BASE}/chat`),
    new Request(`${BASE}/chat/stream`),
    post({}, '/chat/stop'),
    post({ approved: true }, '/chat/approvals/chat.apr-1'),
  ]) {
    const response = await handler(request);
    expect([response.status, await codeOf(response)]).toEqual([403, 'FORBIDDEN']);
  }
  expect(asked.map(({ action }) => action)).toEqual(['send', 'read', 'read', 'stop', 'decide']);
  expect(new Set(asked.map(({ sessionId }) => sessionId))).toEqual(new Set(['chat']));
  expect(model.calls).toEqual([]);
});

it('acts for the one who was let in: the run has the principal, and the decision says who made it', async () => {
  const { tool } = refundTool();
  const who: Principal[] = [];
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    execute: async (_args, { principal }) => void who.push(principal as Principal),
  });
  const served = await serveChat(
    {
      provider: mockModel([
        { toolCalls: [{ name: 'look' }, { name: 'refund', args: { cents: 9 } }] },
        'Done.',
      ]),
      tools: [tool, look],
    },
    { authorize: () => ({ id: 'ada', role: 'support' }) },
  );
  const { chat, settled } = openPage('v6', { api: served.api, id: 'chat' });
  await chat.sendMessage({ text: 'Refund.' });
  await chat.addToolApprovalResponse({ id: approvalIdsIn(chat.lastMessage)[0] ?? '', approved: true });
  await settled();
  expect(who).toEqual([{ id: 'ada', role: 'support' }]);
  const stored = JSON.stringify(await served.agent.session({ id: 'chat' }).messages());
  expect(stored).toContain('"by":"ada"');
});

it.each<[string, Request, number, string]>([
  ['no JSON', post('{'), 400, 'LOUSHO_CONFIG_INVALID'],
  ['no messages', post({ id: 'chat' }), 400, 'LOUSHO_CONFIG_INVALID'],
  ['nothing new', post({ id: 'chat', messages: [] }), 400, 'LOUSHO_CONFIG_INVALID'],
  ['an id that no session can have', post({ ...hello, id: 'a/b' }), 400, 'LOUSHO_SESSION_ID_INVALID'],
  [
    'a file from inside',
    post({
      id: 'chat',
      messages: [
        { id: 'm', role: 'user', parts: [{ type: 'file', mediaType: 'a/b', url: 'file:///etc/passwd' }] },
      ],
    }),
    400,
    'LOUSHO_CONFIG_INVALID',
  ],
  [
    'an answer to be made again',
    post({ ...hello, trigger: 'regenerate-message' }),
    400,
    'LOUSHO_CONFIG_INVALID',
  ],
  ['another place', new Request(`${BASE}/chat/files`), 404, 'NOT_FOUND'],
  ['another place beside it', new Request('http://localhost/api/chatter'), 404, 'NOT_FOUND'],
  ['another method', new Request(`${BASE}/chat`, { method: 'DELETE' }), 405, 'METHOD_NOT_ALLOWED'],
  [
    'a decision on what never waited',
    post({ approved: true }, '/chat/approvals/chat.apr-1'),
    404,
    'LOUSHO_APPROVAL_NOT_FOUND',
  ],
  [
    'a decision with a mistyped part',
    post({ approved: true, arg: {} }, '/chat/approvals/x'),
    400,
    'LOUSHO_CONFIG_INVALID',
  ],
  [
    'a start that is no number',
    new Request(`${BASE}/chat/stream?startIndex=x`),
    400,
    'LOUSHO_CONFIG_INVALID',
  ],
])('says what is wrong with %s, and asks no model', async (_what, request, status, code) => {
  const model = mockModel(['Hello.']);
  const agent = createAgent({ provider: model, store: memoryStore() });
  const response = await createChatHandler(agent, { authorize: () => true })(request);
  expect([response.status, await codeOf(response)]).toEqual([status, code]);
  expect(model.calls).toEqual([]);
});

it('answers a message that is posted again with what it came to', async () => {
  const model = mockModel(['Hello.']);
  const agent = createAgent({ provider: model, store: memoryStore() });
  const handler = createChatHandler(agent, { authorize: () => true });
  const first = await (await handler(post(hello))).text();
  const again = await (await handler(post(hello))).text();
  expect(first).toContain('Hello.');
  expect(again).toContain('Hello.');
  expect(again).toContain('data: [DONE]');
  expect(model.calls).toHaveLength(1);
});

it('decides a call of this chat alone', async () => {
  const { ran, tool } = refundTool();
  const served = await serveChat({
    provider: mockModel([{ toolCalls: [{ name: 'refund', args: { cents: 9 } }] }, 'Done.'], {
      answerBy: 'step',
    }),
    tools: [tool],
  });
  const { chat } = openPage('v6', { api: served.api, id: 'mine' });
  await chat.sendMessage({ text: 'Refund.' });
  const [id = ''] = approvalIdsIn(chat.lastMessage);
  const decide = (chatId: string): Promise<Response> =>
    fetch(`${served.api}/${chatId}/approvals/${id}`, {
      method: 'POST',
      body: JSON.stringify({ approved: true, reason: 'Fine.' }),
    });
  expect((await decide('yours')).status).toBe(404);
  expect(ran).not.toHaveBeenCalled();
  expect(await (await decide('mine')).json()).toEqual({ decided: id });
  await vi.waitFor(() => expect(ran).toHaveBeenCalledTimes(1));
  const again = await decide('mine');
  expect([again.status, await codeOf(again)]).toEqual([409, 'LOUSHO_APPROVAL_DECIDED']);
});

it('takes the reason of a response to a question for its answer', async () => {
  const served = await serveChat({
    provider: mockModel([
      { toolCalls: [{ name: 'ask_question', args: { question: 'Which?' } }] },
      'Blue it is.',
    ]),
    askQuestion: true,
  });
  const { chat, settled } = openPage('v6', { api: served.api, id: 'chat' });
  await chat.sendMessage({ text: 'Paint it.' });
  const [id = ''] = approvalIdsIn(chat.lastMessage);
  await chat.addToolApprovalResponse({ id, approved: true, reason: 'blue' });
  await settled();
  const asked = chat.lastMessage?.parts.find(({ type }) => type === 'tool-ask_question');
  expect(asked).toMatchObject({ output: { answer: 'blue' } });
});

it('shows a call inside a sub-agent with everything that it is about, and lets it be decided', async () => {
  const { ran, tool } = refundTool();
  const served = await serveChat({
    provider: mockModel([
      { toolCalls: [{ name: 'task', args: { agent: 'clerk', prompt: 'Refund order 7.' } }] },
      'All done.',
    ]),
    subagents: [
      {
        name: 'clerk',
        description: 'Refunds.',
        provider: mockModel([{ toolCalls: [{ name: 'refund', args: { cents: 9 } }] }, 'Refunded.']),
        tools: [tool],
      },
    ],
  });
  const { chat } = openPage('v6', { api: served.api, id: 'chat' });
  await chat.sendMessage({ text: 'Refund.' });
  const part = chat.lastMessage?.parts.find(({ type }) => type === 'data-lousho-approval');
  expect(part).toMatchObject({ data: { toolName: 'refund', args: { cents: 9 }, subagentPath: ['clerk'] } });
  const { approvalId } = (part as unknown as { data: { approvalId: string } }).data;
  const later = openPage('v6', {
    api: served.api,
    id: 'chat',
    messages: ((await (await fetch(`${served.api}/chat`)).json()) as { messages: [] }).messages,
  });
  expect(later.chat.lastMessage?.parts.at(-1)).toMatchObject({ data: { approvalId } });
  const decided = await fetch(`${served.api}/chat/approvals/${approvalId}`, {
    method: 'POST',
    body: JSON.stringify({ approved: true }),
  });
  expect(decided.status).toBe(200);
  await later.chat.resumeStream();
  await vi.waitFor(async () => {
    const { messages } = (await (await fetch(`${served.api}/chat`)).json()) as { messages: [] };
    expect(partsOf(messages.at(-1))).toContain('text:All done.');
  });
  expect(ran).toHaveBeenCalledTimes(1);
});

it('goes on with an answer whose server went away', async () => {
  const store = memoryStore();
  const begun = deferred();
  const call = { name: 'look', id: 'call_l' };
  const config = (look: () => Promise<string>) => ({
    store,
    provider: mockModel([{ text: 'Let me look.', toolCalls: [call] }, 'It is sunny.'], {
      answerBy: 'step' as const,
    }),
    tools: [lookTool(look)],
  });
  const first = await serveChat(
    config(async () => {
      begun.resolve();
      return new Promise<string>(() => undefined);
    }),
  );
  const { chat } = openPage('v6', { api: first.api, id: 'chat' });
  const sent = chat.sendMessage({ text: 'Weather?' });
  await begun.promise;
  await first.agent.shutdown({ timeoutMs: 0 });
  await sent;
  const second = await serveChat(config(async () => 'sunny'));
  const { messages } = (await (await fetch(`${second.api}/chat`)).json()) as { messages: [] };
  const later = openPage('v6', { api: second.api, id: 'chat', messages });
  await later.chat.resumeStream();
  expect(later.chat.messages.map(partsOf)).toEqual([
    ['text:Weather?'],
    ['text:Let me look.', 'tool-look:output-available', 'text:It is sunny.'],
  ]);
});

it('gives a client that counts its chunks the rest of them, also of an answer that is over', async () => {
  const agent = createAgent({ provider: mockModel(['Hello.']), store: memoryStore() });
  const handler = createChatHandler(agent, { authorize: () => true });
  const response = await handler(post(hello));
  expect(response.headers.get('x-workflow-run-id')).toBe('chat');
  const chunks = (await response.text()).split('\n\n');
  const rest = await handler(new Request(`${BASE}/chat/stream?startIndex=3`));
  expect((await rest.text()).split('\n\n')).toEqual(chunks.slice(3));
});

it('says what another model answers behind the words of one that broke off', async () => {
  const broken: LLMProvider = {
    ...mockModel([]),
    async *stream() {
      yield { type: 'text-delta', text: 'Half an' };
      throw Object.assign(new Error('cut'), { retryable: true });
    },
  };
  const whole = mockModel(['Whole.']);
  // It cannot stream.
  const plain: LLMProvider = {
    providerId: whole.providerId,
    modelId: whole.modelId,
    generate: (request) => whole.generate(request),
  };
  const served = await serveChat({ provider: broken, fallbackModels: [plain], retry: { maxRetries: 0 } });
  const { chat } = openPage('v6', { api: served.api, id: 'chat' });
  await chat.sendMessage({ text: 'Hi.' });
  expect(partsOf(chat.lastMessage)).toEqual(['text:Half an', 'text:Whole.']);
});
