/** Words that come while the run executes: queued behind the step, or steering it. */
import { isSDKError, type UserMessage } from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import {
  calling,
  deferred,
  givenStorage,
  givenWorld,
  need,
  noting,
  results,
  roles,
  until,
  type Setup,
} from './support.ts';

/** A run whose tool `a` ends when the test says so. */
function givenRunningTool(more: Partial<Setup> = {}) {
  const storage = givenStorage();
  const end = deferred<string>();
  const tools = [noting(storage, 'a', () => end.promise), noting(storage, 'b')];
  const world = givenWorld({ storage, tools, script: [calling('a'), 'done', 'more'], ...more });
  return { world, storage, end, isRunning: () => until(() => storage.effects.includes('a')) };
}

describe('enqueued words', () => {
  it('while a tool runs reach the next model call', async () => {
    const { world, end, isRunning } = givenRunningTool();
    const run = world.stream('go');
    await isRunning();
    const queued = run.enqueue('metric units');
    end.resolve('ok');
    const result = await run.result;
    expect(queued).toMatchObject({ applied: 'queued' });
    expect(await queued.joined).toBe(true);
    expect(world.model.calls[1]?.messages.at(-1)).toEqual({ role: 'user', content: 'metric units' });
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
    const types = world.eventTypes();
    expect(types.slice(types.indexOf('tool.start'), types.indexOf('tool.done') + 1)).toContain(
      'input.queued',
    );
    const applied = types.indexOf('input.applied');
    expect(types[applied + 1]).toBe('step.start');
    expect(world.events.find(({ type }) => type === 'input.applied')).toMatchObject({
      id: queued.id,
      step: 2,
    });
  });

  it('are stored at once: a crash keeps them', async () => {
    const { world, isRunning } = givenRunningTool({ diesAt: { call: 'saveIfLeased#3', when: 'before' } });
    const run = world.stream('go');
    void run.result.catch(() => undefined);
    await isRunning();
    expect(await run.enqueue('metric units').joined).toBe(true);
    void run.enqueue('dies here');
    await until(() => world.isDead);
    const resumed = await world.afterCrash({ tools: [noting(world.storage, 'a')], script: ['done'] });
    const result = need(await resumed.resume());
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
  });

  it('before the first model response are stored at once, too', async () => {
    const world = givenWorld({ script: [{ text: 'hello', delayMs: 50 }, 'and hello'] });
    const run = world.stream('hi');
    await until(() => world.model.calls.length === 1);
    expect(await run.enqueue('are you there?').joined).toBe(true);
    expect(await world.stored()).toMatchObject({
      status: 'in-progress',
      stepIndex: 0,
      heldInput: [{ content: 'are you there?' }],
    });
    expect(roles((await world.letTimePass(run.result, 50)).messages)).toBe('user assistant user assistant');
  });

  it('before the run has opened wait for it', async () => {
    const world = givenWorld({ script: ['hello'] });
    const run = world.stream('hi');
    const queued = run.enqueue('are you there?');
    const result = await run.result;
    expect(await queued.joined).toBe(true);
    expect(roles(result.messages)).toBe('user user assistant');
  });

  it('while the model writes its last words buy one more step', async () => {
    const world = givenWorld({ script: [{ text: 'done', delayMs: 50 }, 'more'] });
    const run = world.stream('go');
    await until(() => world.model.calls.length === 1);
    void run.enqueue('and?');
    const result = await world.letTimePass(run.result, 50);
    expect(result).toMatchObject({ text: 'more', steps: 2 });
    expect(roles(result.messages)).toBe('user assistant user assistant');
  });

  it('beyond the step budget start a run of their own in the same call', async () => {
    const { world, end, isRunning } = givenRunningTool({ maxSteps: 1, script: [calling('a'), 'done'] });
    const run = world.stream('go');
    await isRunning();
    const queued = run.enqueue('and?');
    end.resolve('ok');
    const result = await run.result;
    expect(await queued.joined).toBe(true);
    expect(result).toMatchObject({
      finishReason: 'stop',
      text: 'done',
      steps: 1,
      usage: { modelCalls: 1 },
      toolCalls: [],
    });
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
    expect(world.events.find(({ type }) => type === 'input.applied')).toMatchObject({
      id: queued.id,
      step: 1,
    });
    expect(
      world.storage.store.saves.every(
        ({ status, heldInput }) => status !== 'finished' || heldInput.length === 0,
      ),
    ).toBe(true);
  });

  it('come in the order in which they were given, each as its own message', async () => {
    const { world, end, isRunning } = givenRunningTool();
    const run = world.stream('go');
    await isRunning();
    const message: UserMessage = { role: 'user', content: [{ type: 'text', text: 'second' }] };
    const queued = [run.enqueue('first'), run.enqueue(message), run.enqueue('third')];
    end.resolve('ok');
    await run.result;
    expect(world.model.calls[1]?.messages.slice(3)).toEqual([
      { role: 'user', content: 'first' },
      message,
      { role: 'user', content: 'third' },
    ]);
    expect(new Set(queued.map(({ id }) => id)).size).toBe(3);
  });

  it('behind the end of the run are told so', async () => {
    const world = givenWorld({ script: ['hello'] });
    const run = world.stream('hi');
    await run.result;
    const late = run.enqueue('hello?');
    expect(late.applied).toBe(false);
    expect(await late.joined).toBe(false);
  });

  it('behind the last save are told so, while the run still gives back its lease', async () => {
    const world = givenWorld({ script: ['hello'] });
    let late: ReturnType<typeof run.enqueue> | undefined;
    const run = world.stream('hi', {
      onEvent: (event) => {
        if (event.type === 'checkpoint.saved' && event.status === 'finished') late = run.enqueue('hello?');
      },
    });
    await run.result;
    expect(need(late).applied).toBe(false);
  });

  it('in front of a pause are kept and join when it is decided', async () => {
    const storage = givenStorage();
    const end = deferred<string>();
    const tools = [
      noting(storage, 'a', () => end.promise),
      noting(storage, 'pay', undefined, { needsApproval: true }),
    ];
    const world = givenWorld({ storage, tools, script: [calling('a', 'pay'), 'done'] });
    const run = world.stream('go');
    await until(() => storage.effects.includes('a'));
    const queued = run.enqueue('and a receipt');
    end.resolve('ok');
    const paused = await run.result;
    expect(await queued.joined).toBe(true);
    expect(paused.finishReason).toBe('awaiting-approval');
    const result = await world.decide({ id: need(paused.approvalId), approved: true });
    expect(roles(result.messages)).toBe('user assistant tool tool user assistant');
  });

  it('in front of an abort are kept for the next call', async () => {
    const { world, end, isRunning } = givenRunningTool();
    const run = world.stream('go');
    await isRunning();
    const queued = run.enqueue('metric units');
    expect(await queued.joined).toBe(true);
    run.abort();
    end.resolve('ok');
    await run.result;
    const result = need(await world.onNewProcess({ script: ['done'] }).resume());
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
  });

  it('in front of a failure are kept for the next call', async () => {
    const { world, end, isRunning } = givenRunningTool({
      script: [calling('a'), new Error('down')],
      retry: { maxRetries: 0 },
    });
    const run = world.stream('go');
    await isRunning();
    void run.enqueue('metric units');
    end.resolve('ok');
    await run.result.catch(() => undefined);
    const result = need(await world.onNewProcess({ script: ['done'] }).resume());
    expect(roles(result.messages)).toBe('user assistant tool user assistant');
  });

  it('that are no words are refused, and the run goes on', async () => {
    const world = givenWorld({ script: [{ text: 'hello', delayMs: 50 }] });
    const run = world.stream('hi');
    await until(() => world.model.calls.length === 1);
    for (const give of [() => run.enqueue({ role: 'user' } as never), () => run.steer(7 as never)]) {
      let error: unknown;
      try {
        give();
      } catch (caught) {
        error = caught;
      }
      expect(isSDKError(error, 'LOUSHO_CONFIG_INVALID')).toBe(true);
    }
    expect((await world.letTimePass(run.result, 50)).text).toBe('hello');
    expect(world.model.calls).toHaveLength(1);
  });
});

