/** A person stops a run, at every point of it. */
import { PropagatingToolError, type ExecutionResult, type ToolContext } from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
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
  results,
  roles,
  until,
  type Setup,
  type World,
} from './support.ts';

const mayHave = 'may or may not have taken effect';
const didNot = 'did not run';
const errorOf = (result: ExecutionResult, name: string): string =>
  (resultFor(result.messages, name).result as { error: string }).error;

/** Ends as soon as the run is aborted, with an error as most tools do. */
function untilAborted(_args: unknown, { signal }: ToolContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true });
  });
}

describe('an abort', () => {
  it('before anything began changes nothing: no model call, no save, no error', async () => {
    const world = givenWorld({ script: ['hello'], agent: { instructions: 'Be kind.' } });
    const result = await world.send('hi', { signal: AbortSignal.abort('user left') });
    expect(result).toMatchObject({
      finishReason: 'aborted',
      abortReason: { name: 'AbortError', message: 'user left' },
      steps: 0,
      text: '',
    });
    expect(roles(result.messages)).toBe('system user');
    expect(world.model.calls).toEqual([]);
    expect(world.storage.store.saves).toEqual([]);
    expect(world.eventTypes()).toEqual(['run.start', 'run.done']);
  });

  it('before anything began leaves an unfinished run as it was', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      script: [calling('a'), new Error('down')],
      tools: [noting(storage, 'a')],
      retry: { maxRetries: 0 },
    });
    await world.send('go').catch(() => undefined);
    const stored = JSON.stringify(await world.stored());
    const result = await world.send('and', { signal: AbortSignal.abort() });
    expect(result.finishReason).toBe('aborted');
    expect(JSON.stringify(await world.stored())).toBe(stored);
  });

  it('during the first model call saves the input, and counts the call that was made', async () => {
    const world = givenWorld({ script: [{ text: 'late', delayMs: 60_000 }] });
    const stopping = new AbortController();
    const sent = world.send('hi', { signal: stopping.signal });
    await until(() => world.model.calls.length === 1);
    stopping.abort();
    const result = await sent;
    expect(result).toMatchObject({ finishReason: 'aborted', steps: 0, text: '' });
    expect(result.usage).toMatchObject({ modelCalls: 1, estimated: true });
    expect(await world.stored()).toMatchObject({
      status: 'in-progress',
      finishReason: 'aborted',
      stepIndex: 0,
    });
    expect(await world.stored()).not.toHaveProperty('lastError');
    expect(roles(result.messages)).toBe('user');
  });

  it('during a model call that ignores it ends the run at once, and its words never show', async () => {
    const world = givenWorld({ script: [{ text: 'too late', delayMs: 2_000, ignoreSignal: true }] });
    const run = world.stream('hi', { signal: undefined });
    await until(() => world.model.calls.length === 1);
    run.abort();
    const result = await run.result;
    await world.clock.advance(10_000);
    expect(result).toMatchObject({ finishReason: 'aborted', text: '' });
    expect(world.eventTypes()).not.toContain('text.delta');
    expect(world.events.at(-1)).toMatchObject({ type: 'run.done', finishReason: 'aborted' });
  });

  it('that a provider reports as an error of its own is no failure', async () => {
    const stopping = new AbortController();
    const world = givenWorld({
      script: [
        () => {
          stopping.abort();
          throw new Error('Request aborted');
        },
      ],
    });
    const result = await world.send('hi', { signal: stopping.signal });
    expect(result.finishReason).toBe('aborted');
    expect(world.model.calls).toHaveLength(1);
    expect(world.eventTypes()).not.toContain('error');
    expect(world.eventTypes()).not.toContain('provider.retry');
  });

  it('in a hook before the model call keeps the model from being asked', async () => {
    const stopping = new AbortController();
    const world = givenWorld({ script: ['hello'], hooks: { beforeModel: () => stopping.abort() } });
    const result = await world.send('hi', { signal: stopping.signal });
    expect(result).toMatchObject({ finishReason: 'aborted', usage: { modelCalls: 0 } });
    expect(world.model.calls).toEqual([]);
  });

  it('while the run waits to try the model again ends it at once', async () => {
    const world = givenWorld({ script: [new Error('busy'), 'never'] });
    const run = world.stream('hi', { onEvent: ({ type }) => type === 'provider.retry' && run.abort() });
    expect((await run.result).finishReason).toBe('aborted');
    expect(world.model.calls).toHaveLength(1);
  });

  it('while calls run records each: what it returned, what it was cut in, what never began', async () => {
    const storage = givenStorage();
    const finishing = deferred<string>();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'ends', () => finishing.promise),
        noting(storage, 'stops', untilAborted),
        noting(storage, 'never'),
      ],
      toolConcurrency: 2,
      script: [calling('ends', 'stops', 'never')],
    });
    const run = world.stream('go');
    await until(() => storage.effects.length === 2);
    run.abort();
    finishing.resolve('in time');
    const result = await run.result;
    expect(results(result.messages).map(({ kind }) => kind)).toEqual([undefined, 'cancelled', 'cancelled']);
    expect(resultFor(result.messages, 'ends').result).toBe('in time');
    expect(errorOf(result, 'stops')).toContain(mayHave);
    expect(errorOf(result, 'never')).toContain(didNot);
    expect(storage.effects).toEqual(['ends', 'stops']);
    expect(await world.unfinished()).toMatchObject({ finishReason: 'aborted' });
    expect(transcriptProblems(result.messages)).toEqual([]);
  });

  it('inside the first of two calls, one at a time, keeps the second from starting', async () => {
    const storage = givenStorage();
    const world: World = givenWorld({
      storage,
      tools: [noting(storage, 'a', () => run.abort('enough')), noting(storage, 'b')],
      toolConcurrency: 1,
      script: [calling('a', 'b')],
    });
    const run = world.stream('go');
    const result = await run.result;
    expect(storage.effects).toEqual(['a']);
    expect(resultFor(result.messages, 'a').kind).toBeUndefined();
    expect(errorOf(result, 'b')).toContain(didNot);
  });

  it('of a tool that never ends gives up on it after a second, and frees the run', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'hangs', () => new Promise(() => undefined))],
      script: [calling('hangs')],
    });
    const run = world.stream('go');
    await until(() => storage.effects.length === 1);
    run.abort();
    await world.clock.advance(999);
    expect(world.eventTypes()).not.toContain('run.done');
    await world.clock.advance(1);
    const result = await run.result;
    expect(errorOf(result, 'hangs')).toContain(mayHave);
    expect(await world.checkpoints.acquireLease?.('order-7', 'somebody', 1_000)).toMatchObject({});
  });

  it('of a tool that ignores it drops what it returns later', async () => {
    const storage = givenStorage();
    const late = deferred<string>();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', () => late.promise)],
      script: [calling('a')],
    });
    const run = world.stream('go');
    await until(() => storage.effects.length === 1);
    run.abort();
    await world.letTimePass(run.result);
    late.resolve('too late');
    await world.clock.advance(1_000);
    expect(JSON.stringify(await world.stored())).not.toContain('too late');
  });

  it('between two steps starts no further model call', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      script: [calling('a'), 'never'],
    });
    const run = world.stream('go', { onEvent: ({ type }) => type === 'tool.done' && run.abort() });
    const result = await run.result;
    expect(result).toMatchObject({ finishReason: 'aborted', steps: 1 });
    expect(world.model.calls).toHaveLength(1);
    expect(resultFor(result.messages, 'a').kind).toBeUndefined();
  });

  it('during the save of the last answer comes too late: the run is finished', async () => {
    const world = givenWorld({ script: ['hello'] });
    const run = world.stream('hi', { onEvent: ({ type }) => type === 'checkpoint.saved' && run.abort() });
    expect(await run.result).toMatchObject({ finishReason: 'stop', text: 'hello' });
    expect(await world.stored()).toMatchObject({ status: 'finished' });
    expect(world.storage.store.saves).toHaveLength(1);
  });

  it('during the save of a pause comes too late: the run waits', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'pay', undefined, { needsApproval: true })],
      script: [calling('pay')],
    });
    const run = world.stream('go', { onEvent: ({ type }) => type === 'approval.requested' && run.abort() });
    expect((await run.result).finishReason).toBe('awaiting-approval');
    expect(await world.stored()).toMatchObject({ status: 'awaiting-approval' });
    const steps = world.eventTypes().filter((type) => type.startsWith('step.'));
    expect(steps).toEqual(['step.start', 'step.done']);
  });

  it('together with a tool that rejects the run is an abort', async () => {
    const storage = givenStorage();
    const world: World = givenWorld({
      storage,
      tools: [
        noting(storage, 'a', () => {
          run.abort();
          throw new PropagatingToolError('no paper');
        }),
      ],
      script: [calling('a')],
    });
    const run = world.stream('go');
    const result = await run.result;
    expect(result.finishReason).toBe('aborted');
    expect(await world.unfinished()).not.toHaveProperty('lastError');
  });

  it('behind a tool that rejects the run does not say that the tool did not run', async () => {
    const storage = givenStorage();
    const slow = deferred<string>();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'a', () => {
          throw new PropagatingToolError('no paper');
        }),
        noting(storage, 'b', () => slow.promise),
      ],
      script: [calling('a', 'b')],
    });
    const run = world.stream('go');
    await until(() => storage.effects.length === 2);
    run.abort();
    slow.resolve('ok');
    const result = await run.result;
    expect(result.finishReason).toBe('aborted');
    expect(errorOf(result, 'a')).toContain(mayHave);
  });

  it.each<readonly [string, unknown, object]>([
    [
      'an Error',
      new DOMException('It took too long.', 'TimeoutError'),
      { name: 'TimeoutError', message: 'It took too long.' },
    ],
    ['a text', 'user left', { name: 'AbortError', message: 'user left' }],
    ['anything', { odd: true }, { name: 'AbortError', message: 'The run was aborted.' }],
  ])('says why: %s', async (_what, reason, abortReason) => {
    const world = givenWorld({ script: [] });
    expect(await world.send('hi', { signal: AbortSignal.abort(reason) })).toMatchObject({ abortReason });
  });

  it('is not in the way of a real failure', async () => {
    const world = givenWorld({ script: [new Error('down')], retry: { maxRetries: 0 } });
    await refusal(world.send('hi', { signal: new AbortController().signal }), 'LOUSHO_PROVIDER_ERROR');
  });

  it('of a run that was stopped stays one when a hook fails behind it', async () => {
    const world = givenWorld({
      script: [{ text: 'late', delayMs: 60_000 }],
      hooks: {
        onFinish: () => {
          throw new Error('audit is down');
        },
      },
    });
    const run = world.stream('hi');
    await until(() => world.model.calls.length === 1);
    run.abort();
    await expect(run.result).rejects.toThrow('audit is down');
    expect(await world.unfinished()).toMatchObject({ finishReason: 'aborted' });
  });
});

