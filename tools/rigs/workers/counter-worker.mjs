// A process that counts in several stores at once: takes the lease of the counter, adds one by fenced saves, gives it back now and then.
//
// Started with one argument in JSON: `{ worker, logPath, ttlMs, counters: [{ kind, folder, fault }] }`. Ends when it is killed.
import { openLog } from './step-log.mjs';
import { openStore } from './open-store.mjs';
import { firstStep } from './stepped-run.mjs';

const COUNTER = 'counter';
/** Saves under one lease, before it is given back. */
const MOST_SAVES = 40;

const { worker, logPath, ttlMs, counters } = JSON.parse(process.argv[2]);
const log = openLog(logPath);
// Without its parent nobody wants to know how it goes on.
process.on('disconnect', () => process.exit());
await Promise.all(counters.map((counter) => countForEver(counter)));

async function countForEver(counter) {
  const { checkpoints } = openStore(counter);
  for (let turn = 0; ; turn += 1) {
    const owner = `${worker}-${turn}`;
    const write = (line) => log.write({ counter: counter.kind, owner, ...line });
    const lease = await checkpoints.acquireLease(COUNTER, owner, ttlMs);
    if (lease === false) {
      await pause(10);
      continue;
    }
    write({ kind: 'taken', fence: lease.fence });
    await countUnder(lease, { checkpoints, owner, write });
    await checkpoints.releaseLease(COUNTER, owner, lease.fence);
  }
}

async function countUnder({ fence }, { checkpoints, owner, write }) {
  write({ kind: 'asking' });
  const stored = await checkpoints.load(COUNTER);
  write({ kind: 'found', step: stored?.stepIndex ?? 0 });
  let run = stored ?? firstStep();
  let renewAtMs = performance.now() + ttlMs / 3;
  for (let saves = 0; saves < MOST_SAVES; saves += 1) {
    run = { ...run, stepIndex: run.stepIndex + 1 };
    if (!(await checkpoints.saveIfLeased(COUNTER, run, owner, fence))) {
      write({ kind: 'refused', step: run.stepIndex });
      return;
    }
    write({ kind: 'acknowledged', step: run.stepIndex, fence });
    // As a run does between its saves. Whoever stops a process in the middle of a SQLite transaction stops all others too.
    await pause(2);
    if (performance.now() < renewAtMs) continue;
    if (!(await checkpoints.renewLease(COUNTER, owner, ttlMs, fence))) {
      write({ kind: 'refused' });
      return;
    }
    renewAtMs = performance.now() + ttlMs / 3;
  }
}

function pause(durationMs) {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}
