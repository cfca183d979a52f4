/** What a call's result looks like, before and after a crash. */
import { PropagatingToolError, type JsonValue, type ToolFailure } from '@lousho/contract';
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
  until,
  type Setup,
} from './support.ts';

class Point {
  constructor(
    readonly x: number,
    readonly y: number,
  ) {}
}
const circular: { self?: unknown } = {};
circular.self = circular;

const values: readonly (readonly [string, () => unknown, JsonValue])[] = [
  ['undefined', () => undefined, null],
  ['null', () => null, null],
  ['a text', () => 'ok', 'ok'],
  ['an empty text', () => '', ''],
  ['0', () => 0, 0],
  ['-0', () => -0, 0],
  ['NaN', () => NaN, null],
  ['Infinity', () => Infinity, null],
  ['false', () => false, false],
  ['a date', () => new Date(0), '1970-01-01T00:00:00.000Z'],
  ['a broken date', () => new Date(NaN), null],
  ['bytes', () => new Uint8Array([1, 2, 3]), { $bytes: 'AQID' }],
  ['a map', () => new Map([['a', 1]]), { a: 1 }],
  ['a set', () => new Set([1, 2]), [1, 2]],
  ['an error', () => new TypeError('odd'), { name: 'TypeError', message: 'odd' }],
  ['an instance of a class', () => new Point(1, 2), { x: 1, y: 2 }],
  ['a value with toJSON', () => ({ toJSON: () => 'said' }), 'said'],
  ['a missing member', () => [{ a: 1, b: undefined }], [{ a: 1 }]],
  ['a hole in a list', () => [1, undefined, 3], [1, null, 3]],
  ['lone surrogates, in values and keys', () => ({ 'k\ud800': 'a\ud800b' }), { 'k\ufffd': 'a\ufffdb' }],
  [
    '__proto__ as a key',
    () => JSON.parse('{"__proto__":{"x":1}}') as unknown,
    JSON.parse('{"__proto__":{"x":1}}') as JsonValue,
  ],
];
const unsayable: readonly (readonly [string, () => unknown, string])[] = [
  ['a BigInt', () => ({ amount: 10n }), 'amount'],
  ['a function', () => ({ list: [() => 1] }), 'list[0]'],
  ['a symbol', () => Symbol('s'), ''],
  ['a circle', () => circular, 'self'],
  [
    'a getter that throws',
    () => Object.defineProperty({}, 'x', { enumerable: true, get: () => need(undefined) }),
    'x',
  ],
];

function givenTool(body: () => unknown, more: Partial<Setup> = {}) {
  const storage = givenStorage();
  return givenWorld({
    storage,
    tools: [noting(storage, 'a', body)],
    script: [calling('a'), 'done'],
    ...more,
  });
}

describe('what a tool returns', () => {
  it.each(values)('%s: the model sees the same as a resumed run', async (_what, body, recorded) => {
    const world = givenTool(body);
    const live = await world.send('go');
    expect(resultFor(live.messages, 'a')).toEqual({
      type: 'tool-result',
      toolCallId: 'call_a',
      toolName: 'a',
      result: recorded,
    });
    const crashing = givenTool(body, { diesAt: { call: 'saveIfLeased#3', when: 'before' } });
    await crashing.untilDead(crashing.send('go'));
    const resumed = await crashing.afterCrash({ script: ['done'] });
    await resumed.resume();
    expect(crashing.timesRun('a')).toBe(1);
    expect(JSON.stringify(resumed.model.calls[0]?.messages)).toBe(
      JSON.stringify(world.model.calls[1]?.messages),
    );
  });

  it.each(unsayable)(
    '%s becomes an error result that names the path and says that the tool ran',
    async (_what, body, path) => {
      const world = givenTool(body);
      const { messages, finishReason } = await world.send('go');
      const { result, kind, isError } = resultFor(messages, 'a');
      expect({ kind, isError, finishReason }).toEqual({
        kind: 'execution',
        isError: true,
        finishReason: 'stop',
      });
      expect((result as unknown as ToolFailure).error).toContain('The tool ran');
      expect((result as unknown as ToolFailure).error).toContain(path);
    },
  );

  it('too many bytes become an error result that names the size, not a failed run', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'fits', () => 'x'.repeat(98), { maxResultBytes: 100 }),
        noting(storage, 'over', () => 'x'.repeat(99), { maxResultBytes: 100 }),
        noting(storage, 'wide', () => ({ text: 'é'.repeat(60) }), { maxResultBytes: 100 }),
      ],
      script: [calling('fits', 'over', 'wide'), 'done'],
    });
    const { messages } = await world.send('go');
    expect(resultFor(messages, 'fits').kind).toBeUndefined();
    expect(resultFor(messages, 'over')).toMatchObject({
      kind: 'execution',
      result: { error: expect.stringContaining('101 bytes; at most 100') },
    });
    expect(resultFor(messages, 'wide').kind).toBe('execution');
  });

  it('more than 1 MB is too much by default', async () => {
    const world = givenTool(() => 'x'.repeat(1024 * 1024));
    expect(resultFor((await world.send('go')).messages, 'a').kind).toBe('execution');
  });
});

