/** Why a run stops, and who hears of it. */
import { manualClock } from '@lousho/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { RunStop, unlessAborted } from '../src/run-stop.ts';

describe('the signal that tools get', () => {
  const warnings: Error[] = [];
  const note = (warning: Error): number => warnings.push(warning);
  afterEach(() => process.off('warning', note));

  it('takes a listener of every tool without a warning of a leak', async () => {
    process.on('warning', note);
    const stop = new RunStop(manualClock());
    for (let tool = 0; tool < 100; tool += 1) {
      stop.signal.addEventListener('abort', () => undefined);
      void unlessAborted(stop.abandoned, new Promise(() => undefined));
    }
    // Warnings are told of in the next turn.
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toEqual([]);
  });

  it('aborts at once when a person stops the run; what runs is given up a second later', async () => {
    const clock = manualClock();
    const stop = new RunStop(clock);
    stop.abort('enough');
    expect([stop.signal.aborted, stop.abandoned.aborted]).toEqual([true, false]);
    await clock.advance(1_000);
    expect(stop.abandoned.aborted).toBe(true);
    expect(stop.current).toEqual({ type: 'abort', reason: 'enough' });
  });

  it('does not abort for a shutdown before its time is over', async () => {
    const clock = manualClock();
    const stop = new RunStop(clock);
    stop.shutDown(5_000);
    expect([stop.requested.aborted, stop.signal.aborted]).toEqual([true, false]);
    await clock.advance(5_000);
    expect([stop.signal.aborted, stop.abandoned.aborted]).toEqual([true, true]);
  });

  it('follows a signal of the caller until it is disposed of', () => {
    const caller = new AbortController();
    const stop = new RunStop(manualClock());
    stop.follow(caller.signal);
    stop.dispose();
    caller.abort();
    expect(stop.current).toBeUndefined();
  });
});

describe('unlessAborted', () => {
  it('gives what the promise gives, also an error', async () => {
    const { signal } = new AbortController();
    await expect(unlessAborted(signal, Promise.resolve(1))).resolves.toBe(1);
    await expect(unlessAborted(signal, Promise.reject(new Error('no')))).rejects.toThrow('no');
  });

  it('gives all who wait for one signal nothing at its abort, and drops what comes later', async () => {
    const controller = new AbortController();
    const late = new Promise(() => undefined);
    const waiting = [unlessAborted(controller.signal, late), unlessAborted(controller.signal, late)];
    controller.abort();
    await expect(Promise.all(waiting)).resolves.toEqual([undefined, undefined]);
    await expect(unlessAborted(controller.signal, late)).resolves.toBeUndefined();
  });
});
