/** Clients as they come: strangers, late ones, from another site, with too much or nothing to say, two hundred at once. */
import { createServer, type RequestListener } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel } from '@lousho/testing';
import { expect, it, onTestFinished } from 'vitest';
import { createAgentRoutes, createChatHandler, type ChatHandlerOptions } from '../src/index.ts';
import { nodeListener } from '../src/node.ts';
import { openPage, partsOf } from './support/chat-page.ts';
import { serveChat } from './support/served.ts';
import { refundTool, slowLookTool } from './support/tools.ts';

const BASE = 'http://localhost/api/chat';
const json = { 'content-type': 'application/json' };

function said(text: string, { id = 'm1', chat = 'chat' } = {}): object {
  return { id: chat, messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }] };
}

function post(body: unknown, path = '', headers: Readonly<Record<string, string>> = {}): Request {
  return new Request(`${BASE}${path}`, { method: 'POST', body: JSON.stringify(body), headers });
}

/** What a page posts that has approved this call. */
function approved(chat: string, id: string): object {
  const part = {
    ...{ type: 'tool-refund', toolCallId: 'call_1', input: {}, state: 'approval-responded' },
    approval: { id, approved: true },
  };
  return { id: chat, messages: [{ id: 'assistant-1', role: 'assistant', parts: [part] }] };
}

async function outcomeOf(response: Response): Promise<readonly [number, unknown]> {
  const { error } = (await response.json()) as { error?: { code?: unknown } };
  return [response.status, error?.code];
}

function givenAgent(options: Partial<ChatHandlerOptions> = {}) {
  const { ran, tool } = refundTool();
  const model = mockModel([{ toolCalls: [{ name: 'refund', args: { cents: 9 } }] }, 'Done.'], {
    answerBy: 'step',
  });
  const agent = createAgent({ provider: model, tools: [tool], store: memoryStore() });
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const handler = createChatHandler(agent, { authorize: () => true, onError, ...options });
  const pause = async (chat: string): Promise<string> => {
    await (await handler(post(said('Refund.', { chat })))).text();
    return (await agent.approvals.list({ sessionId: chat }))[0]?.id ?? '';
  };
  return { agent, model, handler, ran, errors, pause };
}

/* ── Who decides what, and when ── */

it('decides no call of another chat, whichever way a page names it', async () => {
  const { agent, handler, ran, pause } = givenAgent();
  const id = await pause('yours');
  const mine = createChatHandler(agent, { authorize: (_request, { sessionId }) => sessionId === 'mine' });
  const asNever = [404, 'LOUSHO_APPROVAL_NOT_FOUND'];
  const inItsPath = (): Request => post({ approved: true }, `/mine/approvals/${id}`);
  expect(await outcomeOf(await mine(post(approved('mine', id))))).toEqual(asNever);
  expect(await outcomeOf(await mine(inItsPath()))).toEqual(asNever);
  expect(ran).not.toHaveBeenCalled();

  await (await handler(post(approved('yours', id)))).text();
  // Nor is it told who decided it.
  expect(await outcomeOf(await mine(post(approved('mine', id))))).toEqual(asNever);
  expect(await outcomeOf(await mine(inItsPath()))).toEqual(asNever);
  expect(ran).toHaveBeenCalledTimes(1);
});

it('runs a call once that two pages approve at one moment; a third that comes when the run went on is told', async () => {
  const { handler, ran, pause } = givenAgent();
  const id = await pause('chat');
  const both = await Promise.all([handler(post(approved('chat', id))), handler(post(approved('chat', id)))]);
  await Promise.all(both.map((response) => response.text()));
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  await (await handler(post(said('And?', { id: 'm2' })))).text();
  const late = await handler(post(approved('chat', id)));
  expect(await outcomeOf(late)).toEqual([409, 'LOUSHO_APPROVAL_DECIDED']);
  expect(ran).toHaveBeenCalledTimes(1);
});

