/** A run that rejects keeps what it recorded, says what failed and how often, and goes on from there. */
import { LLMProviderError } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { expect, it } from 'vitest';
import { lines, rejection } from './support/read.ts';
import { checkpointsWith, storeOf } from './support/stores.ts';
import { spyTool } from './support/tools.ts';
import { letPass } from './support/wait.ts';
import { onEveryStore } from './support/world.ts';

onEveryStore('failed runs', (world) => {
  const unavailable = new LLMProviderError('busy', { kind: 'api', status: 503, retryable: true });
  const noRetry = { maxRetries: 0 };

  it('counts failed attempts in a row, and forgets them with the first progress', async () => {
    const work = spyTool('work');
    const step = { toolCalls: [{ name: 'work' }] };
    const model = mockModel([step, unavailable, unavailable, step, unavailable, 'Done.']);
    const agent = world.agent({ provider: model, tools: [work.tool], retry: noRetry });
    const failure = async () => {
      const [run] = await agent.pending();
      return [run?.attempts, run?.lastError?.retryable, run?.lastError?.code];
    };
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    expect(await failure()).toEqual([1, true, 'LOUSHO_PROVIDER_ERROR']);
    await rejection(agent.resume('job-1'));
    expect(await failure()).toEqual([2, true, 'LOUSHO_PROVIDER_ERROR']);
    await rejection(agent.resume('job-1'));
    expect(await failure()).toEqual([1, true, 'LOUSHO_PROVIDER_ERROR']);
    await agent.resume('job-1');
    expect(await world.stored('job-1')).not.toHaveProperty('lastError');
    expect(await world.stored('job-1')).not.toHaveProperty('attempts');
  });

  it('drops the failure with the very save that records progress', async () => {
    const work = spyTool('work');
    const model = mockModel([
      { toolCalls: [{ name: 'work' }] },
      unavailable,
      { toolCalls: [{ name: 'work' }] },
      'Done.',
    ]);
    const agent = world.agent({ provider: model, tools: [work.tool], retry: noRetry });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    await agent.resume('job-1');
    const failures = (await world.saves('job-1')).map((save) => 'lastError' in save);
    // Model turn, result; failure; the resume began, model turn, result, end.
    expect(failures).toEqual([false, false, true, true, false, false, false]);
  });

  it('says whether a failed model call may be tried again', async () => {
    const refused = new LLMProviderError('too long', { kind: 'api', status: 400, retryable: false });
    const work = spyTool('work');
    const model = mockModel([{ toolCalls: [{ name: 'work' }] }, refused]);
    const agent = world.agent({ provider: model, tools: [work.tool] });
    await rejection(agent.send('go', { sessionId: 'job-1' }));
    expect((await agent.pending())[0]).toMatchObject({
      attempts: 1,
      lastError: { retryable: false, message: 'too long' },
    });
    expect(model.calls).toHaveLength(2);
  });

  it('keeps the record as it was when the store cannot be written, and rejects with its error', async () => {
    const a = spyTool('a');
    const broken = new Error('disk full');
    let saves = 0;
    const checkpoints = checkpointsWith(world.checkpoints, {
      async saveIfLeased(...args) {
        saves += 1;
        if (saves > 1) throw broken;
        return world.checkpoints.saveIfLeased(...args);
      },
    });
    const store = storeOf(checkpoints);
    const model = mockModel([{ toolCalls: [{ name: 'a' }] }, 'never asked']);
    const sent = rejection(
      world.agent({ store, provider: model, tools: [a.tool] }).send('go', { sessionId: 'job-1' }),
    );
    expect(await letPass(world.clock, sent)).toBe(broken);
    expect([a.runs.length, model.calls.length]).toEqual([1, 1]);
    expect(lines((await world.stored('job-1'))?.messages ?? [])).toEqual(['user go', 'assistant a#call_1']);
    // The store works again: the call without a result runs once more.
    const result = await world.agent({ provider: mockModel(['Done.']), tools: [a.tool] }).resume('job-1');
    expect([result?.text, a.runs.length]).toEqual(['Done.', 2]);
  });
});
