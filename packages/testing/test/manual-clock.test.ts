import fc from 'fast-check';
import { expect, it } from 'vitest';
import { manualClock, testPorts } from '../src/index.ts';

it('moves both clocks by what it is told and by nothing else', async () => {
  const clock = manualClock(1_000);
  const monotonicStartMs = clock.monotonicMs();
  await clock.advance(250);
  expect(clock.wallMs()).toBe(1_250);
  expect(clock.monotonicMs()).toBe(monotonicStartMs + 250);
});

it('jumps the wall clock alone, also back, and runs no timer for it', async () => {
  const clock = manualClock(1_000);
  const monotonicStartMs = clock.monotonicMs();
  const ran: string[] = [];
  clock.setTimer(() => ran.push('timer'), 500);
  clock.jumpWall(-600);
  expect(clock.wallMs()).toBe(400);
  clock.jumpWall(10_000);
  await clock.advance(499);
  expect(ran).toEqual([]);
  await clock.advance(1);
  expect(ran).toEqual(['timer']);
  expect(clock.wallMs()).toBe(10_900);
  expect(clock.monotonicMs()).toBe(monotonicStartMs + 500);
});

it('runs timers in the order in which they fall due, each at its own time', async () => {
  const clock = manualClock(0);
  const ran: [string, number][] = [];
  const note = (name: string) => (): void => void ran.push([name, clock.wallMs()]);
  clock.setTimer(note('late'), 30);
  clock.setTimer(note('early'), 10);
  clock.setTimer(note('first of two'), 20);
  clock.setTimer(note('second of two'), 20);
  clock.setTimer(note('too late'), 31);
  await clock.advance(30);
  expect(ran).toEqual([
    ['early', 10],
    ['first of two', 20],
    ['second of two', 20],
    ['late', 30],
  ]);
});

it('runs a timer that a timer sets when it falls due in the same stretch', async () => {
  const clock = manualClock(0);
  const beats: number[] = [];
  const beat = (): void => {
    beats.push(clock.wallMs());
    clock.setTimer(beat, 10);
  };
  clock.setTimer(beat, 10);
  await clock.advance(35);
  expect(beats).toEqual([10, 20, 30]);
});

it('lets what a timer began get as far as it can before time goes on', async () => {
  const clock = manualClock(0);
  const log: string[] = [];
  clock.setTimer(() => {
    void (async () => {
      for (let depth = 0; depth < 200; depth += 1) await Promise.resolve();
      for (let depth = 0; depth < 5; depth += 1) await new Promise((resolve) => setImmediate(resolve));
      log.push(`first ended at ${clock.wallMs()}`);
      clock.setTimer(() => log.push(`its timer at ${clock.wallMs()}`), 5);
    })();
  }, 10);
  clock.setTimer(() => log.push(`second at ${clock.wallMs()}`), 20);
  await clock.advance(20);
  expect(log).toEqual(['first ended at 10', 'its timer at 15', 'second at 20']);
});

it('sees timers that work under way is about to set', async () => {
  const clock = manualClock(0);
  const ran: string[] = [];
  void Promise.resolve()
    .then(() => undefined)
    .then(() => clock.setTimer(() => ran.push('timer'), 10));
  await clock.advance(10);
  expect(ran).toEqual(['timer']);
});

it('does not run a cancelled timer, also when another one cancels it', async () => {
  const clock = manualClock(0);
  const ran: string[] = [];
  clock.setTimer(() => ran.push('cancelled at once'), 10)();
  const cancel = clock.setTimer(() => ran.push('cancelled by a timer'), 20);
  clock.setTimer(cancel, 20 - 1);
  await clock.advance(100);
  expect(ran).toEqual([]);
});

it('takes a delay that is negative or no number as none', async () => {
  const clock = manualClock(0);
  const ran: number[] = [];
  clock.setTimer(() => ran.push(clock.wallMs()), -5);
  clock.setTimer(() => ran.push(clock.wallMs()), Number.NaN);
  await clock.advance(0);
  expect(ran).toEqual([0, 0]);
});

it('works one advance after the other, and goes on after a timer that threw', async () => {
  const clock = manualClock(0);
  clock.setTimer(() => {
    throw new Error('boom');
  }, 5);
  const first = clock.advance(10);
  const second = clock.advance(10);
  await expect(first).rejects.toThrow('boom');
  await second;
  expect(clock.wallMs()).toBe(15);
});

it('adds up advances that are under way together', async () => {
  const clock = manualClock(0);
  clock.setTimer(() => undefined, 5);
  await Promise.all([clock.advance(10), clock.advance(10)]);
  expect(clock.wallMs()).toBe(20);
});

it('refuses to go back', () => {
  expect(() => manualClock().advance(-1)).toThrow(expect.objectContaining({ code: 'LOUSHO_CONFIG_INVALID' }));
});

it('gives ports whose ids differ from those of every other process in their first 8 characters', () => {
  const clock = manualClock();
  const heads = new Set<string>();
  for (const ports of [testPorts(clock), testPorts(clock), testPorts(clock)]) {
    for (let count = 0; count < 100; count += 1) {
      const id = ports.ids.random();
      expect(id).toMatch(/^[a-z0-9-]+$/);
      heads.add(id.replaceAll('-', '').slice(0, 8));
    }
  }
  expect(heads.size).toBe(300);
});

it('gives each ports a process of its own and never says that one is gone', () => {
  const clock = manualClock();
  const [one, other] = [testPorts(clock), testPorts(clock)];
  expect(one.clock).toBe(clock);
  expect(one.processes.own().instanceId).not.toBe(other.processes.own().instanceId);
  expect(one.processes.isGone(other.processes.own())).toBe(false);
});

it('runs any set of timers in the order of their times, each once, and none that was cancelled', async () => {
  const timer = fc.record({ delayMs: fc.nat(50), isCancelled: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(timer), fc.array(fc.nat(30)), async (timers, advances) => {
      const clock = manualClock(0);
      const ran: { readonly index: number; readonly atMs: number }[] = [];
      timers.forEach(({ delayMs, isCancelled }, index) => {
        const cancel = clock.setTimer(() => ran.push({ index, atMs: clock.wallMs() }), delayMs);
        if (isCancelled) cancel();
      });
      for (const ms of advances) await clock.advance(ms);
      const passedMs = advances.reduce((sum, ms) => sum + ms, 0);
      const due = timers
        .map(({ delayMs, isCancelled }, index) => ({ index, atMs: delayMs, isCancelled }))
        .filter(({ atMs, isCancelled }) => !isCancelled && advances.length > 0 && atMs <= passedMs)
        .map(({ index, atMs }) => ({ index, atMs }));
      // The sort is stable: timers of one time keep the order in which they were set.
      expect(ran).toEqual(due.sort((a, b) => a.atMs - b.atMs));
    }),
  );
});
