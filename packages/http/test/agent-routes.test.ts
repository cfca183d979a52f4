/** Services that speak plain JSON to an agent. */
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { createAgentRoutes, type Access, type AgentRoutesOptions } from '../src/index.ts';
import { refundTool } from './support/tools.ts';

function given(options: Partial<AgentRoutesOptions> = {}) {
  const { ran, tool } = refundTool();
  const model = mockModel([{ toolCalls: [{ name: 'refund', args: { cents: 9 } }] }, 'Done.', 'Bye.']);
  const agent = createAgent({ provider: model, tools: [tool], store: memoryStore() });
  const routes = createAgentRoutes(agent, { authorize: () => true, basePath: '/agent', ...options });
  const ask = (method: string, path: string, body?: unknown, headers = {}): Promise<Response> =>
    routes(
      new Request(`http://localhost/agent/${path}`, {
        method,
        headers,
        ...(body === undefined ? undefined : { body: JSON.stringify(body) }),
      }),
    );
  return { agent, model, ran, ask };
}

it('sends, pauses, decides and reads a conversation', async () => {
  const { ran, ask } = given();
  const sent = await ask('POST', 'sessions/order-7/messages', { input: 'Refund.', inputId: 'in-1' });
  expect(await sent.json()).toMatchObject({ finishReason: 'awaiting-approval' });
  expect(await (await ask('GET', 'pending')).json()).toMatchObject({
    pending: [{ sessionId: 'order-7', status: 'awaiting-approval' }],
  });
  const { approvals } = (await (await ask('GET', 'approvals?sessionId=order-7')).json()) as {
    approvals: { id: string }[];
  };
  const id = approvals[0]?.id ?? '';
  const decided = await ask('POST', `approvals/${id}`, { approved: true, args: { cents: 5 }, note: 'Half.' });
  expect(await decided.json()).toMatchObject({ finishReason: 'stop', text: 'Done.' });
  expect(ran).toHaveBeenCalledExactlyOnceWith({ cents: 5 }, expect.anything());
  const { messages } = (await (await ask('GET', 'sessions/order-7/messages')).json()) as { messages: [] };
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  expect((await ask('DELETE', 'sessions/order-7')).status).toBe(204);
  expect(await (await ask('GET', 'sessions/order-7/messages')).json()).toEqual({ messages: [] });
});

it('streams every event, numbered, to whoever accepts them', async () => {
  const { ask } = given();
  const accept = { accept: 'text/event-stream' };
  const response = await ask('POST', 'sessions/order-7/messages', { input: 'Refund.' }, accept);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const events = (await response.text())
    .trim()
    .split('\n\n')
    .map((text) => JSON.parse(text.slice(text.indexOf('data: ') + 6)) as { type: string; seq: number });
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index));
  expect(events.at(0)?.type).toBe('run.start');
  expect(events.map(({ type }) => type)).toContain('approval.requested');
  expect(events.at(-1)).toMatchObject({ type: 'run.done', finishReason: 'awaiting-approval' });
});

it.each<[string, string, string, unknown, number, string]>([
  [
    'an id that no session can have',
    'POST',
    'sessions/a%2Fb/messages',
    { input: 'x' },
    400,
    'LOUSHO_SESSION_ID_INVALID',
  ],
  ['a mistyped part', 'POST', 'sessions/a/messages', { inptu: 'x' }, 400, 'LOUSHO_CONFIG_INVALID'],
  ['no input', 'POST', 'sessions/a/messages', {}, 400, 'LOUSHO_CONFIG_INVALID'],
  [
    'an approval that nobody waits for',
    'POST',
    'approvals/a.apr-1',
    { approved: true },
    404,
    'LOUSHO_APPROVAL_NOT_FOUND',
  ],
  ['a decision that is none', 'POST', 'approvals/a.apr-1', { approved: 'yes' }, 400, 'LOUSHO_CONFIG_INVALID'],
  ['another place', 'GET', 'sessions', undefined, 404, 'NOT_FOUND'],
])('says what is wrong with %s', async (_what, method, path, body, status, code) => {
  const { ask, model } = given();
  const response = await ask(method, path, body);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ error: { code, message: expect.any(String) } });
  expect(model.calls).toEqual([]);
});

it('tells one who sends into a pause which approval it waits for', async () => {
  const { ask } = given();
  await ask('POST', 'sessions/order-7/messages', { input: 'Refund.' });
  const response = await ask('POST', 'sessions/order-7/messages', { input: 'Hurry.' });
  expect(response.status).toBe(409);
  expect(await response.json()).toMatchObject({
    error: { code: 'LOUSHO_SESSION_AWAITING_APPROVAL', approvalId: expect.stringContaining('order-7') },
  });
});

it('has nothing to resume when nothing is unfinished', async () => {
  const { ask } = given();
  expect((await ask('POST', 'sessions/order-7/resume')).status).toBe(204);
});

it('asks who may decide with the session that the call belongs to', async () => {
  const asked: Access[] = [];
  const { agent, ask, ran } = given({
    authorize: (_request, access) => {
      asked.push(access);
      return access.action !== 'decide';
    },
  });
  await ask('POST', 'sessions/order-7/messages', { input: 'Refund.' });
  const [request] = await agent.approvals.list();
  expect((await ask('POST', `approvals/${request?.id}`, { approved: true })).status).toBe(403);
  expect(asked.at(-1)).toEqual({ action: 'decide', sessionId: 'order-7' });
  expect(ran).not.toHaveBeenCalled();
});
