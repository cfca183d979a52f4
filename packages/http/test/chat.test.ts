/** Pages of the AI SDK talk to an agent over HTTP, and see what its transcript holds. */
import type { AgentConfig } from '@lousho/core';
import { mockModel } from '@lousho/testing';
import type { UIMessage } from 'ai';
import { describe, expect, it, vi } from 'vitest';
import { approvalIdsIn, openPage, partsOf, type Version } from './support/chat-page.ts';
import { serveChat, type Served } from './support/served.ts';
import { lookTool, refundTool, slowLookTool } from './support/tools.ts';

const gatedCall = { name: 'refund', args: { cents: 900 }, id: 'call_r' };

async function loaded({ api }: Served, id: string): Promise<UIMessage[]> {
  const response = await fetch(`${api}/${id}`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { messages: UIMessage[] }).messages;
}

/** What a person sees, without what only the client keeps about its own streaming. */
function seen(messages: readonly UIMessage[]): unknown {
  return messages.map((message) => ({ role: message.role, parts: partsOf(message) }));
}

describe.each<Version>(['v6', 'v7'])('a page of ai %s', (version) => {
  const page = (served: Served, id = 'chat', messages?: UIMessage[]) =>
    openPage(version, { api: served.api, id, ...(messages === undefined ? undefined : { messages }) });

  async function pausedPage(config: Partial<AgentConfig> = {}) {
    const { ran, tool } = refundTool();
    const model = mockModel([{ text: 'I will refund.', toolCalls: [gatedCall] }, 'Done.', 'Bye.']);
    const served = await serveChat({ provider: model, tools: [tool], ...config });
    const opened = page(served);
    await opened.chat.sendMessage({ text: 'Refund order 7.' });
    const [approvalId = ''] = approvalIdsIn(opened.chat.lastMessage);
    return { ...opened, served, model, ran, approvalId };
  }

  it('streams what the model says and what its tools give, and a reload shows the same', async () => {
    const call = { name: 'look', id: 'call_l' };
    const model = mockModel([
      { reasoning: 'Hm.', text: 'Let me look.', toolCalls: [call] },
      'It is sunny.',
      'Bye.',
    ]);
    const served = await serveChat({ provider: model, tools: [lookTool()] });
    const { chat } = page(served);
    await chat.sendMessage({ text: 'Weather?' });
    await chat.sendMessage({ text: 'Thanks.' });
    expect(seen(chat.messages)).toEqual([
      { role: 'user', parts: ['text:Weather?'] },
      {
        role: 'assistant',
        parts: ['reasoning:done', 'text:Let me look.', 'tool-look:output-available', 'text:It is sunny.'],
      },
      { role: 'user', parts: ['text:Thanks.'] },
      { role: 'assistant', parts: ['text:Bye.'] },
    ]);
    const again = await loaded(served, 'chat');
    expect(seen(again)).toEqual(seen(chat.messages));
    expect(again[1]?.id).toBe(chat.messages[1]?.id);
    expect(again[3]?.id).toBe(chat.messages[3]?.id);
  });

  it('approves a call, and the answer goes on in the same message', async () => {
    const { chat, settled, served, ran, approvalId } = await pausedPage();
    expect(partsOf(chat.lastMessage)).toEqual(['text:I will refund.', 'tool-refund:approval-requested']);
    expect(ran).not.toHaveBeenCalled();
    const before = chat.lastMessage?.id;
    await chat.addToolApprovalResponse({ id: approvalId, approved: true });
    await settled();
    expect(chat.lastMessage?.id).toBe(before);
    expect(partsOf(chat.lastMessage)).toEqual([
      ...['text:I will refund.', 'tool-refund:output-available'],
      'text:Done.',
    ]);
    expect(ran).toHaveBeenCalledTimes(1);
    expect(seen(await loaded(served, 'chat'))).toEqual(seen(chat.messages));
  });

  it('rejects a call, and the model reads why', async () => {
    const { chat, settled, served, model, ran, approvalId } = await pausedPage();
    await chat.addToolApprovalResponse({ id: approvalId, approved: false, reason: 'Too much.' });
    await settled();
    expect(partsOf(chat.lastMessage)).toContain('tool-refund:output-denied');
    expect(ran).not.toHaveBeenCalled();
    expect(JSON.stringify(model.calls[1]?.messages)).toContain('Too much.');
    expect(seen(await loaded(served, 'chat'))).toEqual(seen(chat.messages));
  });

  it('is told what waits when it sends while a call waits, and nothing is lost', async () => {
    const { chat, served, approvalId } = await pausedPage();
    const other = page(served, 'chat', structuredClone(chat.messages));
    await other.chat.sendMessage({ text: 'Hurry!' });
    expect(other.chat.status).toBe('error');
    expect(other.chat.error?.message).toContain('LOUSHO_SESSION_AWAITING_APPROVAL');
    expect(other.chat.error?.message).toContain(approvalId);
    expect(seen(await loaded(served, 'chat'))).toEqual(seen(chat.messages));
  });

  it('cannot decide a call twice', async () => {
    const { chat, settled, served, ran, approvalId } = await pausedPage();
    const other = page(served, 'chat', structuredClone(chat.messages));
    await chat.addToolApprovalResponse({ id: approvalId, approved: true });
    await settled();
    await other.chat.addToolApprovalResponse({ id: approvalId, approved: true });
    await other.settled();
    expect(other.chat.error?.message).toContain('LOUSHO_APPROVAL_DECIDED');
    expect(ran).toHaveBeenCalledTimes(1);
  });

  it('comes back to a paused conversation and goes on with it', async () => {
    const { served, ran } = await pausedPage();
    const later = page(served, 'chat', await loaded(served, 'chat'));
    const [id = ''] = approvalIdsIn(later.chat.lastMessage);
    await later.chat.addToolApprovalResponse({ id, approved: true });
    await later.settled();
    expect(partsOf(later.chat.lastMessage).at(-1)).toBe('text:Done.');
    expect(ran).toHaveBeenCalledTimes(1);
    expect(seen(await loaded(served, 'chat'))).toEqual(seen(later.chat.messages));
  });

  it('decides several calls of one step, and each runs at most once', async () => {
    const { ran, tool } = refundTool();
    const second = { ...gatedCall, id: 'call_s', args: { cents: 5 } };
    const model = mockModel([{ toolCalls: [gatedCall, second] }, 'Done.']);
    const served = await serveChat({ provider: model, tools: [tool] });
    const { chat, settled } = page(served);
    await chat.sendMessage({ text: 'Refund both.' });
    const ids = approvalIdsIn(chat.lastMessage);
    expect(ids).toHaveLength(2);
    await chat.addToolApprovalResponse({ id: ids[0] ?? '', approved: true });
    await chat.addToolApprovalResponse({ id: ids[1] ?? '', approved: false });
    await settled();
    expect(partsOf(chat.lastMessage)).toEqual([
      ...['tool-refund:output-available', 'tool-refund:output-denied'],
      'text:Done.',
    ]);
    expect(ran.mock.calls.map(([args]) => args)).toEqual([{ cents: 900 }]);
  });

  it('that is loaded again in the middle sees the whole answer, and so does one that stayed', async () => {
    const slow = slowLookTool();
    const call = { name: 'look', id: 'call_l' };
    const served = await serveChat({
      provider: mockModel([{ text: 'Let me look.', toolCalls: [call] }, 'It is sunny.']),
      tools: [slow.tool],
    });
    const { chat } = page(served);
    const sent = chat.sendMessage({ text: 'Weather?' });
    await slow.begun;
    const again = page(served, 'chat', await loaded(served, 'chat'));
    const resumed = again.chat.resumeStream();
    slow.goOn();
    await Promise.all([sent, resumed]);
    expect(seen(again.chat.messages)).toEqual(seen(chat.messages));
    expect(partsOf(chat.lastMessage)).toEqual([
      ...['text:Let me look.', 'tool-look:output-available'],
      'text:It is sunny.',
    ]);
  });

  it('finds nothing to come back to when nothing runs', async () => {
    const served = await serveChat({ provider: mockModel(['Hello.']) });
    const { chat } = page(served);
    await chat.resumeStream();
    expect(chat.status).toBe('ready');
    await chat.sendMessage({ text: 'Hi.' });
    await chat.resumeStream();
    expect(partsOf(chat.lastMessage)).toEqual(['text:Hello.']);
  });

  it('hears of a failure without its inner words, and the next message is answered', async () => {
    const served = await serveChat({
      provider: mockModel([new Error('key sk-123 is wrong'), 'Hello.']),
      retry: { maxRetries: 0 },
    });
    const { chat } = page(served);
    await chat.sendMessage({ text: 'Hi.' });
    expect(chat.status).toBe('error');
    expect(chat.error?.message).toBe('LOUSHO_PROVIDER_ERROR: The request failed; the server knows why.');
    expect(served.errors.map(String).join()).toContain('sk-123');
    await chat.sendMessage({ text: 'Again.' });
    expect(partsOf(chat.lastMessage)).toEqual(['text:Hello.']);
    // Nothing of the first answer was stored; what the person said is not lost.
    expect(seen(await loaded(served, 'chat'))).toEqual([
      { role: 'user', parts: ['text:Hi.'] },
      { role: 'user', parts: ['text:Again.'] },
      { role: 'assistant', parts: ['text:Hello.'] },
    ]);
  });

  it('that goes on after a failure in the middle gets the failed turn tried again first', async () => {
    const call = { name: 'look', id: 'call_l' };
    const looked = vi.fn(async () => 'sunny');
    const wrong = new Error('key sk-123 is wrong');
    const served = await serveChat({
      provider: mockModel([{ toolCalls: [call] }, wrong, 'It is sunny.', 'Bye.']),
      tools: [lookTool(looked)],
      retry: { maxRetries: 0 },
    });
    const { chat } = page(served);
    await chat.sendMessage({ text: 'Weather?' });
    expect(chat.status).toBe('error');
    await chat.sendMessage({ text: 'Thanks.' });
    expect(partsOf(chat.lastMessage)).toEqual(['text:Bye.']);
    expect(looked).toHaveBeenCalledTimes(1);
    expect(seen(await loaded(served, 'chat'))).toEqual([
      { role: 'user', parts: ['text:Weather?'] },
      { role: 'assistant', parts: ['tool-look:output-available', 'text:It is sunny.'] },
      { role: 'user', parts: ['text:Thanks.'] },
      { role: 'assistant', parts: ['text:Bye.'] },
    ]);
  });

  it('stops an answer that goes on', async () => {
    const slow = slowLookTool();
    const served = await serveChat({
      provider: mockModel([{ toolCalls: [{ name: 'look' }] }]),
      tools: [slow.tool],
    });
    const { chat } = page(served);
    const sent = chat.sendMessage({ text: 'Weather?' });
    await slow.begun;
    const stop = (): Promise<Response> => fetch(`${served.api}/chat/stop`, { method: 'POST' });
    expect(await (await stop()).json()).toEqual({ stopped: true });
    await sent;
    expect(chat.status).toBe('ready');
    expect(await (await stop()).json()).toEqual({ stopped: false });
  });

  it('that goes away stops nothing', async () => {
    const slow = slowLookTool();
    const works: Promise<void>[] = [];
    const served = await serveChat(
      { provider: mockModel([{ toolCalls: [{ name: 'look' }] }, 'It is sunny.']), tools: [slow.tool] },
      { waitUntil: (work) => works.push(work) },
    );
    const { chat } = page(served);
    const sent = chat.sendMessage({ text: 'Weather?' });
    await slow.begun;
    await chat.stop();
    await sent;
    slow.goOn();
    await Promise.all(works);
    expect(partsOf((await loaded(served, 'chat')).at(-1))).toEqual([
      'tool-look:output-available',
      'text:It is sunny.',
    ]);
  });
});