describe('steering words', () => {
  it('take the place of a model call that has said nothing', async () => {
    const world = givenWorld({ script: [{ text: 'never heard', delayMs: 60_000 }, 'as you wish'] });
    const run = world.stream('go left');
    await until(() => world.model.calls.length === 1);
    const steered = run.steer('no, right');
    const result = await run.result;
    expect(steered.applied).toBe('immediate');
    expect(await steered.joined).toBe(true);
    expect(result).toMatchObject({ text: 'as you wish', steps: 2, usage: { modelCalls: 2 } });
    expect(roles(result.messages)).toBe('user user assistant');
    expect(JSON.stringify(world.storage.store.saves)).not.toContain('never heard');
    const types = world.eventTypes();
    expect(world.events.find(({ type }) => type === 'step.done')).toMatchObject({
      step: 1,
      finishReason: 'steered',
    });
    expect(types.indexOf('input.applied')).toBeLessThan(types.lastIndexOf('step.start'));
    expect(types.indexOf('input.applied')).toBeGreaterThan(types.indexOf('step.done'));
  });

  it('of a provider that ignores the abort are heard at once all the same', async () => {
    const world = givenWorld({
      script: [{ text: 'too late', delayMs: 1_000, ignoreSignal: true }, 'as you wish'],
    });
    const run = world.stream('go left');
    await until(() => world.model.calls.length === 1);
    void run.steer('no, right');
    expect((await run.result).text).toBe('as you wish');
    await world.clock.advance(5_000);
    expect(JSON.stringify(world.events)).not.toContain('too late');
  });

  it('behind words that were heard wait for the response, which stays', async () => {
    const heard = deferred();
    const world = givenWorld({
      provider: {
        providerId: 'p',
        modelId: 'm',
        generate: () => Promise.reject(new Error('streams only')),
        async *stream({ messages }) {
          const text = messages.length === 1 ? 'left' : 'right';
          yield { type: 'text-delta', text } as const;
          if (messages.length === 1) await heard.promise;
          yield {
            type: 'finish',
            response: {
              message: { role: 'assistant', content: [{ type: 'text', text }] },
              finishReason: 'stop',
              usage: {},
            },
          } as const;
        },
      },
    });
    const run = world.stream('go left');
    await until(() => world.eventTypes().includes('text.delta'));
    const steered = run.steer('no, right');
    heard.resolve();
    const result = await run.result;
    expect(steered.applied).toBe('queued');
    expect(roles(result.messages)).toBe('user assistant user assistant');
    expect(result.text).toBe('right');
  });

  it('while calls run keep those from starting that have not begun, and keep the results of the others', async () => {
    const { world, storage, end, isRunning } = givenRunningTool({
      toolConcurrency: 1,
      script: [calling('a', 'b'), 'as you wish'],
    });
    const run = world.stream('go');
    await isRunning();
    const steered = run.steer('stop that');
    end.resolve('kept');
    const result = await run.result;
    expect(steered.applied).toBe('queued');
    expect(results(result.messages).map(({ toolName, kind }) => [toolName, kind])).toEqual([
      ['a', undefined],
      ['b', 'not-run'],
    ]);
    expect(storage.effects).toEqual(['a']);
    expect(roles(result.messages)).toBe('user assistant tool tool user assistant');
    expect(transcriptProblems(result.messages)).toEqual([]);
  });

  it('keep no call of a later step from starting', async () => {
    const { world, storage, end, isRunning } = givenRunningTool({
      script: [calling('a'), calling('b'), 'done'],
    });
    const run = world.stream('go');
    await isRunning();
    void run.steer('and b');
    end.resolve('ok');
    await run.result;
    expect(storage.effects).toEqual(['a', 'b']);
  });

  it('count as a step: the budget holds', async () => {
    const world = givenWorld({ maxSteps: 1, script: [{ text: 'x', delayMs: 60_000 }, 'next run'] });
    const run = world.stream('go');
    await until(() => world.model.calls.length === 1);
    void run.steer('stop');
    const result = await run.result;
    // The first run is over by its budget; the words start another one.
    expect(result).toMatchObject({ text: 'next run', steps: 1 });
  });

  it('beside a pause: what waits for a person still waits, what had not begun is not run', async () => {
    const storage = givenStorage();
    const end = deferred<string>();
    const tools = [
      noting(storage, 'pay', undefined, { needsApproval: true }),
      noting(storage, 'a', () => end.promise),
      noting(storage, 'b'),
    ];
    const world = givenWorld({
      storage,
      tools,
      toolConcurrency: 1,
      script: [calling('pay', 'a', 'b'), 'done'],
    });
    const run = world.stream('go');
    await until(() => storage.effects.includes('a'));
    void run.steer('not b');
    end.resolve('ok');
    const paused = await run.result;
    expect(paused.finishReason).toBe('awaiting-approval');
    const result = await world.decide({ id: need(paused.approvalId), approved: true });
    expect(results(result.messages).map(({ toolName, kind }) => [toolName, kind])).toEqual([
      ['pay', undefined],
      ['a', undefined],
      ['b', 'not-run'],
    ]);
    expect(roles(result.messages)).toBe('user assistant tool tool tool user assistant');
  });

  it('behind the end of the run are told so', async () => {
    const world = givenWorld({ script: ['hello'] });
    const run = world.stream('hi');
    await run.result;
    expect(run.steer('hello?').applied).toBe(false);
  });
});
