// A process that saves: one run an id, step after step, and writes down what it asked for and what it was told.
//
// Started with one argument in JSON: `{ kind, folder, fault, logPath, ids, steps, staysIdle, measuresNoCalls }`. It goes on from what is stored. `steps`: as
// many as it adds, `null` for as long as it lives. `staysIdle`: it does not end afterwards. `measuresNoCalls`: no call seems slow to the store.
import { platformClock } from '@lousho/contract';
import { openLog } from './step-log.mjs';
import { openStore } from './open-store.mjs';
import { firstStep, nextStep } from './stepped-run.mjs';

const { kind, folder, fault, logPath, ids, steps, staysIdle, measuresNoCalls } = JSON.parse(process.argv[2]);
const ports = measuresNoCalls ? { clock: { ...platformClock, monotonicMs: () => 0 } } : undefined;
const log = openLog(logPath);
// One that does not end by itself ends with its parent.
if (staysIdle || steps === null) process.stdin.on('end', () => process.exit()).resume();
/** Of one step, before the process gives up. */
const MOST_ATTEMPTS = 3;

try {
  const store = openStore({ kind, folder, fault, ports });
  const owner = `saver-${process.pid}`;
  await Promise.all(ids.map((id) => saveSteps(store.checkpoints, id, owner)));
  log.write({ kind: 'done' });
  if (staysIdle) setInterval(() => undefined, 60_000);
  else await store.close();
} catch (error) {
  log.write({ kind: 'failed', code: error.code ?? String(error) });
}

async function saveSteps(checkpoints, id, owner) {
  const lease = await checkpoints.acquireLease(id, owner, 30_000);
  if (lease === false) throw new Error(`the lease of ${id} is not free`);
  let run = await checkpoints.load(id);
  const last = steps === null ? Infinity : (run?.stepIndex ?? 0) + steps;
  while ((run?.stepIndex ?? 0) < last) {
    const next = nextStep(run ?? firstStep());
    await save(checkpoints, { id, next, owner, fence: lease.fence });
    run = next;
  }
}

async function save(checkpoints, { id, next, owner, fence }) {
  const step = next.stepIndex;
  for (let attempt = 1; ; attempt += 1) {
    log.write({ kind: 'asked', id, step });
    try {
      if (!(await checkpoints.saveIfLeased(id, next, owner, fence))) throw new Error('refused');
      log.write({ kind: 'acknowledged', id, step });
      return;
    } catch (error) {
      log.write({ kind: 'rejected', id, step, code: error.code ?? String(error) });
      if (attempt === MOST_ATTEMPTS) throw error;
      const found = await checkpoints.load(id);
      log.write({ kind: 'found', id, step: found?.stepIndex ?? 0 });
    }
  }
}
