/** The handle of a run: its events, its words, its result, and what leaving it means. */
import { AgentExecutor, ToolRegistry } from '../src/index.ts';
import { isSDKError, type AgentEvent, type ErrorCode } from '@lousho/contract';
import { mockModel } from '@lousho/testing';
import { afterEach, beforeEach, describe, expect, it, vi, type MockInstance } from 'vitest';
import { calling, givenStorage, givenWorld, noting, until, type Setup } from './support.ts';

function givenRun(more: Partial<Setup> = {}) {
  const storage = givenStorage();
  const world = givenWorld({
    storage,
    tools: [noting(storage, 'a'), noting(storage, 'b')],
    script: [calling('a', 'b'), 'all done'],
    ...more,
  });
  return { world, run: world.stream('go') };
}

async function collect(events: AsyncIterable<AgentEvent>): Promise<readonly AgentEvent[]> {
  const collected: AgentEvent[] = [];
  for await (const event of events) collected.push(event);
  return collected;
}

const codeOf = (work: () => unknown): ErrorCode | undefined => {
  try {
    work();
  } catch (error) {
    return (error as { code?: ErrorCode }).code;
  }
  return undefined;
};

describe('the events of a run', () => {
  it('tell all of it in order, numbered without gaps', async () => {
    const { run } = givenRun();
    const events = await collect(run);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index));
    expect(events.filter(({ type }) => type !== 'checkpoint.saved').map(({ type }) => type)).toEqual([
      'run.start',
      'step.start',
      'tool.start',
      'tool.start',
      'tool.done',
      'tool.done',
      'step.done',
      'step.start',
      'text.delta',
      'text.delta',
      'text.done',
      'step.done',
      'run.done',
    ]);
    const { runId } = await run.result;
    for (const event of events)
      expect(event).toMatchObject({
        v: 1,
        runId,
        sessionId: 'order-7',
        timestamp: '2026-01-01T00:00:00.000Z',
      });
  });

  it('have each step begin once and end once, with its usage, whatever happens', async () => {
    for (const script of [
      [calling('a'), 'done'],
      [calling('a'), new Error('down')],
      [calling('pay')],
      [calling('nobody'), 'done'],
    ]) {
      const storage = givenStorage();
      const world = givenWorld({
        storage,
        tools: [noting(storage, 'a'), noting(storage, 'pay', undefined, { needsApproval: true })],
        script,
        retry: { maxRetries: 0 },
      });
      const run = world.stream('go');
      await run.result.catch(() => undefined);
      const steps = world.events.flatMap((event) =>
        event.type === 'step.start' || event.type === 'step.done' ? [`${event.type} ${event.step}`] : [],
      );
      expect(steps).toEqual(
        steps
          .filter((_step, index) => index % 2 === 0)
          .flatMap((step) => [step, step.replace('start', 'done')]),
      );
      const [first] = world.events.filter(({ type }) => type === 'step.done');
      expect(first).toMatchObject({ usage: { modelCalls: 1 } });
      expect(world.events.at(-1)?.type).toBe('run.done');
      // Optional fields are left out, never undefined.
      for (const event of world.events) expect(Object.values(event)).not.toContain(undefined);
    }
  });

  it('say of a save what was saved', async () => {
    const { run, world } = givenRun();
    await run.result;
    expect(world.events.filter(({ type }) => type === 'checkpoint.saved')).toMatchObject([
      { checkpointId: 'order-7', status: 'in-progress', step: 1 },
      { checkpointId: 'order-7', status: 'in-progress', step: 1 },
      { checkpointId: 'order-7', status: 'finished', step: 2 },
    ]);
  });

  it('of a resume are only those of what was not recorded', async () => {
    const { world } = givenRun({ diesAt: { call: 'saveIfLeased#3', when: 'before' } });
    await until(() => world.isDead);
    const resumed = await world.afterCrash({ script: ['all done'] });
    await resumed.stream([]).result;
    expect(resumed.eventTypes()).toEqual([
      'run.start',
      'step.start',
      'text.delta',
      'text.delta',
      'text.done',
      'step.done',
      'run.done',
    ]);
    expect(resumed.events.find(({ type }) => type === 'step.start')).toMatchObject({ step: 2 });
  });

  it('are frozen: no listener can change them for another', async () => {
    const { run } = givenRun();
    for (const event of await collect(run)) expect(Object.isFrozen(event)).toBe(true);
  });

  it('wait for a reader who comes late', async () => {
    const { run } = givenRun();
    await run.result;
    expect((await collect(run))[0]?.type).toBe('run.start');
  });

  it('are read once: a second loop is refused', async () => {
    const { run } = givenRun();
    await collect(run);
    expect(codeOf(() => run[Symbol.asyncIterator]())).toBe('LOUSHO_RUN_ALREADY_ITERATED');
  });

  it('end with the error of a run that failed', async () => {
    const { run } = givenRun({ script: [new Error('down')], retry: { maxRetries: 0 } });
    const seen: AgentEvent[] = [];
    let error: unknown;
    try {
      for await (const event of run) seen.push(event);
    } catch (caught) {
      error = caught;
    }
    expect(isSDKError(error, 'LOUSHO_PROVIDER_ERROR')).toBe(true);
    expect(seen.slice(-3).map(({ type }) => type)).toEqual(['step.done', 'error', 'run.done']);
    expect(seen.at(-1)).toMatchObject({ finishReason: 'error' });
  });

  it('say "run.done" only when the lease is given back: whoever hears it may go on at once', async () => {
    const { world, run } = givenRun();
    const held: unknown[] = [];
    for await (const { type } of run)
      if (type === 'run.done')
        held.push(await world.storage.store.checkpoints?.acquireLease?.('order-7', 'somebody', 1_000));
    expect(held).toMatchObject([{ fence: 2 }]);
  });
});

