/** A target that has gone on since it was copied is copied into again: nothing that is over there comes back. */
import { defineTool, type FullAgentStore } from '@lousho/contract';
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { mockModel, type MockResponse } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { copyStore, exportStore, importStore, type CopyResult } from '../src/index.ts';
import { contentOf } from './support/filled-store.ts';

const calling = (name: string, args = {}): MockResponse => ({ toolCalls: [{ name, args }] });

/** By the number of the model's words so far: an answer, a call that waits, here or in a sub-agent, and answers. */
const script = {
  alone: ['Hello.', calling('charge'), 'Charged.', 'Bye.'],
  lead: [calling('task', { agent: 'cashier', prompt: 'Charge.' }), 'Charged.'],
} as const;

function agentOver(store: FullAgentStore, kind: keyof typeof script) {
  const charge = defineTool({
    name: 'charge',
    description: 'Charges the card.',
    input: { type: 'object' },
    needsApproval: true,
    execute: () => 'charged',
  });
  const model = (answers: readonly MockResponse[]) => mockModel(answers, { answerBy: 'step' });
  const cashier = {
    name: 'cashier',
    description: 'Charges.',
    provider: model([calling('charge'), 'Paid.']),
    tools: [charge],
  };
  return createAgent({ store, provider: model(script[kind]), tools: [charge], subagents: [cashier] });
}

async function fromText(from: FullAgentStore, to: FullAgentStore): Promise<CopyResult> {
  const text: string[] = [];
  for await (const line of exportStore(from)) text.push(line);
  return importStore(text, to);
}

describe.each([
  ['a copy', copyStore],
  ['an import', fromText],
] as const)('%s into a target that went on', (_how, copy) => {
  it('does not bring back the turn of a conversation that was decided there, nor its approval', async () => {
    const [from, to] = [memoryStore(), memoryStore()];
    const chat = agentOver(from, 'alone').session({ id: 'chat' });
    await chat.send('Hi.');
    const { approvalId = '' } = await chat.send('Charge.');
    expect((await copy(from, to)).left).toEqual([]);
    const agent = agentOver(to, 'alone');
    await agent.approvals.resolve({ id: approvalId, approved: true });
    await agent.session({ id: 'chat' }).send('Thanks.');
    const before = await contentOf(to);
    expect((await copy(from, to)).left).toEqual([
      { record: 'checkpoint', id: 'chat.turn-1', reason: 'differs' },
      { record: 'approval', id: approvalId, reason: 'differs' },
      { record: 'session', id: 'chat', reason: 'differs' },
    ]);
    expect(await contentOf(to)).toEqual(before);
    expect([await agent.approvals.list(), await agent.pending()]).toEqual([[], []]);
  });

  it('does not bring back the sub-agent of a lead that was decided there, nor its approval', async () => {
    const [from, to] = [memoryStore(), memoryStore()];
    const paused = await agentOver(from, 'lead').send('Go.', { sessionId: 'order-7' });
    const id = paused.approvalId ?? '';
    expect((await copy(from, to)).left).toEqual([]);
    await agentOver(to, 'lead').approvals.resolve({ id, approved: true });
    const before = await contentOf(to);
    expect((await copy(from, to)).left).toEqual([
      { record: 'checkpoint', id: 'order-7', reason: 'differs' },
      { record: 'checkpoint', id: expect.stringMatching(/^order-7\.sub-/), reason: 'differs' },
      { record: 'approval', id, reason: 'differs' },
    ]);
    expect(await contentOf(to)).toEqual(before);
  });

  it('does not put a turn into another conversation of the same id', async () => {
    const [from, to] = [memoryStore(), memoryStore()];
    for (const [store, words] of [
      [from, 'Hi.'],
      [to, 'Good day.'],
    ] as const)
      await agentOver(store, 'alone').session({ id: 'chat' }).send(words);
    await agentOver(from, 'alone').session({ id: 'chat' }).send('Charge.');
    const before = await contentOf(to);
    expect((await copy(from, to)).left).toMatchObject([
      { id: 'chat.turn-1', reason: 'differs' },
      { record: 'approval', reason: 'differs' },
      { id: 'chat', reason: 'differs' },
    ]);
    expect(await contentOf(to)).toEqual(before);
  });

  it('brings a turn that the conversation has come to since', async () => {
    const [from, to] = [memoryStore(), memoryStore()];
    const chat = agentOver(from, 'alone').session({ id: 'chat' });
    await chat.send('Hi.');
    expect((await copy(from, to)).left).toEqual([]);
    const { approvalId = '' } = await chat.send('Charge.');
    expect((await copy(from, to)).left).toEqual([]);
    const result = await agentOver(to, 'alone').approvals.resolve({ id: approvalId, approved: true });
    expect(result.text).toBe('Charged.');
  });
});
