import { SDKError, isSDKError } from '@lousho/contract';
import { manualClock } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { RunStop, givenUp, unlessAborted } from '../src/run-stop.ts';
import {
  calling,
  deferred,
  givenStorage,
  givenWorld,
  need,
  noting,
  refusal,
  resultIds,
  roles,
  until,
  type World,
} from './support.ts';
import { executePlan, planSend, resolveEngine } from '../src/wiring.ts';
import { agentOfDefinition } from '../src/agent-of-definition.ts';

describe('an abort', () => {
  it('tells tools at once, and gives up on them a second later', async () => {
    const clock = manualClock();
    const stop = new RunStop(clock);
    stop.abort('enough');
    expect([stop.current?.type, stop.requested.aborted, stop.signal.aborted, stop.abandoned.aborted]).toEqual(
      ['abort', true, true, false],
    );
    await clock.advance(1_000);
    expect(stop.abandoned.aborted).toBe(true);
    expect(stop.signal.reason).toBe('enough');
  });
  it('keeps its first reason', () => {
    const stop = new RunStop(manualClock());
    stop.abort('first');
    stop.abort('second');
    expect(stop.current).toEqual({ type: 'abort', reason: 'first' });
  });
  it("follows a caller's signal until the run is over, and leaves no listener behind", () => {
    const stop = new RunStop(manualClock());
    const caller = new AbortController();
    stop.follow(caller.signal);
    stop.dispose();
    caller.abort();
    expect(stop.current).toBeUndefined();
  });
  it('behind the end sets no timer', async () => {
    const clock = manualClock();
    const stop = new RunStop(clock);
    stop.dispose();
    stop.abort('late');
    await clock.advance(10_000);
    expect(stop.abandoned.aborted).toBe(false);
  });
});

describe('a shutdown', () => {
  it('starts nothing new, and lets what runs go on until its time is up', async () => {
    const clock = manualClock();
    const stop = new RunStop(clock);
    stop.shutDown(5_000);
    expect([stop.current?.type, stop.requested.aborted, stop.signal.aborted]).toEqual([
      'shutdown',
      true,
      false,
    ]);
    await clock.advance(5_000);
    expect([stop.signal.aborted, stop.abandoned.aborted]).toEqual([true, true]);
    expect(isSDKError(stop.signal.reason, 'LOUSHO_SHUTDOWN')).toBe(true);
  });
  it.each([
    ['gives an aborted run no more time than it has', 10_000, 1_000],
    ['ends an aborted run when its own time is up', 200, 200],
  ])('%s', async (_rule, timeoutMs, endMs) => {
    const clock = manualClock();
    const stop = new RunStop(clock);
    stop.abort('enough');
    stop.shutDown(timeoutMs);
    expect(stop.current?.type).toBe('abort');
    await clock.advance(endMs - 1);
    expect(stop.abandoned.aborted).toBe(false);
    await clock.advance(1);
    expect(stop.abandoned.aborted).toBe(true);
  });
});

describe('a lost lease', () => {
  it('wins over everything: nothing of the run can be recorded any more', () => {
    const stop = new RunStop(manualClock());
    const lost = new SDKError('LOUSHO_SESSION_BUSY', { sessionId: 'order-7' });
    stop.abort('enough');
    stop.loseLease(lost);
    expect(stop.current).toEqual({ type: 'lease-lost', error: lost });
    expect(stop.abandoned.aborted).toBe(true);
  });
});

describe('waiting unless aborted', () => {
  it.each([
    ['gives the value', 1, Promise.resolve(1)],
    ['gives a value that is undefined', undefined, Promise.resolve()],
    ['gives up when the signal aborts first', givenUp, new Promise(() => undefined)],
  ])('%s', async (_rule, value, promise) => {
    const stopping = new AbortController();
    const waiting = unlessAborted(stopping.signal, promise);
    if (value === givenUp) stopping.abort();
    expect(await waiting).toBe(value);
  });
  it('gives up when the signal was aborted before, and later failures are no unhandled rejections', async () => {
    const late = deferred();
    expect(await unlessAborted(AbortSignal.abort(), late.promise)).toBe(givenUp);
    late.reject(new Error('late'));
    await new Promise((resolve) => setImmediate(resolve));
  });
});

