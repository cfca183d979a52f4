/** Ports for a test: a clock moved by hand, counted ids, and a process of its own. */
import type { Ports } from '@lousho/contract';
import type { ManualClock } from './manual-clock.ts';

/** How many ports were made so far: each is another process and has ids that no other one gives out. */
let processCount = 0;

/** Ports for a test: `clock`, counted ids, a process of its own. Two calls with one clock are two processes on one machine. */
export function testPorts(clock: ManualClock): Ports {
  processCount += 1;
  const processNumber = base36(processCount, 3);
  let idCount = 0;
  return {
    clock,
    // Different in the first 8 characters: keys made from an id hold no more of it.
    ids: { random: () => `t${processNumber}-${base36((idCount += 1), 4)}` },
    processes: { own: () => ({ instanceId: `test-process-${processNumber}` }), isGone: () => false },
  };
}

function base36(count: number, digits: number): string {
  return count.toString(36).padStart(digits, '0');
}
