import { isSDKError, type AgentStore, type Lease } from '@lousho/contract';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, testPorts } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { acquireLease, type HeldLease, type LeasingStore } from '../src/lease-keeper.ts';
import { calling, deferred, givenStorage, givenWorld, need, noting, refusal, until } from './support.ts';

/** A store that answers as the test says, and notes when it was asked to renew. */
function givenStore() {
  const clock = manualClock();
  const startMs = clock.monotonicMs();
  const renewals: number[] = [];
  const given = {
    clock,
    renewals,
    renew: (): Promise<boolean> => Promise.resolve(true),
    released: [] as unknown[],
    async held(options: { readonly ttlMs?: number; readonly heartbeatMs?: number } = {}): Promise<HeldLease> {
      const { ttlMs = 30_000, heartbeatMs = 10_000 } = options;
      return need(
        await acquireLease('order-7', 'owner-1', { store: given.store, clock, ttlMs, heartbeatMs }),
      );
    },
    store: {
      acquireLease: (): Promise<Lease | boolean> => Promise.resolve({ fence: 7 }),
      renewLease: (...args: unknown[]): Promise<boolean> => {
        renewals.push(clock.monotonicMs() - startMs);
        expect(args).toEqual(['order-7', 'owner-1', expect.any(Number), 7]);
        return given.renew();
      },
      releaseLease: (...args: unknown[]): Promise<void> => {
        given.released.push(args);
        return Promise.resolve();
      },
    } as unknown as LeasingStore,
  };
  return given;
}

describe('a heartbeat', () => {
  it('renews every 10 seconds while the run executes, and not after', async () => {
    const given = givenStore();
    const lease = await given.held();
    await given.clock.advance(35_000);
    expect(given.renewals).toEqual([10_000, 20_000, 30_000]);
    await lease.release();
    await given.clock.advance(60_000);
    expect(given.renewals).toHaveLength(3);
    expect(given.released).toEqual([['order-7', 'owner-1', 7]]);
  });

  it('that fails is no loss: it is tried again every second, and the run goes on when one succeeds', async () => {
    const given = givenStore();
    let failures = 0;
    given.renew = () => ((failures += 1) <= 5 ? Promise.reject(new Error('EIO')) : Promise.resolve(true));
    const lease = await given.held();
    await given.clock.advance(16_000);
    expect(given.renewals).toEqual([10_000, 11_000, 12_000, 13_000, 14_000, 15_000]);
    expect(lease.lost.aborted).toBe(false);
    await given.clock.advance(9_000);
    expect(given.renewals.at(-1)).toBe(25_000);
  });

  it('that fails for ever ends the run before the lease does', async () => {
    const given = givenStore();
    given.renew = () => Promise.reject(new Error('EIO'));
    const lease = await given.held();
    await given.clock.advance(24_000);
    expect(lease.lost.aborted).toBe(false);
    await given.clock.advance(1_000);
    expect(isSDKError(lease.lost.reason, 'LOUSHO_SESSION_BUSY')).toBe(true);
    const count = given.renewals.length;
    await given.clock.advance(60_000);
    expect(given.renewals).toHaveLength(count);
  });

  it('that is never answered ends the run before the lease does', async () => {
    const given = givenStore();
    given.renew = () => new Promise(() => undefined);
    const lease = await given.held();
    await given.clock.advance(24_999);
    expect(lease.lost.aborted).toBe(false);
    await given.clock.advance(1);
    expect(lease.lost.aborted).toBe(true);
  });

  it('that finds another owner reports the loss at once, and gives nothing back', async () => {
    const given = givenStore();
    given.renew = () => Promise.resolve(false);
    const lease = await given.held();
    await given.clock.advance(10_000);
    expect(isSDKError(lease.lost.reason, 'LOUSHO_SESSION_BUSY') && lease.lost.reason.retryable).toBe(true);
    await lease.release();
    expect(given.released).toEqual([]);
    expect(() => lease.ensureHeld()).toThrow();
  });

  it('that comes late, behind a long pause of the process, may still renew: nobody took the lease', async () => {
    const given = givenStore();
    const lease = await given.held();
    const answer = deferred<boolean>();
    given.renew = () => answer.promise;
    // As after SIGSTOP: the clock is far ahead before any timer has run, and the store needs a moment.
    given.clock.jumpWall(40_000);
    await given.clock.advance(10_000);
    await given.clock.advance(4_000);
    expect(lease.lost.aborted).toBe(false);
    answer.resolve(true);
    await given.clock.advance(0);
    given.renew = () => Promise.resolve(true);
    expect(lease.ensureHeld()).toBeUndefined();
  });

  it('works with short leases too: the margin shrinks with them', async () => {
    const given = givenStore();
    given.renew = () => Promise.reject(new Error('EIO'));
    const lease = await given.held({ ttlMs: 600, heartbeatMs: 200 });
    await given.clock.advance(400);
    expect(lease.lost.aborted).toBe(false);
    await given.clock.advance(200);
    expect(lease.lost.aborted).toBe(true);
  });
});