it('answers a message that another tab sends during an answer behind that answer', async () => {
  const slow = slowLookTool();
  const provider = mockModel([{ toolCalls: [{ name: 'look' }] }, 'Sunny.', 'Oslo, too.']);
  const { api, agent } = await serveChat({ provider, tools: [slow.tool] });
  const send = async (text: string, id: string): Promise<string> =>
    (await fetch(api, { method: 'POST', body: JSON.stringify(said(text, { id })) })).text();
  const first = send('Weather?', 'm1');
  await slow.begun;
  const second = send('And in Oslo?', 'm2');
  // It has arrived, and waits: what the server says to a third request comes behind it.
  await (await fetch(`${api}/chat`)).text();
  slow.goOn();
  expect(await first).toContain('Sunny.');
  expect(await second).toContain('"messageId":"assistant-2"');
  const roles = (await agent.session({ id: 'chat' }).messages()).map(({ role }) => role);
  expect(roles).toEqual(['user', 'assistant', 'tool', 'assistant', 'user', 'assistant']);
});

it('gives each answer an id of its own on a page that posts its newest message alone', async () => {
  const { api } = await serveChat({ provider: mockModel(['One.', 'Two.', 'Three.']) });
  const idOf = async (text: string, id: string): Promise<unknown> => {
    const response = await fetch(api, { method: 'POST', body: JSON.stringify(said(text, { id })) });
    return /"messageId":"([^"]*)"/.exec(await response.text())?.[1];
  };
  const ids = [await idOf('1', 'm1'), await idOf('2', 'm2'), await idOf('3', 'm3')];
  expect(ids).toEqual(['assistant-1', 'assistant-2', 'assistant-3']);
  // Posted again, it is the same one.
  expect(await idOf('3', 'm3')).toBe('assistant-3');
  const { messages } = (await (await fetch(`${api}/chat`)).json()) as { messages: { id: string }[] };
  expect(messages.map(({ id }) => id).filter((id) => id.startsWith('assistant'))).toEqual(ids);
});

/* ── Answers that are over ── */

async function givenAnswerThatAPageSawTheMiddleOf() {
  const slow = slowLookTool();
  const served = await serveChat({
    provider: mockModel([{ toolCalls: [{ name: 'look' }] }, 'It is sunny.']),
    tools: [slow.tool],
  });
  const { chat } = openPage('v6', { api: served.api, id: 'chat' });
  const sent = chat.sendMessage({ text: 'Weather?' });
  await slow.begun;
  await (await fetch(`${served.api}/chat`)).text();
  slow.goOn();
  await sent;
  return { ...served, comeBack: () => fetch(`${served.api}/chat/stream`) };
}

it('tells an answer that is over to the page that saw its middle, and to no other', async () => {
  const { comeBack } = await givenAnswerThatAPageSawTheMiddleOf();
  expect(await (await comeBack()).text()).toContain('sunny.');
  expect((await comeBack()).status).toBe(204);
});

it('tells nothing of a conversation that was forgotten', async () => {
  const { agent, api, comeBack } = await givenAnswerThatAPageSawTheMiddleOf();
  await agent.session({ id: 'chat' }).clear();
  expect((await comeBack()).status).toBe(204);
  expect((await fetch(`${api}/chat/stream?startIndex=1`)).status).toBe(204);
});

it('gives a sign of life while a tool takes long, so that no proxy ends the connection', async () => {
  const slow = slowLookTool();
  const clock = manualClock();
  const provider = mockModel([{ toolCalls: [{ name: 'look' }] }, 'It is sunny.']);
  const { api } = await serveChat({ provider, tools: [slow.tool] }, { clock });
  const response = await fetch(api, { method: 'POST', body: JSON.stringify(said('Weather?')) });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let heard = '';
  const listen = async (): Promise<void> => void (heard += (await reader?.read())?.value ?? '');
  while (!heard.includes('tool-input-available')) await listen();
  const before = heard.length;
  await clock.advance(15_000);
  await listen();
  await clock.advance(15_000);
  await listen();
  expect(heard.slice(before)).toBe(':\n\n:\n\n');
  slow.goOn();
  while (!heard.includes('[DONE]')) await listen();
  expect(heard).toContain('sunny.');
});