describe('a run whose process goes away', () => {
  /** A run, and what its shutdown would call. */
  function givenRun(world: World) {
    const options = world.options();
    let stop: RunStop | undefined;
    const result = executePlan({
      ...planSend({
        input: 'go',
        sessionId: 'order-7',
        store: options.checkpointStore,
        approvals: options.approvalStore,
        source: agentOfDefinition(options.agent, options.provider, options.toolRegistry),
        engine: resolveEngine(options),
      }),
      onStart: (started) => {
        stop = started;
        return () => undefined;
      },
    });
    return { result, shutDown: (timeoutMs: number) => need(stop).shutDown(timeoutMs) };
  }

  it('records what settles in time, leaves the rest open, notes no failure, and frees the run at once', async () => {
    const storage = givenStorage();
    const ends = { a: deferred<string>(), b: deferred<string>() };
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'a', () => ends.a.promise),
        noting(storage, 'b', () => ends.b.promise),
        noting(storage, 'c'),
      ],
      toolConcurrency: 2,
      script: [calling('a', 'b', 'c')],
    });
    const { result, shutDown } = givenRun(world);
    const refused = refusal(result, 'LOUSHO_SHUTDOWN');
    await until(() => storage.effects.length === 2);
    shutDown(5_000);
    ends.a.resolve('in time');
    await world.clock.advance(5_000);
    await refused;
    const stored = await world.unfinished();
    expect(resultIds(stored.messages)).toEqual(['call_a']);
    expect(stored).not.toHaveProperty('lastError');
    expect(stored).not.toHaveProperty('finishReason');
    expect(storage.effects).toEqual(['a', 'b']);
    const other = world.onNewProcess({
      tools: [noting(storage, 'a'), noting(storage, 'b'), noting(storage, 'c')],
      script: ['done'],
    });
    expect(await other.resume()).toMatchObject({ finishReason: 'stop' });
    expect(storage.effects).toEqual(['a', 'b', 'b', 'c']);
  });

  it('lets a model call end in time, and keeps its response', async () => {
    const world = givenWorld({ script: [{ text: 'hello', delayMs: 3_000 }] });
    const { result, shutDown } = givenRun(world);
    await until(() => world.model.calls.length === 1);
    shutDown(5_000);
    // The answer ended the run: it came in time.
    expect(await world.letTimePass(result)).toMatchObject({ text: 'hello', finishReason: 'stop' });
    expect(await world.stored()).toMatchObject({ status: 'finished' });
  });

  it('gives up on a model call that takes too long: nothing is stored of it', async () => {
    const world = givenWorld({ script: [{ text: 'hello', delayMs: 60_000 }] });
    const { result, shutDown } = givenRun(world);
    await until(() => world.model.calls.length === 1);
    shutDown(5_000);
    await world.letTimePass(refusal(result, 'LOUSHO_SHUTDOWN'));
    expect(await world.stored()).toBeUndefined();
  });

  it('does not sit out the wait for the next try of the model', async () => {
    const world = givenWorld({ script: [new Error('busy'), 'never'] });
    const { result, shutDown } = givenRun(world);
    await until(() => world.eventTypes().includes('provider.retry'));
    shutDown(5_000);
    await refusal(result, 'LOUSHO_SHUTDOWN');
    expect(world.model.calls).toHaveLength(1);
  });

  it('keeps a pause that was stored already', async () => {
    const storage = givenStorage();
    const world: World = givenWorld({
      storage,
      tools: [noting(storage, 'pay', undefined, { needsApproval: true })],
      script: [calling('pay')],
      onEvent: ({ type }) => type === 'approval.requested' && running.shutDown(5_000),
    });
    const running = givenRun(world);
    expect((await running.result)?.finishReason).toBe('awaiting-approval');
  });

  it('asks nobody for an approval any more: the next process does', async () => {
    const storage = givenStorage();
    const end = deferred<string>();
    const tools = [
      noting(storage, 'a', () => end.promise),
      noting(storage, 'pay', undefined, { needsApproval: true }),
    ];
    const world = givenWorld({ storage, tools, script: [calling('a', 'pay')] });
    const { result, shutDown } = givenRun(world);
    const refused = refusal(result, 'LOUSHO_SHUTDOWN');
    await until(() => storage.effects.length === 1);
    shutDown(5_000);
    end.resolve('ok');
    await refused;
    expect(await world.inbox()).toEqual([]);
    expect(roles((await world.stored())?.messages)).toBe('user assistant tool');
    expect((await world.onNewProcess().resume())?.finishReason).toBe('awaiting-approval');
  });
});
