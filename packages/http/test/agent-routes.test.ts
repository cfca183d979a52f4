/** Services that speak plain JSON to an agent. */
import { createAgent, type Tool } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { createAgentRoutes, type Access, type AgentRoutesOptions } from '../src/index.ts';
import { endlessTool, refundTool } from './support/tools.ts';

function given(options: Partial<AgentRoutesOptions> = {}, tools: readonly Tool[] = []) {
  const { ran, tool } = refundTool();
  const model = mockModel([{ toolCalls: [{ name: 'refund', args: { cents: 9 } }] }, 'Done.', 'Bye.']);
  const agent = createAgent({
    provider: model,
    tools: tools.length === 0 ? [tool] : tools,
    store: memoryStore(),
  });
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

it.each(['application/json', 'text/event-stream'])(
  'stops what it executes for a session (%s), and says what that had spent',
  async (accept) => {
    const { tool: slow, begun } = endlessTool('refund');
    const { agent, ask } = given({}, [slow]);
    const sending = ask('POST', 'sessions/order-7/messages', { input: 'Refund.' }, { accept });
    await begun;
    expect(await (await ask('POST', 'sessions/other/stop')).json()).toEqual({ stopped: false });
    expect(await (await ask('POST', 'sessions/order-7/stop')).json()).toMatchObject({
      stopped: true,
      usage: { modelCalls: 1 },
    });
    expect(await (await sending).text()).toContain('"finishReason":"aborted"');
    expect(await (await ask('POST', 'sessions/order-7/stop')).json()).toEqual({ stopped: false });
    expect(await agent.pending()).toEqual([]);
  },
);

it.each([
  ['nobody it knows', true, 'ann'],
  ['a service', { id: 'desk' }, 'desk (for ann)'],
] as const)('writes down who decided when %s names somebody', async (_who, answer, by) => {
  const { agent, ask } = given({ authorize: () => answer });
  await ask('POST', 'sessions/order-7/messages', { input: 'Refund.' });
  const [request] = await agent.approvals.list();
  await ask('POST', `approvals/${request?.id}`, { approved: true, by: 'ann' });
  const again = await ask('POST', `approvals/${request?.id}`, { approved: true });
  expect(await again.json()).toMatchObject({
    error: { message: expect.stringContaining(`approved by ${by} at`) },
  });
});
