/** Forks by the executor alone; what a fork is to an agent is tested in `@lousho/core`. */
import type { CheckpointStore } from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel, testPorts } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { forkedCheckpoint } from '../src/fork-patch.ts';
import { AgentExecutor } from '../src/index.ts';
import { transcriptProblem } from '../src/valid-transcript.ts';
import {
  approvalOf,
  assistant,
  call,
  finished,
  inProgress,
  oneCall,
  result,
  system,
  tool,
  user,
  waiting,
  yes,
} from './checkpoints.ts';
import { resultIds, roles } from './support.ts';

const facts = { runId: 'fork', forkedFrom: { sessionId: 'source', step: 1 } };
const asked = [user('go'), assistant('', call('a'), call('b'), call('c'))];

describe('the state that a fork begins with', () => {
  it('is the source without its failures, decisions, marks and end', () => {
    const source = waiting({
      messages: asked,
      approvals: [approvalOf('a', { decision: yes }), approvalOf('b')],
      startedToolCallIds: ['a'],
    });
    const fork = forkedCheckpoint(source, facts, {});
    expect(fork).toMatchObject({ ...facts, status: 'in-progress', approvals: [], startedToolCallIds: [] });
    for (const field of ['approvalId', 'approvalIds', 'lastError', 'attempts'])
      expect(fork).not.toHaveProperty(field);
    const over = forkedCheckpoint(finished({ messages: [user('go'), assistant('done')] }), facts, {});
    expect(over).not.toHaveProperty('finishReason');
    expect(Object.isFrozen(over)).toBe(true);
  });

  it('counts what unfinished sub-agents spent as spent', () => {
    const usage = { ...oneCall, modelCalls: 2 };
    const source = inProgress({ messages: asked, delegatedInFlight: [{ checkpointId: 'child', usage }] });
    const fork = forkedCheckpoint(source, facts, {});
    expect(fork.delegatedInFlight).toEqual([]);
    expect(fork.usage.modelCalls).toBe(source.usage.modelCalls + 2);
  });

  it('has a given result in the place of its call, and those that settled early behind it', () => {
    const source = inProgress({ messages: asked, settledResults: [result('b')] });
    const fork = forkedCheckpoint(source, facts, { toolResult: { toolCallId: 'a', result: 'by hand' } });
    expect(resultIds(fork.messages)).toEqual(['a', 'b']);
    expect(fork.settledResults).toEqual([]);
  });

  it('replaces a result that settled early where it waits', () => {
    const source = inProgress({ messages: asked, settledResults: [result('b'), result('c')] });
    const fork = forkedCheckpoint(source, facts, { toolResult: { toolCallId: 'c', result: 'by hand' } });
    expect(fork.settledResults.map(({ toolCallId, result: value }) => [toolCallId, value])).toEqual([
      ['b', result('b').result],
      ['c', 'by hand'],
    ]);
  });

  it('shares the very list of messages with its source, so that a store need not store them again', () => {
    const source = inProgress({ messages: [...asked, tool('a'), tool('b'), tool('c')] });
    const same = forkedCheckpoint(source, facts, { appendInput: 'more', messages: (all) => all });
    expect(same.messages).toBe(source.messages);
    expect(roles(same.heldInput)).toBe('user');
  });

  it('knows where its input is when the messages before it were cut', () => {
    const messages = [user('old'), assistant('fine'), user('go'), assistant('', call('a')), tool('a')];
    const source = inProgress({ messages, runInput: { start: 2, count: 1 } });
    const cut = forkedCheckpoint(source, facts, { messages: (all) => all.slice(2) });
    expect(cut.runInput).toEqual({ start: 0, count: 1 });
    const rewritten = forkedCheckpoint(source, facts, { messages: () => [system('s'), user('other')] });
    expect(rewritten.runInput).toEqual({ start: 1, count: 1 });
  });
});

describe('a transcript', () => {
  it.each([
    ['without messages', [], /no message of a user/],
    ['of system messages alone', [system('a')], /no message of a user/],
    ['that begins with the model', [assistant('hi')], /before any user/],
    ['with a late system message', [user('a'), system('b')], /system message/],
    ['with an open call in the middle', [...asked, tool('a'), user('b')], /"b" .* has no result/],
    ['with results in another order', [...asked, tool('b')], /no call before it waits/],
    ['with a result behind the answer', [user('a'), assistant('b'), tool('a')], /no call before it waits/],
    ['with one id twice', [user('a'), assistant('', call('a'), call('a'))], /two calls with one id/],
  ])('%s is none', (_what, messages, words) => {
    expect(transcriptProblem(messages)).toMatch(words);
  });

  it.each([
    ['that ends in open calls', [...asked, tool('a')]],
    ['with everything', [system('s'), ...asked, tool('a'), tool('b'), tool('c'), assistant('x'), user('y')]],
  ])('%s is fine', (_what, messages) => {
    expect(transcriptProblem(messages)).toBeUndefined();
  });
});

describe('AgentExecutor.fork', () => {
  it('is continued by an empty input on its id', async () => {
    const ports = testPorts(manualClock());
    const { checkpoints: checkpointStore } = memoryStore({ ports });
    const provider = mockModel(['One.', 'Two.']);
    const run = { agent: {}, provider, checkpointStore, ports };
    await AgentExecutor.execute({ ...run, input: 'go', sessionId: 'trip' });
    const patch = { appendInput: 'again' };
    const fork = await AgentExecutor.fork({ sessionId: 'trip', fromStep: 1, checkpointStore, patch, ports });
    expect(fork).toMatchObject({ sessionId: 'trip.fork-1', step: 1 });
    const { text } = await AgentExecutor.execute({ ...run, input: [], sessionId: fork.sessionId });
    expect(text).toBe('Two.');
  });

  it('takes the next number on a store without leases, too', async () => {
    const whole = memoryStore().checkpoints;
    const checkpointStore: CheckpointStore = {
      save: (id, checkpoint) => whole.save(id, checkpoint),
      load: (id) => whole.load(id),
      delete: (id) => whole.delete(id),
      history: (id, options) => whole.history(id, options),
    };
    await AgentExecutor.execute({
      agent: {},
      provider: mockModel(['One.']),
      checkpointStore,
      input: 'go',
      sessionId: 'trip',
    });
    const forks = await Promise.all(
      [1, 2, 3].map(() => AgentExecutor.fork({ sessionId: 'trip', fromStep: 1, checkpointStore })),
    );
    expect(new Set(forks.map(({ sessionId }) => sessionId)).size).toBe(3);
  });
});
