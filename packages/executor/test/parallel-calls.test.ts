import type { ToolContext } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  calling,
  deferred,
  givenStorage,
  givenWorld,
  need,
  noting,
  resultFor,
  resultIds,
  results,
  until,
  type Deferred,
  type Setup,
} from './support.ts';

/** Tools `a`, `b`, ... that end when the test says so. */
function givenSlowTools(names: string, more: Partial<Setup> = {}) {
  const storage = givenStorage();
  const ends = new Map<string, Deferred<unknown>>();
  const tools = [...names].map((name) => {
    const end = deferred<unknown>();
    ends.set(name, end);
    return noting(storage, name, () => end.promise);
  });
  const world = givenWorld({ storage, tools, script: [calling(...names), 'done'], ...more });
  return {
    world,
    end: (name: string, value: unknown = `${name} done`) => need(ends.get(name)).resolve(value),
    fail: (name: string, error: unknown) => need(ends.get(name)).reject(error),
    started: (count: number) => until(() => storage.effects.length === count),
  };
}

describe('calls of one response', () => {
  it('have all begun before any ends', async () => {
    const { world, end, started } = givenSlowTools('ab');
    const sent = world.send('go');
    await started(2);
    end('b');
    end('a');
    expect((await sent).finishReason).toBe('stop');
  });

  it('have their results in call order for the model, whatever order they end in', async () => {
    const { world, end, started } = givenSlowTools('abc');
    const sent = world.send('go');
    await started(3);
    for (const name of 'cab') {
      end(name);
      await until(() => world.events.some((event) => event.type === 'tool.done' && event.toolName === name));
    }
    const result = await sent;
    expect(resultIds(result.messages)).toEqual(['call_a', 'call_b', 'call_c']);
    expect(resultIds(world.model.calls[1]?.messages)).toEqual(['call_a', 'call_b', 'call_c']);
    const told = world.events.flatMap((event) =>
      event.type === 'tool.start' || event.type === 'tool.done' ? [`${event.type} ${event.toolName}`] : [],
    );
    expect(told).toEqual([
      'tool.start a',
      'tool.start b',
      'tool.start c',
      'tool.done c',
      'tool.done a',
      'tool.done b',
    ]);
  });

  it('fail each by itself: one error result does not touch its siblings', async () => {
    const { world, end, fail, started } = givenSlowTools('ab');
    const sent = world.send('go');
    await started(2);
    fail('a', new Error('kaput'));
    end('b', { fine: true });
    const { messages, finishReason } = await sent;
    expect(resultFor(messages, 'a')).toMatchObject({
      isError: true,
      kind: 'execution',
      result: { error: 'kaput' },
    });
    expect(resultFor(messages, 'b')).toEqual({
      type: 'tool-result',
      toolCallId: 'call_b',
      toolName: 'b',
      result: { fine: true },
    });
    expect(finishReason).toBe('stop');
  });

  it.each(['ok', 'fails', 'invalid', 'unknown'])('each have one result: %s', async (odd) => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'ok'),
        noting(storage, 'fails', () => {
          throw new Error('kaput');
        }),
        noting(storage, 'invalid', undefined, { input: z.object({ to: z.string() }) }),
      ],
      script: [calling('ok', 'fails', ['invalid', 'no object'], 'unknown'), 'done'],
    });
    const { messages } = await world.send('go');
    expect(results(messages).map(({ toolName, kind }) => [toolName, kind])).toEqual([
      ['ok', undefined],
      ['fails', 'execution'],
      ['invalid', 'validation'],
      ['unknown', 'not-found'],
    ]);
    expect(storage.effects).toEqual(['ok', 'fails']);
    expect(world.events.filter((event) => 'toolName' in event && event.toolName === odd).at(-1)?.type).toBe(
      odd === 'ok' ? 'tool.done' : 'tool.error',
    );
  });
});

