/** Callers re-send the history, retry a request, or repeat a question: only what is new joins the conversation. */
import type { Message } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { lines, rejection } from './support/read.ts';
import { failingOnceTool, spyTool } from './support/tools.ts';
import { onEveryStore, type World } from './support/world.ts';

const user = (content: string): Message => ({ role: 'user', content });

/** A finished conversation: hi, Hello. */
async function givenConversation(world: World, ...answers: readonly string[]) {
  const model = mockModel(['Hello.', ...answers]);
  const agent = world.agent({ provider: model, instructions: 'Help.' });
  const first = await agent.send('hi', { sessionId: 'chat-42' });
  return { model, agent, first };
}

onEveryStore('a finished run', (world) => {
  it('takes the stored history plus a new message as the new message', async () => {
    const { model, agent, first } = await givenConversation(world, 'Fine.');
    await agent.send([...first.messages, user('how are you?')], { sessionId: 'chat-42' });
    expect(lines(model.calls[1]?.messages ?? [])).toEqual([
      'system Help.',
      'user hi',
      'assistant Hello.',
      'user how are you?',
    ]);
  });

  it('recognises a copy of the history by its content: key order and the form of a text do not matter', async () => {
    const { model, agent } = await givenConversation(world, 'Fine.');
    const copy: readonly Message[] = [
      { content: [{ text: 'hi', type: 'text' }], role: 'user' },
      { content: [{ text: 'Hello.', type: 'text' }], role: 'assistant' },
    ];
    await agent.send([...copy, user('how are you?')], { sessionId: 'chat-42' });
    expect(lines(model.calls[1]?.messages ?? [])).toHaveLength(4);
  });

  it('takes a repeated question as a new turn', async () => {
    const { model, agent } = await givenConversation(world, 'Hello again.');
    const second = await agent.send('hi', { sessionId: 'chat-42' });
    expect(lines(second.messages).slice(1)).toEqual([
      'user hi',
      'assistant Hello.',
      'user hi',
      'assistant Hello again.',
    ]);
    expect(model.calls).toHaveLength(2);
  });

  it('answers exactly the stored history with the stored result, without a model call', async () => {
    const { model, agent, first } = await givenConversation(world);
    const again = await agent.send(first.messages, { sessionId: 'chat-42' });
    expect(again).toEqual(first);
    expect(model.calls).toHaveLength(1);
  });

  it('adds all of a copy that does not reach the end of the stored history', async () => {
    const { model, agent } = await givenConversation(world, 'Fine.', 'Really?');
    await agent.send('how are you?', { sessionId: 'chat-42' });
    const lagging = [
      user('hi'),
      { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] } as const,
      user('how are you?'),
    ];
    const result = await agent.send(lagging, { sessionId: 'chat-42' });
    expect(lines(result.messages).slice(5)).toEqual([
      'user hi',
      'assistant Hello.',
      'user how are you?',
      'assistant Really?',
    ]);
    expect(model.calls).toHaveLength(3);
  });
});

onEveryStore('an unfinished run', (world) => {
  async function givenInterrupted() {
    const work = failingOnceTool('work');
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }]);
    await rejection(world.agent({ provider: model, tools: [work.tool] }).send('go', { sessionId: 'job-1' }));
    const second = mockModel(['Done.']);
    return { agent: world.agent({ provider: second, tools: [work.tool] }), model: second };
  }

  it('takes the whole stored history plus a new message as the new message', async () => {
    const { agent, model } = await givenInterrupted();
    const stored = (await world.stored('job-1'))?.messages ?? [];
    await agent.send([...stored, user('and now?')], { sessionId: 'job-1' });
    expect(lines(model.calls[0]?.messages ?? [])).toEqual([
      'user go',
      'assistant work#call_1',
      'tool call_1 "work done"',
      'user and now?',
    ]);
  });

  it('takes something else as new input', async () => {
    const { agent, model } = await givenInterrupted();
    await agent.send('something else', { sessionId: 'job-1' });
    expect(lines(model.calls[0]?.messages ?? []).at(-1)).toBe('user something else');
  });

  it('takes the last accepted input, sent again, for a retry', async () => {
    const work = spyTool('work');
    const failing = failingOnceTool('failing');
    const tools = [work.tool, failing.tool];
    const interrupted = mockModel([{ toolCalls: [{ name: 'failing' }] }, new Error('down')]);
    const agent = world.agent({ provider: interrupted, tools, retry: { maxRetries: 0 } });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    await rejection(agent.send('and hurry', { sessionId: 'job-1' }));
    const model = mockModel(['Done.']);
    const result = await world.agent({ provider: model, tools }).send('and hurry', { sessionId: 'job-1' });
    expect(lines(result.messages).filter((line) => line.startsWith('user'))).toEqual([
      'user go',
      'user and hurry',
    ]);
  });
});

onEveryStore('an inputId', (world) => {
  it('makes a retry exact: the input is added once, and a finished answer comes back', async () => {
    const model = mockModel(['Paid.']);
    const agent = world.agent({ provider: model });
    const first = await agent.send('pay', { sessionId: 'order-7', inputId: 'delivery-1' });
    const again = await agent.send('pay', { sessionId: 'order-7', inputId: 'delivery-1' });
    expect(again).toEqual(first);
    expect(model.calls).toHaveLength(1);
  });

  it('adds an equal text under another id', async () => {
    const model = mockModel(['Paid.', 'Paid again.']);
    const agent = world.agent({ provider: model });
    await agent.send('pay', { sessionId: 'order-7', inputId: 'delivery-1' });
    const second = await agent.send('pay', { sessionId: 'order-7', inputId: 'delivery-2' });
    expect(second.text).toBe('Paid again.');
    expect(second.messages).toHaveLength(4);
  });

  it('adds an equal text under another id to an unfinished run, too', async () => {
    const work = failingOnceTool('work');
    const agent = world.agent({
      provider: mockModel([{ toolCalls: [{ name: 'work' }] }, 'Done.']),
      tools: [work.tool],
    });
    await rejection(agent.send('yes', { sessionId: 'order-7', inputId: 'one' }));
    const result = await agent.send('yes', { sessionId: 'order-7', inputId: 'two' });
    expect(lines(result.messages).filter((line) => line === 'user yes')).toHaveLength(2);
    const users = await world.stored('order-7');
    expect(users?.inputIds).toEqual(['one', 'two']);
  });

  it('is known in another process', async () => {
    const agent = world.agent({ provider: mockModel(['Paid.']) });
    await agent.send('pay', { sessionId: 'order-7', inputId: 'delivery-1' });
    const other = world.otherProcess().agent({ provider: mockModel([]) });
    expect((await other.send('pay', { sessionId: 'order-7', inputId: 'delivery-1' })).text).toBe('Paid.');
  });
});