describe('after an abort', () => {
  /** Aborted behind the result of its only call. */
  async function givenAborted(more: Partial<Setup> = {}): Promise<World> {
    const storage = givenStorage();
    const world = givenWorld({ storage, tools: [noting(storage, 'a')], script: [calling('a')], ...more });
    const run = world.stream('go', { onEvent: ({ type }) => type === 'tool.done' && run.abort() });
    await run.result;
    return world;
  }

  it('new words go on with the run, behind its results', async () => {
    const world = (await givenAborted()).onNewProcess({ script: ['done'] });
    const result = await world.send('do X instead');
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
    expect(result).toMatchObject({ finishReason: 'stop', steps: 2 });
    expect(world.timesRun('a')).toBe(1);
  });

  it('the same words again are a retry', async () => {
    const world = (await givenAborted()).onNewProcess({ script: ['done'] });
    const result = await world.send('go');
    expect(roles(result.messages)).toBe('user assistant tool assistant');
    expect(await world.stored()).toMatchObject({ status: 'finished' });
  });

  it('a resume goes on, and the mark of the abort is gone from its first save on', async () => {
    const world = (await givenAborted()).onNewProcess({ script: ['done'] });
    const before = world.storage.store.saves.length;
    await world.resume();
    expect(world.storage.store.saves[before]).not.toHaveProperty('finishReason');
  });

  it('a call that was cancelled never runs later', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', untilAborted)],
      script: [calling('a')],
    });
    const run = world.stream('go');
    await until(() => storage.effects.length === 1);
    run.abort();
    await run.result;
    const next = world.onNewProcess({ script: ['fine'] });
    const result = await next.send('do X instead');
    expect(roles(next.model.calls[0]?.messages)).toBe('user assistant tool user');
    expect(result.finishReason).toBe('stop');
    expect(storage.effects).toEqual(['a']);
  });

  it('of a resume, a call that a dead process may have begun is not said to have not run', async () => {
    const storage = givenStorage();
    const first = givenWorld({
      storage,
      tools: [noting(storage, 'a'), noting(storage, 'b')],
      toolConcurrency: 1,
      script: [calling('a', 'b')],
      diesAt: { call: 'saveIfLeased#2', when: 'before' },
    });
    await first.untilDead(first.send('go'));
    const second = await first.afterCrash({ hooks: { beforeTool: () => run.abort() } });
    const run = second.stream([]);
    const result = await run.result;
    expect(result.finishReason).toBe('aborted');
    expect(errorOf(result, 'a')).not.toContain(didNot);
    expect(need(await second.stored()).status).toBe('in-progress');
  });
});