/* ── Code of the application that throws ── */

it('lets nothing happen when nobody can say who may do what', async () => {
  const { handler, errors, model } = givenAgent({
    authorize: () => {
      throw new Error('no database at db-7');
    },
  });
  const response = await handler(post(said('Hi.')));
  const text = await response.text();
  expect([response.status, text]).toEqual([500, expect.not.stringContaining('db-7')]);
  expect(errors.map(String)).toEqual(['Error: no database at db-7']);
  expect(model.calls).toEqual([]);
});

it.each([
  [
    'throws',
    () => {
      throw new Error('The log is full.');
    },
  ],
  ['rejects', async () => Promise.reject(new Error('The log is full.'))],
])('answers, and the process lives, when `onError` %s', async (_what, onError) => {
  const agent = createAgent({
    provider: mockModel([new Error('wrong')]),
    retry: { maxRetries: 0 },
    store: memoryStore(),
  });
  const reporting = { onError: onError as () => void };
  const handler = createChatHandler(agent, { authorize: () => true, ...reporting });
  expect(await (await handler(post(said('Hi.')))).text()).toContain('LOUSHO_PROVIDER_ERROR');
  const authorize = (): never => {
    throw new Error('no database');
  };
  const closed = createChatHandler(agent, { authorize, ...reporting });
  expect(await outcomeOf(await closed(post(said('Hi.'))))).toEqual([500, 'INTERNAL']);
});

/* ── Requests that are wrong ── */

it.each([
  ['no parts', []],
  ['a text without words', [{ type: 'text', text: '' }]],
])('takes no message of %s: the model would refuse it in every turn to come', async (_what, parts) => {
  const { handler, model } = givenAgent();
  const response = await handler(post({ id: 'chat', messages: [{ id: 'm1', role: 'user', parts }] }));
  expect(await outcomeOf(response)).toEqual([400, 'LOUSHO_INPUT_EMPTY']);
  expect(model.calls).toEqual([]);
});

it('says which methods there are', async () => {
  const { handler } = givenAgent();
  const allowed = async (method: string, path: string): Promise<unknown> => {
    const { status, headers } = await handler(new Request(`${BASE}${path}`, { method }));
    return [status, headers.get('allow')];
  };
  expect(await allowed('GET', '')).toEqual([405, 'POST']);
  expect(await allowed('HEAD', '/chat/stream')).toEqual([405, 'GET']);
  expect(await allowed('OPTIONS', '/chat/stop')).toEqual([405, 'POST']);
});

it('takes no message, decision or stop of another site unless the browser has asked whether it may', async () => {
  const { handler, agent, ran, pause } = givenAgent();
  const id = await pause('chat');
  const routes = createAgentRoutes(agent, { authorize: () => true, basePath: '/api/chat' });
  const foreign = { 'sec-fetch-site': 'cross-site' };
  const refused = [403, 'FORBIDDEN'];
  expect(await outcomeOf(await handler(post(approved('chat', id), '', foreign)))).toEqual(refused);
  expect(await outcomeOf(await handler(post({}, '/chat/stop', foreign)))).toEqual(refused);
  expect(await outcomeOf(await routes(post({ approved: true }, `/approvals/${id}`, foreign)))).toEqual(
    refused,
  );
  expect(ran).not.toHaveBeenCalled();

  const own = { 'sec-fetch-site': 'same-origin' };
  expect((await handler(post({}, '/chat/stop', own))).status).toBe(200);
  expect((await handler(post(approved('chat', id), '', { ...foreign, ...json }))).status).toBe(200);
});

