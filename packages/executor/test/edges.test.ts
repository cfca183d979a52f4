/** Odd corners, each found by looking for what could still go wrong. */
import { SDKError, type LLMProvider } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { AgentExecutor } from '../src/index.ts';
import {
  calling,
  givenStorage,
  givenWorld,
  need,
  noting,
  refusal,
  resultFor,
  until,
  type World,
} from './support.ts';

it('steering a resumed run does not say of a call that it did not run when a dead process may have begun it', async () => {
  const storage = givenStorage();
  const first = givenWorld({
    storage,
    tools: [noting(storage, 'charge')],
    script: [calling('charge')],
    diesAt: { call: 'saveIfLeased#2', when: 'before' },
  });
  await first.untilDead(first.send('go'));
  expect(storage.effects).toEqual(['charge']);
  const second = await first.afterCrash({ script: ['as you wish'] });
  const run = second.stream([]);
  void run.steer('never mind');
  const { messages } = await run.result;
  expect(JSON.stringify(resultFor(messages, 'charge').result)).toContain('may or may not have taken effect');
  expect(storage.effects).toEqual(['charge']);
});

describe('a run that an encrypted store has sealed, met by an agent that has no key', () => {
  async function givenSealed() {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'pay', undefined, { needsApproval: true })],
      script: [calling('pay')],
    });
    const { approvalId, sessionId } = await world.send('go');
    const checkpoints = need(storage.store.checkpoints);
    const stored = need(await checkpoints.load(need(sessionId)));
    const sealed = { ...stored, approvals: [], messages: [], sealed: 'lousho-sealed-1.2026-01.AAAA' };
    await checkpoints.save(need(sessionId), sealed);
    const saves = storage.store.saves.length;
    return { world, storage, approvalId: need(approvalId), saves };
  }

  it.each([
    ['send', ({ world }) => world.send('again')],
    ['stream', ({ world }) => world.stream('again').result],
    ['a decision', ({ world, approvalId }) => world.decide({ id: approvalId, approved: true })],
  ] satisfies [string, (given: Awaited<ReturnType<typeof givenSealed>>) => Promise<unknown>][])(
    'is refused by %s, and everything stays as it was',
    async (_call, act) => {
      const given = await givenSealed();
      const { details } = await refusal(act(given), 'LOUSHO_STORE_KEY_UNKNOWN');
      expect(details).toMatchObject({ keyId: '2026-01' });
      expect(given.storage.store.saves).toHaveLength(given.saves);
      expect(given.storage.effects).toEqual([]);
      expect(await given.world.inbox()).toHaveLength(1);
    },
  );
});

it('a provider in plain JavaScript may answer without a promise', async () => {
  const message = { role: 'assistant', content: [{ type: 'text', text: 'hello' }] };
  const response = { message, finishReason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
  const provider = { providerId: 'p', modelId: 'm', generate: () => response } as unknown as LLMProvider;
  const { text } = await AgentExecutor.execute({ agent: {}, input: 'hi', provider });
  expect(text).toBe('hello');
});

it('an approval that lives longer than time itself is no reason to fail', async () => {
  const storage = givenStorage();
  const world = givenWorld({
    storage,
    tools: [noting(storage, 'pay', undefined, { needsApproval: true })],
    script: [calling('pay'), 'Paid.'],
    approvalTtlMs: Number.MAX_SAFE_INTEGER,
  });
  const paused = await world.send('go');
  expect((await world.decide({ id: need(paused.approvalId), approved: true })).text).toBe('Paid.');
});

it.each<readonly [string, unknown]>([
  [
    'breaks when it is read',
    {
      toString: () => need(undefined),
      get message() {
        return need(undefined);
      },
    },
  ],
  ['is undefined', undefined],
  ['is a symbol', Symbol('odd')],
])('what a hook throws reaches the caller as it is, also when it %s', async (_what, thrown) => {
  const world = givenWorld({
    script: ['hello'],
    hooks: {
      afterModel: () => {
        throw thrown;
      },
    },
  });
  const caught = await world.send('hi').then(
    () => 'it resolved',
    (error: unknown) => error,
  );
  expect(caught).toBe(thrown);
  expect(world.eventTypes().slice(-2)).toEqual(['error', 'run.done']);
  expect(await world.unfinished()).toMatchObject({ attempts: 1 });
});

describe('a store in trouble', () => {
  const down = new SDKError('LOUSHO_STORE_READ_FAILED', { operation: 'load' });

  it('that cannot be read rejects the call, and the lease is given back', async () => {
    const world = givenWorld({ script: ['hello'] });
    world.storage.store.beforeCall = (call) => {
      if (call === 'load') throw down;
    };
    expect(await refusal(world.send('hi'), 'LOUSHO_STORE_READ_FAILED')).toBe(down);
    world.storage.store.beforeCall = () => undefined;
    expect((await world.send('hi')).text).toBe('hello');
  });

  it('whose inbox cannot let go of a decided record rejects; the decision stands, and the next resume cleans up', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'pay', undefined, { needsApproval: true })],
      script: [calling('pay')],
    });
    const id = need((await world.send('go')).approvalId);
    storage.store.beforeCall = (call) => {
      if (call === 'approvals.delete') throw new Error('inbox is down');
    };
    await expect(world.decide({ id, approved: true })).rejects.toThrow('inbox is down');
    expect(storage.effects).toEqual([]);
    storage.store.beforeCall = () => undefined;
    const resumed = world.onNewProcess({ script: ['Paid.'] });
    expect((await resumed.resume())?.text).toBe('Paid.');
    expect(storage.effects).toEqual(['pay']);
    expect(await world.inbox()).toEqual([]);
  });

  it('that loses its mind between two saves does not stop other runs of the process', async () => {
    const world = givenWorld({ script: [new Error('down'), 'hello'], retry: { maxRetries: 0 } });
    await world.send('hi', { sessionId: 'one' }).catch(() => undefined);
    expect((await world.send('hi', { sessionId: 'two' })).text).toBe('hello');
  });
});

it('a tool that sends to another run, which sends back, is refused instead of waiting for ever', async () => {
  const storage = givenStorage();
  const world: World = givenWorld({
    storage,
    tools: [
      noting(storage, 'there', async () => (await world.send('and back?', { sessionId: 'other' })).text),
      noting(storage, 'back', async () => (await world.send('hello?')).text),
    ],
    script: [calling('there'), calling('back'), 'other done', 'done'],
  });
  const { finishReason, toolCalls } = await world.send('go');
  expect(finishReason).toBe('stop');
  expect(toolCalls[0]?.result).toBe('other done');
});

it('two runs of one conversation never overlap, however they are asked for', async () => {
  const storage = givenStorage();
  let running = 0;
  let most = 0;
  const tool = noting(storage, 'a', async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
  });
  const script = Array.from({ length: 5 }, () => [calling('a'), 'done'] as const).flat();
  const world = givenWorld({ storage, tools: [tool], script });
  const runs = Array.from({ length: 5 }, (_run, index) =>
    index % 2 === 0 ? world.send(`words ${index}`) : world.stream(`words ${index}`).result,
  );
  await until(() => running > 0);
  await Promise.all(runs);
  expect(most).toBe(1);
  expect(storage.effects).toHaveLength(5);
});
