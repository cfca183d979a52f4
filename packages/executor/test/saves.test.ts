/** When a run is saved, and what each save holds. */
import { PropagatingToolError, SDKError, type Checkpoint } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import {
  calling,
  deferred,
  givenStorage,
  givenWorld,
  need,
  noting,
  refusal,
  resultFor,
  resultIds,
  roles,
  until,
} from './support.ts';

const moments = (saves: readonly Checkpoint[]) =>
  saves.map(({ status, messages }) => `${status}: ${roles(messages)}`);

describe('the moments of a run', () => {
  it('are: the calls before they run, each result, the end', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'charge')],
      script: [calling('charge'), 'Charged.'],
    });
    const result = await world.send('Charge 10.');
    expect(result).toMatchObject({ finishReason: 'stop', text: 'Charged.', steps: 2 });
    expect(moments(storage.store.saves)).toEqual([
      'in-progress: user assistant',
      'in-progress: user assistant tool',
      'finished: user assistant tool assistant',
    ]);
  });

  it('show a running tool its own call in the store, without a result', async () => {
    const storage = givenStorage();
    const seen: (Checkpoint | undefined)[] = [];
    const probe = noting(storage, 'probe', async () => seen.push(await world.stored()));
    const world = givenWorld({ storage, tools: [probe], script: [calling('probe'), 'done'] });
    await world.send('go');
    expect(seen[0]).toMatchObject({ status: 'in-progress', stepIndex: 1 });
    expect(seen[0]?.messages.at(-1)).toMatchObject({
      role: 'assistant',
      content: [{ toolCallId: 'call_probe' }],
    });
  });

  it('are one when there is only an answer', async () => {
    const world = givenWorld({ script: ['hello'] });
    await world.send('hi');
    expect(moments(world.storage.store.saves)).toEqual(['finished: user assistant']);
  });

  it("hold the whole state: transcript, steps, usage, the caller's state, the agent", async () => {
    const world = givenWorld({ script: ['hello'], agent: { name: 'clerk', instructions: 'Be kind.' } });
    await world.send('hi', {
      businessState: { cart: [1] },
      metadata: { tenant: 't' },
      principal: { id: 'ann' },
    });
    expect(await world.stored()).toMatchObject({
      agentName: 'clerk',
      stepIndex: 1,
      usage: { inputTokens: 1, outputTokens: 1, modelCalls: 1 },
      businessState: { cart: [1] },
      metadata: { tenant: 't' },
      principal: { id: 'ann' },
      fingerprint: { model: 'mock' },
      savedAt: '2026-01-01T00:00:00.000Z',
    });
  });

  it('come with each result as it settles, in call order, those behind an open call beside the transcript', async () => {
    const storage = givenStorage();
    const slow = deferred();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', () => slow.promise), noting(storage, 'b')],
      script: [calling('a', 'b'), 'done'],
    });
    const sent = world.send('go');
    await until(() => storage.store.saves.length === 2);
    slow.resolve();
    await sent;
    const held = storage.store.saves.map(({ messages, settledResults }) => [
      resultIds(messages),
      settledResults.map(({ toolCallId }) => toolCallId),
    ]);
    expect(held).toEqual([
      [[], []],
      [[], ['call_b']],
      [['call_a', 'call_b'], []],
      [['call_a', 'call_b'], []],
    ]);
  });

  it('are one for results that settle together', async () => {
    const storage = givenStorage();
    const tools = ['a', 'b', 'c'].map((name) => noting(storage, name));
    const world = givenWorld({ storage, tools, script: [calling('a', 'b', 'c'), 'done'] });
    await world.send('go');
    expect(moments(storage.store.saves)).toEqual([
      'in-progress: user assistant',
      'in-progress: user assistant tool tool tool',
      'finished: user assistant tool tool tool assistant',
    ]);
  });

  it('carry calls that can never run with their results at once', async () => {
    const world = givenWorld({ script: [calling('nobody'), 'done'] });
    await world.send('go');
    expect(moments(world.storage.store.saves)).toEqual([
      'in-progress: user assistant tool',
      'finished: user assistant tool assistant',
    ]);
  });

  it('end with "finished" when the step budget is spent', async () => {
    const storage = givenStorage();
    const world = givenWorld({ storage, tools: [noting(storage, 'a')], script: [calling('a')], maxSteps: 1 });
    const result = await world.send('go');
    expect(result).toMatchObject({ finishReason: 'max-steps', steps: 1 });
    expect(await world.stored()).toMatchObject({ status: 'finished', finishReason: 'max-steps' });
  });

  it('are none without a session id', async () => {
    const world = givenWorld({ script: ['hello'] });
    const { sessionId: _sessionId, ...options } = world.options();
    await world.send('hi', { ...options, sessionId: undefined });
    expect(world.storage.store.calls).toEqual([]);
  });
});