describe('before an effect', () => {
  it('a fresh lease costs nothing', async () => {
    const given = givenStore();
    const lease = await given.held();
    expect(lease.ensureHeld()).toBeUndefined();
    await given.clock.advance(9_999);
    expect(lease.ensureHeld()).toBeUndefined();
    expect(given.renewals).toEqual([]);
  });

  it.each([
    ['ahead', 25_000],
    ['back', -25_000],
  ])('a wall clock that jumped %s has the lease renewed first', async (_where, ms) => {
    const given = givenStore();
    const lease = await given.held();
    given.clock.jumpWall(ms);
    await lease.ensureHeld();
    expect(given.renewals).toHaveLength(1);
    expect(lease.ensureHeld()).toBeUndefined();
  });

  it('a lease that another one took in the meantime is refused', async () => {
    const given = givenStore();
    const lease = await given.held();
    given.clock.jumpWall(120_000);
    given.renew = () => Promise.resolve(false);
    await refusal(need(lease.ensureHeld()), 'LOUSHO_SESSION_BUSY');
    expect(lease.lost.aborted).toBe(true);
  });

  it('a store that does not answer well is no loss: its error is what is heard', async () => {
    const given = givenStore();
    const lease = await given.held();
    given.clock.jumpWall(120_000);
    given.renew = () => Promise.reject(new Error('EIO'));
    await expect(lease.ensureHeld()).rejects.toThrow('EIO');
    expect(lease.lost.aborted).toBe(false);
  });
});

describe('other kinds of stores', () => {
  it('without a number for their leases have none to show', async () => {
    const given = givenStore();
    given.store.acquireLease = () => Promise.resolve(true);
    const { fence } = need(
      await acquireLease('order-7', 'owner-1', {
        store: given.store,
        clock: given.clock,
        ttlMs: 30_000,
        heartbeatMs: 10_000,
      }),
    );
    expect(fence).toBeUndefined();
  });
  it('that refuse give nothing', async () => {
    const given = givenStore();
    given.store.acquireLease = () => Promise.resolve(false);
    expect(
      await acquireLease('order-7', 'owner-1', {
        store: given.store,
        clock: given.clock,
        ttlMs: 30_000,
        heartbeatMs: 10_000,
      }),
    ).toBeUndefined();
  });
  it('that cannot release do not fail the run', async () => {
    const given = givenStore();
    given.store.releaseLease = () => Promise.reject(new Error('EIO'));
    const lease = await given.held();
    await lease.release();
  });
});

