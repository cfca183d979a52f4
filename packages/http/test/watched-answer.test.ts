/** Pages that come back to an answer which another process is making, or a recovery: they see what is stored of it, and its end. */
import { PropagatingToolError, type AgentConfig, type AgentStore } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel, type ManualClock } from '@lousho/testing';
import type { UIMessage } from 'ai';
import { expect, it, vi } from 'vitest';
import { openPage, partsOf, type Version } from './support/chat-page.ts';
import { serveChat } from './support/served.ts';
import { lookTool, refundTool, slowLookTool } from './support/tools.ts';

const whole = ['text:Let me look.', 'tool-look:output-available', 'text:It is sunny.'];

function config(store: AgentStore, tools: NonNullable<AgentConfig['tools']>, last = 'It is sunny.') {
  const looks = { text: 'Let me look.', toolCalls: [{ name: 'look', id: 'call_l' }] };
  return { store, tools, provider: mockModel([looks, last], { answerBy: 'step' }) };
}

/** Two processes on one store; the first one is in the middle of an answer. */
async function givenAnswerElsewhere() {
  const store = memoryStore();
  const slow = slowLookTool();
  const first = await serveChat(config(store, [slow.tool]));
  const clock = manualClock();
  const second = await serveChat(config(store, [lookTool()]), { clock });
  const page = openPage('v6', { api: first.api, id: 'chat' });
  const sent = page.chat.sendMessage({ text: 'Weather?' });
  await slow.begun;
  return { store, first, second, clock, page, sent, goOn: slow.goOn };
}

async function load(api: string): Promise<UIMessage[]> {
  return ((await (await fetch(`${api}/chat`)).json()) as { messages: UIMessage[] }).messages;
}

/** A reload at this server, which looks each second what there is. */
async function comeBack(api: string, version: Version = 'v6') {
  const page = openPage(version, { api, id: 'chat', messages: await load(api) });
  return { page, told: page.chat.resumeStream() };
}

/** Lets seconds pass until it is all told. */
async function heard(
  { page, told }: Awaited<ReturnType<typeof comeBack>>,
  clock: ManualClock,
): Promise<void> {
  let isTold = false;
  void told.then(() => (isTold = true));
  await vi.waitFor(async () => {
    await clock.advance(1_000);
    expect(isTold).toBe(true);
  });
  expect(page.chat.error).toBe(undefined);
}

it.each<Version>(['v6', 'v7'])(
  'sees the whole of an answer that another process makes (%s)',
  async (version) => {
    const { second, clock, page, sent, goOn } = await givenAnswerElsewhere();
    const back = await comeBack(second.api, version);
    await vi.waitFor(() => expect(back.page.chat.status).toBe('streaming'));
    expect(partsOf(back.page.chat.lastMessage)).toEqual([whole[0], 'tool-look:input-available']);
    goOn();
    await sent;
    await heard(back, clock);
    expect(partsOf(back.page.chat.lastMessage)).toEqual(whole);
    expect(back.page.chat.lastMessage?.id).toBe(page.chat.lastMessage?.id);
    expect(second.errors).toEqual([]);
  },
);

it('sees the end of it as well when that comes before the page asks for the rest', async () => {
  const { second, clock, sent, goOn } = await givenAnswerElsewhere();
  const messages = await load(second.api);
  goOn();
  await sent;
  const page = openPage('v6', { api: second.api, id: 'chat', messages });
  await heard({ page, told: page.chat.resumeStream() }, clock);
  expect(partsOf(page.chat.lastMessage)).toEqual(whole);
  // It was told.
  expect((await fetch(`${second.api}/chat/stream`)).status).toBe(204);
});

it('goes on with it once the other process has gone', async () => {
  const { first, second, clock, sent } = await givenAnswerElsewhere();
  const back = await comeBack(second.api);
  await vi.waitFor(() => expect(back.page.chat.status).toBe('streaming'));
  await first.agent.shutdown({ timeoutMs: 0 });
  await sent;
  await heard(back, clock);
  expect(partsOf(back.page.chat.lastMessage)).toEqual(whole);
});

