/** When a process is to die: at a line of its log and a little later, or while it opens the store. */
import type { Random } from './random.ts';
import type { WorkerProcess } from './worker-process.ts';

export type KillMoment =
  | { readonly type: 'opening'; readonly delayMs: number }
  | { readonly type: 'working'; readonly lineCount: number; readonly delayMs: number };

/** A process needs about as long to open the store and to find its run. */
const LONGEST_OPENING_MS = 20;
/** About three steps of a run with parallel calls. */
const MOST_LINES = 60;

export function chooseMoment(random: Random): KillMoment {
  if (random.next() < 0.05) return { type: 'opening', delayMs: random.next() * LONGEST_OPENING_MS };
  // Half of them hit between two writes, the others in the middle of a model call, a tool or a sync.
  const delayMs = random.pick([0, random.next() * 0.3, random.next() * 1, random.next() * 5]);
  return { type: 'working', lineCount: 1 + random.below(MOST_LINES), delayMs };
}

/** From `begin` on. Resolves when the process was killed at that moment. */
export function killAt(worker: WorkerProcess, moment: KillMoment): Promise<void> {
  let lineCount = 0;
  if (moment.type === 'opening') setTimeout(() => void worker.kill(), moment.delayMs);
  else
    worker.onLine(() => {
      lineCount += 1;
      if (lineCount !== moment.lineCount) return;
      waitExactly(moment.delayMs);
      void worker.kill();
    });
  return worker.exited;
}

/** Timers count whole milliseconds. */
function waitExactly(delayMs: number): void {
  const endMs = performance.now() + delayMs;
  while (performance.now() < endMs);
}
