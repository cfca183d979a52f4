/** The ports of the platform: time that moves, timers of any length, ids, and one identity for each loaded copy. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { platformClock, platformIds, platformProcesses, resolvePorts, type Ports } from '../src/index.ts';

const DAY_MS = 24 * 3_600_000;

describe('platformClock', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  it('tells the time of the platform', () => {
    vi.setSystemTime(1_000);
    const before = platformClock.monotonicMs();
    vi.advanceTimersByTime(250);
    expect(platformClock.wallMs()).toBe(1_250);
    expect(platformClock.monotonicMs() - before).toBe(250);
  });

  it.each([0, 1, 30_000, 2 ** 31 - 1, 2 ** 31, 40 * DAY_MS, 400 * DAY_MS])(
    'calls back after %i ms, once',
    (delayMs) => {
      const callback = vi.fn();
      platformClock.setTimer(callback, delayMs);
      if (delayMs > 0) vi.advanceTimersByTime(delayMs - 1);
      if (delayMs > 0) expect(callback).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(callback).toHaveBeenCalledTimes(1);
      vi.advanceTimersByTime(500 * DAY_MS);
      expect(callback).toHaveBeenCalledTimes(1);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it('never calls back after it was cancelled, in no part of a long wait', () => {
    for (const afterMs of [0, 10 * DAY_MS, 30 * DAY_MS]) {
      const callback = vi.fn();
      const cancel = platformClock.setTimer(callback, 40 * DAY_MS);
      vi.advanceTimersByTime(afterMs);
      cancel();
      cancel();
      vi.advanceTimersByTime(100 * DAY_MS);
      expect(callback).not.toHaveBeenCalled();
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  it('waits for ever for an endless delay', () => {
    const callback = vi.fn();
    const cancel = platformClock.setTimer(callback, Infinity);
    vi.advanceTimersByTime(100 * DAY_MS);
    expect(callback).not.toHaveBeenCalled();
    cancel();
  });
});

describe('a timer that must not hold the process', () => {
  it('is let go of, the other is not', () => {
    const setTimeoutOf = vi.spyOn(globalThis, 'setTimeout');
    const cancels = [
      platformClock.setTimer(() => undefined, 60_000, { keepAlive: false }),
      platformClock.setTimer(() => undefined, 60_000, { keepAlive: true }),
      platformClock.setTimer(() => undefined, 60_000),
    ];
    const held = setTimeoutOf.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef());
    setTimeoutOf.mockRestore();
    for (const cancel of cancels) cancel();
    expect(held).toEqual([false, true, true]);
  });
});

describe('platformIds', () => {
  it('makes ids of a-z, 0-9 and - that differ', () => {
    const ids = Array.from({ length: 1_000 }, () => platformIds.random());
    expect(new Set(ids).size).toBe(1_000);
    for (const id of ids) expect(id).toMatch(/^[a-z0-9-]{36}$/);
  });
});

describe('platformProcesses', () => {
  it('is one identity for a loaded copy, and another for another copy', async () => {
    const copyUrl = '../src/platform-ports.ts?copy=2';
    const other = (await import(/* @vite-ignore */ copyUrl)) as typeof import('../src/platform-ports.ts');
    const own = platformProcesses.own();
    expect(own.instanceId).toMatch(/^[a-z0-9-]{36}$/);
    expect(platformProcesses.own()).toEqual(own);
    expect(other.platformProcesses.own()).not.toEqual(own);
  });

  it('takes nobody for gone', () => {
    expect(platformProcesses.isGone({ instanceId: 'x', pid: 1 })).toBe(false);
  });

  it('asks for time and chance only when it is asked: a Worker refuses both while modules load', async () => {
    const random = vi.spyOn(crypto, 'randomUUID');
    const now = vi.spyOn(Date, 'now');
    vi.resetModules();
    const copy = await import('../src/index.ts');
    expect(copy.platformProcesses).not.toBe(platformProcesses);
    expect([random.mock.calls, now.mock.calls]).toEqual([[], []]);
    copy.platformProcesses.own();
    expect(random).toHaveBeenCalledTimes(1);
    vi.restoreAllMocks();
  });
});

describe('resolvePorts', () => {
  it('fills what is not given with the platform', () => {
    const platform: Ports = { clock: platformClock, ids: platformIds, processes: platformProcesses };
    expect(resolvePorts()).toEqual(platform);
    expect(resolvePorts({})).toEqual(platform);
    const ids = { random: () => 'id' };
    expect(resolvePorts({ ids })).toEqual({ ...platform, ids });
  });
});