describe('toolConcurrency', () => {
  it('1 runs one call after the other, in call order', async () => {
    const { world, end, started } = givenSlowTools('ab', { toolConcurrency: 1 });
    const sent = world.send('go');
    await started(1);
    expect(world.storage.effects).toEqual(['a']);
    end('a');
    await started(2);
    end('b');
    await sent;
    const told = world.eventTypes().filter((type) => type.startsWith('tool.'));
    expect(told).toEqual(['tool.start', 'tool.done', 'tool.start', 'tool.done']);
  });

  it('2 never has three calls running, and keeps call order', async () => {
    const { world, end, started } = givenSlowTools('abcd', { toolConcurrency: 2 });
    const sent = world.send('go');
    await started(2);
    end('b');
    await started(3);
    expect(world.storage.effects).toEqual(['a', 'b', 'c']);
    end('c');
    await started(4);
    end('a');
    end('d');
    expect(resultIds((await sent).messages)).toEqual(['call_a', 'call_b', 'call_c', 'call_d']);
  });

  it('holds on a resume too', async () => {
    const { world, end, started } = givenSlowTools('abc', {
      toolConcurrency: 1,
      diesAt: { call: 'saveIfLeased#1', when: 'after' },
    });
    await world.untilDead(world.send('go'));
    const resumed = (await world.afterCrash({ script: ['done'] })).resume();
    await started(1);
    end('a');
    end('b');
    end('c');
    expect(resultIds(need(await resumed).messages)).toEqual(['call_a', 'call_b', 'call_c']);
    expect(world.storage.effects).toEqual(['a', 'b', 'c']);
  });

  it('starts calls in call order also when an earlier one is marked first', async () => {
    const storage = givenStorage();
    const tools = [
      noting(storage, 'a', undefined, { onInterrupted: 'never' }),
      noting(storage, 'b'),
      noting(storage, 'c'),
    ];
    const world = givenWorld({
      storage,
      tools,
      toolConcurrency: 2,
      script: [calling('a', 'b', 'c'), 'done'],
    });
    // A slow disk: the mark of `a` takes a while.
    storage.store.beforeCall = (call) =>
      call === 'saveIfLeased' ? new Promise((resolve) => setImmediate(resolve)) : undefined;
    await world.send('go');
    expect(storage.effects).toEqual(['a', 'b', 'c']);
  });
});

describe('a crash while calls run', () => {
  it('runs again only the calls whose results were not saved, and asks no model for them', async () => {
    const { world, end, started } = givenSlowTools('abc', {
      diesAt: { call: 'saveIfLeased#3', when: 'after' },
    });
    const sent = world.send('go');
    await started(3);
    end('c');
    await until(() => world.storage.store.saves.length === 2);
    end('b');
    await world.untilDead(sent);
    end('a');
    const resumed = await world.afterCrash({ script: ['done'] });
    const result = need(await resumed.resume());
    expect([world.timesRun('a'), world.timesRun('b'), world.timesRun('c')]).toEqual([2, 1, 1]);
    expect(resumed.model.calls).toHaveLength(1);
    expect(resultIds(resumed.model.calls[0]?.messages)).toEqual(['call_a', 'call_b', 'call_c']);
    expect(result.usage.modelCalls).toBe(2);
  });

  it('gives a call that runs again the same ids and says that it may have begun', async () => {
    const storage = givenStorage();
    const seen: Pick<ToolContext, 'toolCallId' | 'idempotencyKey' | 'rerun'>[] = [];
    const charge = noting(storage, 'charge', (_args, { toolCallId, idempotencyKey, rerun }) => {
      seen.push({ toolCallId, idempotencyKey, rerun });
      return 'ok';
    });
    const first = givenWorld({
      storage,
      tools: [charge],
      script: [calling(['charge', { amount: 10 }]), calling(['charge', { amount: 10 }]), 'done'],
      diesAt: { call: 'saveIfLeased#2', when: 'before' },
    });
    await first.untilDead(first.send('go'));
    const second = await first.afterCrash({ script: [calling(['charge', { amount: 10 }]), 'done'] });
    await second.resume();
    expect(seen.map(({ toolCallId }) => toolCallId)).toEqual(['call_charge', 'call_charge', 'call_charge']);
    expect(seen.map(({ rerun }) => rerun)).toEqual([false, true, false]);
    expect(seen[0]?.idempotencyKey).toBe(seen[1]?.idempotencyKey);
    // The provider used one id for two steps: it is another charge all the same.
    expect(seen[2]?.idempotencyKey).not.toBe(seen[1]?.idempotencyKey);
  });
});

describe('a provider that uses its ids again', () => {
  it('in every step has each call run once, each with its own result', async () => {
    const storage = givenStorage();
    let count = 0;
    const tools = [noting(storage, 'next', () => (count += 1))];
    const again = { toolCalls: [{ name: 'next', id: 'call_0' }] };
    const world = givenWorld({ storage, tools, script: [again, again, again, 'done'] });
    const { messages, toolCalls } = await world.send('go');
    expect(results(messages).map(({ result }) => result)).toEqual([1, 2, 3]);
    expect(toolCalls.map(({ result }) => result)).toEqual([1, 2, 3]);
  });

  it('inside one response has both calls run', async () => {
    const storage = givenStorage();
    const twice = {
      toolCalls: [
        { name: 'a', id: 'call_0' },
        { name: 'a', id: 'call_0' },
      ],
    };
    const world = givenWorld({ storage, tools: [noting(storage, 'a')], script: [twice, 'done'] });
    const { messages } = await world.send('go');
    expect(resultIds(messages)).toEqual(['call_0', 'call_0_2']);
    expect(storage.effects).toEqual(['a', 'a']);
  });
});