describe('before the first model response', () => {
  it('nothing is saved: a failed first call leaves the store empty', async () => {
    const world = givenWorld({ script: [new Error('down')], retry: { maxRetries: 0 } });
    await refusal(world.send('hi'), 'LOUSHO_PROVIDER_ERROR');
    expect(await world.stored()).toBeUndefined();
    expect(world.storage.store.saves).toEqual([]);
  });

  it('nothing is saved: a finished run stays as it was, and the same words can be sent again', async () => {
    const world = givenWorld({ script: ['hello', new Error('down'), 'fine'], retry: { maxRetries: 0 } });
    await world.send('hi');
    const stored = JSON.stringify(await world.stored());
    await refusal(world.send('how are you?'), 'LOUSHO_PROVIDER_ERROR');
    expect(JSON.stringify(await world.stored())).toBe(stored);
    const result = await world.send('how are you?');
    expect(roles(result.messages)).toBe('user assistant user assistant');
  });

  it('but what came of a response is, also when a hook fails right behind it', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      script: [calling('a')],
      hooks: {
        afterModel: () => {
          throw new Error('audit is down');
        },
      },
    });
    await expect(world.send('go')).rejects.toThrow('audit is down');
    expect(await world.stored()).toMatchObject({
      status: 'in-progress',
      stepIndex: 1,
      attempts: 1,
      usage: { modelCalls: 1 },
    });
    const resumed = world.onNewProcess({ script: ['done'], hooks: [] });
    expect(await resumed.resume()).toMatchObject({ finishReason: 'stop', usage: { modelCalls: 2 } });
    expect(resumed.model.calls).toHaveLength(1);
  });
});

describe('a save that fails', () => {
  const broken = new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation: 'save' });

  /** Fails the given saves, counted from 1. */
  function failingSaves(
    world: ReturnType<typeof givenWorld>,
    fails: (count: number) => boolean,
    error = broken,
  ): void {
    let count = 0;
    world.storage.store.beforeCall = (call) => {
      if (call !== 'saveIfLeased' || !fails((count += 1))) return;
      throw error;
    };
  }

  function givenCharge() {
    const storage = givenStorage();
    return givenWorld({ storage, tools: [noting(storage, 'charge')], script: [calling('charge'), 'done'] });
  }

  it('of a result is tried again: the tool runs once and the run finishes', async () => {
    const world = givenCharge();
    failingSaves(world, (count) => count === 2 || count === 3);
    expect(await world.letTimePass(world.send('go'))).toMatchObject({ finishReason: 'stop' });
    expect(world.timesRun('charge')).toBe(1);
  });

  it("for ever rejects the run with the store's error, before any tool runs", async () => {
    const world = givenCharge();
    failingSaves(world, () => true);
    expect(await world.letTimePass(refusal(world.send('go'), 'LOUSHO_STORE_WRITE_FAILED'))).toBe(broken);
    expect(world.timesRun('charge')).toBe(0);
    expect(await world.stored()).toBeUndefined();
  });

  it('of a result for ever rejects the run, and no model is asked with an unsaved result', async () => {
    const world = givenCharge();
    failingSaves(world, (count) => count > 1);
    expect(await world.letTimePass(refusal(world.send('go'), 'LOUSHO_STORE_WRITE_FAILED'))).toBe(broken);
    expect(world.model.calls).toHaveLength(1);
    // The earlier save stands: the call is open, and a resume runs it.
    expect(roles((await world.stored())?.messages)).toBe('user assistant');
  });

  it('is what the caller hears, not the failure of noting it', async () => {
    const world = givenCharge();
    const noting1 = new SDKError('LOUSHO_STORE_WRITE_FAILED', { operation: 'later' });
    let count = 0;
    world.storage.store.beforeCall = (call) => {
      if (call !== 'saveIfLeased') return;
      count += 1;
      if (count > 1) throw count <= 5 ? broken : noting1;
    };
    expect(await world.letTimePass(refusal(world.send('go'), 'LOUSHO_STORE_WRITE_FAILED'))).toBe(broken);
  });

  it('for a reason that stays is not tried again', async () => {
    const world = givenCharge();
    const tooLarge = new SDKError('LOUSHO_CHECKPOINT_TOO_LARGE', { id: 'order-7', bytes: 9, maxBytes: 8 });
    let count = 0;
    world.storage.store.beforeCall = (call) => {
      if (call !== 'saveIfLeased') return;
      count += 1;
      if (count === 2) throw tooLarge;
    };
    expect(await refusal(world.send('go'), 'LOUSHO_CHECKPOINT_TOO_LARGE')).toBe(tooLarge);
    expect(await world.unfinished()).toMatchObject({ attempts: 1, lastError: { retryable: false } });
  });

  it('of the end leaves the run to be finished without another model call', async () => {
    const world = givenCharge();
    failingSaves(world, (count) => count > 2);
    await world.letTimePass(refusal(world.send('go'), 'LOUSHO_STORE_WRITE_FAILED'));
    world.storage.store.beforeCall = () => undefined;
    const resumed = world.onNewProcess({ script: ['done again'] });
    expect(await resumed.resume()).toMatchObject({ finishReason: 'stop' });
    expect(world.timesRun('charge')).toBe(1);
  });
});