it('sees what a recovery of this process makes of it', async () => {
  const { store, first, sent } = await givenAnswerElsewhere();
  await first.agent.shutdown({ timeoutMs: 0 });
  await sent;
  const slow = slowLookTool();
  const clock = manualClock();
  const third = await serveChat(config(store, [slow.tool]), { clock });
  const recovery = third.agent.recover();
  await slow.begun;
  const back = await comeBack(third.api);
  slow.goOn();
  await heard(back, clock);
  await recovery.stop();
  expect(partsOf(back.page.chat.lastMessage)).toEqual(whole);
});

it('can decide what the other process has come to ask', async () => {
  const store = memoryStore();
  const slow = slowLookTool();
  const { tool, ran } = refundTool();
  const provider = mockModel(
    [{ toolCalls: [{ name: 'look' }] }, { toolCalls: [{ name: 'refund', args: { cents: 9 } }] }, 'Done.'],
    { answerBy: 'step' },
  );
  const first = await serveChat({ store, provider, tools: [slow.tool, tool] });
  const clock = manualClock();
  const second = await serveChat({ store, provider, tools: [lookTool(), tool] }, { clock });
  const sent = openPage('v6', { api: first.api, id: 'chat' }).chat.sendMessage({ text: 'Refund.' });
  await slow.begun;
  const back = await comeBack(second.api);
  slow.goOn();
  await sent;
  await heard(back, clock);
  const part = back.page.chat.lastMessage?.parts.at(-1);
  expect(part).toMatchObject({ type: 'tool-refund', state: 'approval-requested' });
  const { id } = (part as unknown as { approval: { id: string } }).approval;
  await back.page.chat.addToolApprovalResponse({ id, approved: true });
  await back.page.settled();
  expect(partsOf(back.page.chat.lastMessage).slice(-2)).toEqual([
    'tool-refund:output-available',
    'text:Done.',
  ]);
  expect(ran).toHaveBeenCalledTimes(1);
});

it('starts nothing that recovery has given up on, however often it is loaded', async () => {
  const { store, first, sent } = await givenAnswerElsewhere();
  await first.agent.shutdown({ timeoutMs: 0 });
  await sent;
  const clock = manualClock(Date.now());
  const looked = vi.fn(async () => Promise.reject(new PropagatingToolError('broken')));
  const third = await serveChat({ ...config(store, [lookTool(looked)]), ports: { clock } });
  const recovery = third.agent.recover({ maxAttempts: 1, onError: () => undefined });
  await vi.waitFor(async () => {
    await clock.advance(60_000);
    expect(await third.agent.pending()).toMatchObject([{ parked: true }]);
  });
  await recovery.stop();
  looked.mockClear();
  const { page, told } = await comeBack(third.api);
  await told;
  expect(partsOf(page.chat.lastMessage)).toEqual([whole[0], 'tool-look:input-available']);
  expect(looked).not.toHaveBeenCalled();
  expect(await third.agent.pending()).toMatchObject([{ parked: true }]);
});

it('hears that the store failed in the middle, and so does the operator', async () => {
  const { store, clock, sent, goOn } = await givenAnswerElsewhere();
  let isDown = false;
  const failing: AgentStore = {
    ...store,
    checkpoints: new Proxy(store.checkpoints, {
      get: (target, name, receiver) =>
        isDown && name === 'load'
          ? async () => Promise.reject(new Error('no disk'))
          : (Reflect.get(target, name, receiver) as unknown),
    }),
  };
  const third = await serveChat(config(failing, [lookTool()]), { clock });
  const back = await comeBack(third.api);
  await vi.waitFor(() => expect(back.page.chat.status).toBe('streaming'));
  isDown = true;
  await vi.waitFor(async () => {
    await clock.advance(1_000);
    expect(back.page.chat.status).toBe('error');
  });
  expect(back.page.chat.error?.message).not.toContain('no disk');
  expect(third.errors.map(String).join()).toContain('no disk');
  goOn();
  await sent;
});