it('reads no more of a body than it may, and a long message within it', async () => {
  const served = await serveChat(
    { provider: mockModel(['Read.'], { answerBy: 'step' }) },
    { maxBodyBytes: 3_000_000 },
  );
  const page = openPage('v6', { api: served.api, id: 'long' });
  await page.chat.sendMessage({ text: 'x'.repeat(2_900_000) });
  expect(partsOf(page.chat.lastMessage)).toEqual(['text:Read.']);
  const body = JSON.stringify(said('x'.repeat(3_000_000), { chat: 'longer' }));
  const response = await fetch(served.api, { method: 'POST', body });
  expect(await outcomeOf(response)).toEqual([413, 'BODY_TOO_LARGE']);
  expect(await served.agent.session({ id: 'longer' }).messages()).toEqual([]);
});

it('has a limit of bytes that is one', () => {
  const { agent } = givenAgent();
  const refused = expect.objectContaining({ details: expect.objectContaining({ option: 'maxBodyBytes' }) });
  for (const maxBodyBytes of [0, 1.5, Number.NaN])
    for (const create of [createChatHandler, createAgentRoutes])
      expect(() => create(agent, { authorize: () => true, maxBodyBytes })).toThrow(refused);
});

/* ── What only node:http lets through ── */

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** What comes back until the server ends the connection. */
function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.setEncoding('utf8').on('data', (data: string) => (heard += data));
    socket.on('close', () => resolve(heard)).on('error', reject);
  });
}

it.each([
  ['a path of slashes', 'GET // HTTP/1.1\r\nHost: x', '404'],
  ['a host that is none', 'GET /api/chat/x HTTP/1.1\r\nHost: a b', '400'],
  ['a method that no request has', 'TRACE /api/chat/x HTTP/1.1\r\nHost: x', '400'],
  ['half an escape', 'GET /api/chat/%zz HTTP/1.1\r\nHost: x', '400'],
])('answers a request with %s', async (_what, head, status) => {
  const { handler } = givenAgent();
  const port = await serve(nodeListener(handler));
  expect(await sendRaw(port, `${head}\r\nConnection: close\r\n\r\n`)).toContain(`HTTP/1.1 ${status} `);
});

it('answers before a body has come that is too long, and ends the connection', async () => {
  const { handler } = givenAgent({ maxBodyBytes: 10 });
  const port = await serve(nodeListener(handler));
  const heard = await sendRaw(
    port,
    `POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n${'x'.repeat(20)}`,
  );
  expect(heard).toContain('HTTP/1.1 413 ');
  expect(heard.toLowerCase()).toContain('connection: close');
});

it('gives each cookie that `authorize` sets a header of its own', async () => {
  const headers = new Headers([
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT'],
  ]);
  const { handler } = givenAgent({ authorize: () => new Response(null, { status: 401, headers }) });
  const port = await serve(nodeListener(handler));
  const response = await fetch(`http://127.0.0.1:${port}/api/chat/x`);
  expect([response.status, response.headers.getSetCookie()]).toEqual([401, headers.getSetCookie()]);
  // Nothing of the request was left unread: the connection may be used again.
  expect(response.headers.get('connection')).toBe('keep-alive');
});

/* ── Many ── */

it('serves two hundred chats at once, and asks the model once for a message that comes two hundred times', async () => {
  const model = mockModel(['Hello.'], { answerBy: 'step' });
  const served = await serveChat({ provider: model });
  const send = async (chat: string): Promise<string> =>
    (await fetch(served.api, { method: 'POST', body: JSON.stringify(said('Hi.', { chat })) })).text();
  const numbers = Array.from({ length: 200 }, (_, index) => index);
  const answers = await Promise.all(numbers.map((index) => send(`chat-${index}`)));
  expect(answers.filter((text) => text.includes('Hello.') && text.includes('[DONE]'))).toHaveLength(200);
  expect(model.calls).toHaveLength(200);

  const same = await Promise.all(numbers.map(() => send('same')));
  expect(same.filter((text) => text.includes('Hello.'))).toHaveLength(200);
  expect(model.calls).toHaveLength(201);
  expect(served.errors).toEqual([]);
});