describe('lastError and attempts', () => {
  const providerDown = Object.assign(new Error('no such model'), { status: 404 });

  function givenFailing() {
    const storage = givenStorage();
    return givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      script: [calling('a'), providerDown],
      retry: { maxRetries: 0 },
    });
  }

  it('say what failed, whether it may pass, and how often in a row', async () => {
    const world = givenFailing();
    await refusal(world.send('go'), 'LOUSHO_PROVIDER_ERROR');
    expect(await world.unfinished()).toMatchObject({
      attempts: 1,
      lastError: {
        name: 'LLMProviderError',
        message: 'no such model',
        code: 'LOUSHO_PROVIDER_ERROR',
        retryable: false,
        failedAt: '2026-01-01T00:00:00.000Z',
      },
    });
    for (const attempt of [2, 3, 4]) {
      await world
        .onNewProcess({ script: [providerDown] })
        .resume()
        .catch(() => undefined);
      expect((await world.unfinished()).attempts).toBe(attempt);
    }
    expect(world.timesRun('a')).toBe(1);
  });

  it('go with the first thing that is recorded; a later failure counts from 1', async () => {
    const world = givenFailing();
    await world.send('go').catch(() => undefined);
    const second = world.onNewProcess({ script: [calling('a'), providerDown] });
    await second.resume().catch(() => undefined);
    const { saves } = world.storage.store;
    const progress = saves.findLast(
      ({ status, stepIndex }) => status === 'in-progress' && stepIndex === 2 && true,
    );
    expect(progress).toBeDefined();
    expect(await second.unfinished()).toMatchObject({ attempts: 1, stepIndex: 2 });
    const afterResponse = need(saves.find(({ stepIndex }) => stepIndex === 2));
    expect(afterResponse).not.toHaveProperty('lastError');
    expect(afterResponse).not.toHaveProperty('attempts');
    expect(afterResponse).not.toHaveProperty('startsWithoutProgress');
  });

  it('are kept while a resume has got nowhere yet, and starts are counted beside them', async () => {
    const world = givenFailing();
    await world.send('go').catch(() => undefined);
    await world
      .onNewProcess({ script: [providerDown] })
      .resume()
      .catch(() => undefined);
    const began = need(world.storage.store.saves.at(-2));
    expect(began).toMatchObject({ attempts: 1, startsWithoutProgress: 1 });
    expect(await world.unfinished()).toMatchObject({ attempts: 2, startsWithoutProgress: 1 });
  });

  it('are not written by a crash: only the start of the next execution shows', async () => {
    const storage = givenStorage();
    const first = givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      script: [calling('a')],
      diesAt: { call: 'saveIfLeased#1', when: 'after' },
    });
    await first.untilDead(first.send('go'));
    expect(await first.unfinished()).not.toHaveProperty('lastError');
    expect(await first.unfinished()).not.toHaveProperty('attempts');
  });

  it('are written for a tool that rejects the run', async () => {
    const storage = givenStorage();
    const error = new PropagatingToolError('out of paper', { retryable: false });
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'print', () => {
          throw error;
        }),
      ],
      script: [calling('print')],
    });
    await expect(world.send('go')).rejects.toBe(error);
    expect(await world.unfinished()).toMatchObject({
      attempts: 1,
      lastError: { name: 'PropagatingToolError', message: 'out of paper', retryable: false },
    });
  });

  it('cut what is too long to list, and keep no stack', async () => {
    const world = givenFailing();
    const long = world.onNewProcess({ script: [calling('a'), new Error('x\ud800'.repeat(5_000))] });
    await long.send('go').catch(() => undefined);
    const { lastError } = await long.unfinished();
    expect(lastError?.message.length).toBeLessThanOrEqual(2_048);
    expect(lastError?.message.isWellFormed()).toBe(true);
    expect(lastError).not.toHaveProperty('stack');
  });
});

it('a result that JSON could not say is no reason to lose the run', async () => {
  const storage = givenStorage();
  const world = givenWorld({
    storage,
    tools: [noting(storage, 'big', () => ({ amount: 10n }))],
    script: [calling('big'), 'done'],
  });
  const result = await world.send('go');
  expect(resultFor(result.messages, 'big')).toMatchObject({ kind: 'execution', isError: true });
  expect(result.finishReason).toBe('stop');
});