describe('leaving the loop early', () => {
  it('aborts the run', async () => {
    const { world, run } = givenRun();
    for await (const { type } of run) if (type === 'tool.start') break;
    const result = await run.result;
    expect(result).toMatchObject({ finishReason: 'aborted', abortReason: { name: 'AbortError' } });
    expect(world.model.calls).toHaveLength(1);
  });

  it('behind the last event changes nothing, and leaves no timer behind', async () => {
    const { world, run } = givenRun();
    for await (const { type } of run) if (type === 'run.done') break;
    expect((await run.result).finishReason).toBe('stop');
    expect(await world.stored()).toMatchObject({ status: 'finished' });
  });
});

describe('the words of a run', () => {
  it('may be read beside the events, also twice', async () => {
    const { run } = givenRun();
    const read = async (): Promise<string> => {
      let text = '';
      for await (const words of run.textStream) text += words;
      return text;
    };
    const [one, two, events] = await Promise.all([read(), read(), collect(run)]);
    expect([one, two]).toEqual(['all done', 'all done']);
    expect(events.length).toBeGreaterThan(5);
  });

  it('left early do not abort the run', async () => {
    const { run } = givenRun();
    for await (const words of run.textStream) if (words !== '') break;
    expect((await run.result).finishReason).toBe('stop');
  });

  it('end with the error of a run that failed', async () => {
    const { run } = givenRun({ script: [new Error('down')], retry: { maxRetries: 0 } });
    const read = async (): Promise<void> => {
      for await (const words of run.textStream) expect(words).toBe('never');
    };
    await expect(read()).rejects.toThrow('down');
  });
});

describe('a run that nobody waits for', () => {
  it('goes on by itself, and its failure is no unhandled rejection', async () => {
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', listen);
    const { world } = givenRun({ script: [new Error('down')], retry: { maxRetries: 0 } });
    await until(() => world.eventTypes().includes('run.done'));
    await new Promise((resolve) => setTimeout(resolve, 0));
    process.off('unhandledRejection', listen);
    expect(unhandled).toEqual([]);
  });

  it('aborted behind its end leaves no timer that holds the process', async () => {
    const world = givenWorld({ script: ['hello'] });
    let timers = 0;
    const { clock } = world.ports;
    const counting = {
      ...clock,
      setTimer: (...args: readonly [() => void, number]) => {
        const cancel = clock.setTimer(...args);
        let isLive = true;
        timers += 1;
        return () => {
          timers -= isLive ? 1 : 0;
          isLive = false;
          cancel();
        };
      },
    };
    const run = world.stream('hi', { ports: { ...world.ports, clock: counting } });
    await run.result;
    run.abort();
    expect(timers).toBe(0);
  });
});

describe('a listener', () => {
  let complaint: MockInstance<typeof console.error>;
  beforeEach(() => {
    complaint = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  });
  afterEach(() => complaint.mockRestore());

  it.each<readonly [string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('broken listener');
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken listener'))],
  ])('that %s changes nothing', async (_how, onEvent) => {
    const world = givenWorld({ script: ['hello'] });
    const options = { ...world.options(), input: 'hi', onEvent: onEvent };
    expect((await AgentExecutor.execute(options)).text).toBe('hello');
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(complaint).toHaveBeenCalled();
  });
});

describe('options of a stream', () => {
  it('that are wrong throw at once', () => {
    const world = givenWorld();
    expect(codeOf(() => world.stream('hi', { toolConcurrency: 0 }))).toBe('LOUSHO_CONFIG_INVALID');
    expect(codeOf(() => world.stream('hi', { sessionId: '../evil' }))).toBe('LOUSHO_SESSION_ID_INVALID');
    expect(codeOf(() => world.stream('hi', { checkpointStore: undefined }))).toBe(
      'LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE',
    );
    expect(
      codeOf(() =>
        AgentExecutor.stream({
          agent: { tools: ['nobody'] },
          input: 'hi',
          provider: mockModel([]),
          toolRegistry: new ToolRegistry(),
        }),
      ),
    ).toBe('LOUSHO_CONFIG_INVALID');
    expect(codeOf(() => AgentExecutor.stream({ agent: {}, input: [], provider: mockModel([]) }))).toBe(
      'LOUSHO_INPUT_EMPTY',
    );
  });
});