describe('what a tool throws', () => {
  it.each<readonly [string, unknown, string]>([
    ['an error', new Error('kaput'), 'kaput'],
    ['an error without a message', new Error(''), 'without a message'],
    ['a text', 'just a text', 'just a text'],
    ['nothing', undefined, 'undefined'],
    ['an abort that nobody asked for', new DOMException('gone', 'AbortError'), 'gone'],
  ])('%s is its error result', async (_what, thrown, text) => {
    const world = givenTool(() => {
      throw thrown;
    });
    const { messages } = await world.send('go');
    const { result, kind } = resultFor(messages, 'a');
    expect(kind).toBe('execution');
    expect((result as unknown as ToolFailure).error).toContain(text);
  });

  it('is cut, never in the middle of a character, and has no stack', async () => {
    const world = givenTool(() => {
      throw new Error('😀'.repeat(5_000));
    });
    const { result } = resultFor((await world.send('go')).messages, 'a');
    const { error } = result as unknown as ToolFailure;
    expect(error.length).toBeLessThanOrEqual(2_000);
    expect(error.isWellFormed()).toBe(true);
    expect(error).not.toContain('at ');
  });

  it('may be something that breaks when it is read', async () => {
    const world = givenTool(() => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- what a careless library throws
      throw { toString: () => need(undefined) };
    });
    const { messages, finishReason } = await world.send('go');
    expect(resultFor(messages, 'a').kind).toBe('execution');
    expect(finishReason).toBe('stop');
  });
});

describe('arguments', () => {
  it('that do not fit are not run: the model hears which', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'mail', undefined, {
          input: z.object({ to: z.string(), copies: z.array(z.object({ to: z.string() })) }),
        }),
      ],
      script: [calling(['mail', { to: 7, copies: [{ to: 'a' }, {}] }]), 'done'],
    });
    const { messages } = await world.send('go');
    expect(storage.effects).toEqual([]);
    expect(resultFor(messages, 'mail')).toMatchObject({
      kind: 'validation',
      isError: true,
      result: { issues: [{ path: 'to' }, { path: 'copies[1].to' }] },
    });
  });

  it('are what the schema makes of them; the transcript shows what the model said', async () => {
    const storage = givenStorage();
    const seen: JsonValue[] = [];
    const input = z.object({
      to: z.string().default('all'),
      at: z.string().transform((text) => text.toUpperCase()),
    });
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'mail', (args) => void seen.push(args), { input })],
      script: [calling(['mail', { at: 'noon' }]), 'done'],
    });
    const { toolCalls } = await world.send('go');
    expect(seen).toEqual([{ to: 'all', at: 'NOON' }]);
    expect(toolCalls[0]?.args).toEqual({ at: 'noon' });
  });

  it('that were no JSON get a validation result with the response, also on a resume', async () => {
    const world = givenWorld({
      script: [],
      provider: {
        providerId: 'p',
        modelId: 'm',
        generate: ({ messages }) =>
          Promise.resolve({
            message: {
              role: 'assistant',
              content:
                messages.length === 1
                  ? [{ type: 'tool-call', toolCallId: 'c', toolName: 'a', args: {}, invalidArgs: '{"to":' }]
                  : [{ type: 'text', text: 'sorry' }],
            },
            finishReason: messages.length === 1 ? 'tool-calls' : 'stop',
            usage: {},
          }),
      },
    });
    const { messages, text } = await world.send('go');
    expect(resultFor(messages, 'a').kind).toBe('validation');
    expect(text).toBe('sorry');
  });

  it('whose check itself fails do not lose the run', async () => {
    const storage = givenStorage();
    const input = z.looseObject({}).refine(() => need(undefined));
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', undefined, { input })],
      script: [calling('a'), 'done'],
    });
    const { messages, finishReason } = await world.send('go');
    expect(resultFor(messages, 'a').isError).toBe(true);
    expect(finishReason).toBe('stop');
  });
});