describe('a run', () => {
  it.each([
    ['finishes', ['done'], {}],
    ['pauses', [calling('pay')], {}],
    ['fails', [new Error('down')], { retry: { maxRetries: 0 } }],
  ] as const)(
    'holds its lease while it executes, and gives it back when it %s',
    async (_how, script, more) => {
      const storage = givenStorage();
      const held: unknown[] = [];
      const take = (): Promise<unknown> => takeLease(storage.store, 'order-7', 'somebody', 1_000);
      const world = givenWorld({
        storage,
        tools: [noting(storage, 'pay', undefined, { needsApproval: true })],
        script,
        hooks: { beforeModel: async () => void held.push(await take()) },
        ...more,
      });
      await world.send('go').catch(() => undefined);
      expect(held).toEqual([false]);
      expect(await take()).toMatchObject({ fence: 2 });
    },
  );

  it('takes its lease before it reads the run', async () => {
    const world = givenWorld({ script: ['hello'] });
    await world.send('hi');
    const { calls } = world.storage.store;
    expect(calls.indexOf('acquireLease')).toBeLessThan(calls.indexOf('load'));
    expect(calls.at(-1)).toBe('releaseLease');
  });

  it('that is executed elsewhere is busy before any model or tool, and stays as it was', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a')],
      script: [calling('a'), new Error('down'), 'never'],
      retry: { maxRetries: 0 },
    });
    await world.send('go').catch(() => undefined);
    const stored = JSON.stringify(await world.stored());
    await takeLease(world.storage.store, 'order-7', 'somebody', 60_000);
    for (const attempt of [() => world.send('hi'), () => world.send('go'), () => world.resume()]) {
      const error = await refusal(attempt(), 'LOUSHO_SESSION_BUSY');
      expect(error).toMatchObject({ retryable: true, details: { sessionId: 'order-7' } });
    }
    const run = world.stream('hi');
    await refusal(run.result, 'LOUSHO_SESSION_BUSY');
    await expect(
      (async () => {
        for await (const event of run) expect(event.type).not.toBe('run.start');
      })(),
    ).rejects.toMatchObject({ code: 'LOUSHO_SESSION_BUSY' });
    expect(JSON.stringify(await world.stored())).toBe(stored);
    expect(world.timesRun('a')).toBe(1);
  });

  it('that lost its lease stops at once: its tool is told, its late result dropped, no failure noted', async () => {
    const storage = givenStorage();
    const end = deferred<string>();
    let signal: AbortSignal | undefined;
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'a', (_args, ctx) => {
          signal = ctx.signal;
          return end.promise;
        }),
        noting(storage, 'b'),
      ],
      toolConcurrency: 1,
      script: [calling('a', 'b')],
    });
    const sent = refusal(world.send('go'), 'LOUSHO_SESSION_BUSY');
    await until(() => storage.effects.length === 1);
    // Somebody ends it, and another process takes over.
    const checkpoints = need(storage.store.checkpoints);
    const stored = need(await world.stored());
    await checkpoints.delete('order-7');
    await checkpoints.save('order-7', stored);
    await takeLease(storage.store, 'order-7', 'somebody', 600_000);
    const saves = storage.store.saves.length;
    await world.clock.advance(10_000);
    expect(signal?.aborted).toBe(true);
    end.resolve('too late');
    await sent;
    expect(storage.store.saves).toHaveLength(saves);
    expect(await world.unfinished()).not.toHaveProperty('lastError');
    expect(storage.effects).toEqual(['a']);
  });

  it('that lost its lease between two heartbeats is stopped by its next save', async () => {
    const storage = givenStorage();
    const tools = [
      noting(storage, 'a', async () => {
        const checkpoints = need(storage.store.checkpoints);
        await checkpoints.delete('order-7');
      }),
    ];
    const world = givenWorld({ storage, tools, script: [calling('a'), 'never'] });
    await refusal(world.send('go'), 'LOUSHO_SESSION_BUSY');
    expect(await world.stored()).toBeUndefined();
    expect(world.model.calls).toHaveLength(1);
  });

  it('after a jump of the clock starts nothing before it has renewed', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', () => storage.clock.jumpWall(120_000)), noting(storage, 'b')],
      toolConcurrency: 1,
      script: [calling('a', 'b'), 'done'],
    });
    expect((await world.send('go')).finishReason).toBe('stop');
    expect(storage.store.calls.filter((call) => call === 'renewLease')).toHaveLength(1);
  });

  it('after a jump of the clock with a take-over in between does not start its second tool', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'a', async () => {
          storage.clock.jumpWall(120_000);
          const checkpoints = need(storage.store.checkpoints);
          const stored = need(await checkpoints.load('order-7'));
          await checkpoints.delete('order-7');
          await checkpoints.save('order-7', stored);
          await takeLease(storage.store, 'order-7', 'somebody', 60_000);
        }),
        noting(storage, 'b'),
      ],
      toolConcurrency: 1,
      script: [calling('a', 'b')],
    });
    await refusal(world.send('go'), 'LOUSHO_SESSION_BUSY');
    expect(storage.effects).toEqual(['a']);
  });

  it('with the option lease: false takes none', async () => {
    const world = givenWorld({ script: ['hello'], lease: false });
    await world.send('hi');
    expect(world.storage.store.calls).toEqual(['load', 'save']);
  });

  it.each([
    ['save, load and delete alone', []],
    ['half of a lease', ['acquireLease']],
  ])('on a store with %s has no lease', async (_what, extra) => {
    const { checkpoints } = memoryStore({ ports: testPorts(manualClock()) });
    const kept = ['save', 'load', 'delete', ...extra];
    const plain = Object.fromEntries(Object.entries(checkpoints).filter(([name]) => kept.includes(name)));
    const world = givenWorld({ script: ['hello'] });
    expect((await world.send('hi', { checkpointStore: plain as never })).text).toBe('hello');
    expect(await checkpoints.load('order-7')).toMatchObject({ status: 'finished' });
  });

  it('on a store without fenced saves renews right before each save', async () => {
    const { checkpoints } = memoryStore({ ports: testPorts(manualClock()) });
    const calls: string[] = [];
    const names = ['save', 'load', 'delete', 'acquireLease', 'releaseLease'];
    const plain = Object.fromEntries(
      Object.entries(checkpoints)
        .filter(([name]) => names.includes(name))
        .map(([name, method]) => [
          name,
          (...args: unknown[]): unknown => {
            calls.push(name);
            return (method as (...args: unknown[]) => unknown)(...args);
          },
        ]),
    );
    const storage = givenStorage();
    const world = givenWorld({ storage, tools: [noting(storage, 'a')], script: [calling('a'), 'done'] });
    await world.send('go', { checkpointStore: plain as never });
    expect(calls).toEqual([
      'acquireLease',
      'load',
      'acquireLease',
      'save',
      'acquireLease',
      'save',
      'acquireLease',
      'save',
      'releaseLease',
    ]);
  });
});

async function takeLease(store: AgentStore, ...args: readonly [string, string, number]): Promise<unknown> {
  return store.checkpoints?.acquireLease?.(...args);
}