describe('the signal that a tool sees', () => {
  const sees =
    (signals: AbortSignal[]) =>
    (_args: unknown, { signal }: ToolContext) =>
      void signals.push(signal);

  it('aborts with the run: on a first execution, on a resume, on a decision', async () => {
    const storage = givenStorage();
    const signals: AbortSignal[] = [];
    const hangs = noting(storage, 'hangs', (args, ctx) => {
      sees(signals)(args, ctx);
      return untilAborted(args, ctx);
    });
    const gated = { ...hangs, name: 'gated', needsApproval: true };
    const world = givenWorld({ storage, tools: [hangs, gated], script: [calling('hangs')] });
    const first = world.stream('go');
    await until(() => signals.length === 1);
    first.abort();
    await first.result;

    const crashing = world.onNewProcess({
      script: [calling('hangs')],
      diesAt: { call: 'saveIfLeased#2', when: 'after' },
    });
    await crashing.untilDead(crashing.send('again'));
    const resumed = await crashing.afterCrash({ script: [] });
    const second = resumed.stream([]);
    await until(() => signals.length === 2);
    second.abort();
    await second.result;

    const pausing = resumed.onNewProcess({ script: [calling('gated')] });
    const paused = await pausing.send('pay');
    const third = pausing.streamDecide({ id: need(paused.approvalId), approved: true });
    await until(() => signals.length === 3);
    third.abort();
    expect((await third.result).finishReason).toBe('aborted');
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
  });
});

describe('a call that waits for its turn in this process', () => {
  it('leaves without effect when it is aborted, and does not wait for the run before it', async () => {
    const world = givenWorld({ script: [{ text: 'first', delayMs: 60_000 }, 'never'] });
    const first = world.send('one');
    await until(() => world.model.calls.length === 1);
    const stopping = new AbortController();
    const second = world.send('two', { signal: stopping.signal });
    stopping.abort();
    expect((await second).finishReason).toBe('aborted');
    expect((await world.letTimePass(first, 5_000)).text).toBe('first');
    expect(roles((await world.stored())?.messages)).toBe('user assistant');
  });
});