describe('a time-out', () => {
  it('ends a call that hangs with an error result, and aborts its signal', async () => {
    const storage = givenStorage();
    const signals: AbortSignal[] = [];
    const hangs = noting(
      storage,
      'hangs',
      (_args, { signal }) => {
        signals.push(signal);
        return new Promise(() => undefined);
      },
      { timeoutMs: 5_000 },
    );
    const world = givenWorld({
      storage,
      tools: [hangs, noting(storage, 'fine')],
      script: [calling('hangs', 'fine'), 'done'],
    });
    const sent = world.send('go');
    await until(() => storage.effects.length === 2);
    await world.clock.advance(4_999);
    expect(signals[0]?.aborted).toBe(false);
    await world.clock.advance(1);
    const { messages, finishReason } = await sent;
    expect(signals[0]?.aborted).toBe(true);
    expect(resultFor(messages, 'hangs')).toMatchObject({
      kind: 'execution',
      result: { error: expect.stringContaining('5000 ms') },
    });
    expect(resultFor(messages, 'fine').kind).toBeUndefined();
    expect(finishReason).toBe('stop');
  });

  it('is over when the tool ends: no timer stays behind', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', (_args, { signal }) => signal, { timeoutMs: 5_000 })],
      script: [calling('a'), 'done'],
    });
    let timers = 0;
    const { clock } = world.ports;
    const counting = {
      ...clock,
      setTimer: (...args: readonly [() => void, number]) => {
        timers += 1;
        const cancel = clock.setTimer(...args);
        return () => {
          timers -= 1;
          cancel();
        };
      },
    };
    await world.send('go', { ports: { ...world.ports, clock: counting } });
    expect(timers).toBe(0);
  });

  it('does not hide a rejection of the run, and what the tool does later changes nothing', async () => {
    const storage = givenStorage();
    const late = deferred();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', () => late.promise, { timeoutMs: 1_000 })],
      script: [calling('a'), 'done'],
    });
    const result = await world.letTimePass(world.send('go'));
    late.reject(new PropagatingToolError('too late'));
    await world.clock.advance(1_000);
    expect(result.finishReason).toBe('stop');
    expect(await world.stored()).toMatchObject({ status: 'finished' });
  });
});

describe('a sandbox', () => {
  it('runs the tools that ask for it, with their own context', async () => {
    const storage = givenStorage();
    const boxed: string[] = [];
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'in', (_args, { toolCallId }) => toolCallId, { sandbox: true }),
        noting(storage, 'out'),
      ],
      script: [calling(['in', { x: 1 }], 'out'), 'done'],
      sandboxExecute: async (call) => {
        boxed.push(`${call.toolName} ${JSON.stringify(call.args)} ${call.ctx.toolCallId}`);
        return call.run();
      },
    });
    const { messages } = await world.send('go');
    expect(boxed).toEqual(['in {"x":1} call_in']);
    expect(resultFor(messages, 'in').result).toBe('call_in');
  });
});
