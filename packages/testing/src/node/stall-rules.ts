/** Rules about a process that stands still (a stopped machine, a long collection of garbage) while another takes its lease over. */
import type { Checkpoint } from '@lousho/contract';
import { sameJson } from '../conformance/difference.ts';
import { awaitedLater, fenceOf, isNamedError, outcomeOf, savesIn } from '../conformance/expectations.ts';
import { Mismatch, NotApplicable } from '../conformance/failure.ts';
import type { Need } from '../conformance/rule.ts';
import { checkpointsOf, runOfManySizes, type ProcessRule, type ProcessWorld } from './process-world.ts';
import type { RunningLoop, StoreProcess } from './store-process.ts';

const ofSharedLeases: Need = {
  claim: 'atomic leases that outlive a process',
  needs: ({ leases, durable }) => leases === 'atomic' && durable !== 'memory',
};

export const stallRules: readonly ProcessRule[] = [
  {
    id: 'F2',
    name: 'process/stalled-holder-is-refused',
    rule: '`saveIfLeased` of any other owner gives `false` and leaves no trace: not in the checkpoint, not in the history, not in the list.',
    ...ofSharedLeases,
    run: (world) => stallOften(world, expectNoTrace),
  },
  {
    id: 'F3',
    name: 'process/no-late-save-becomes-visible',
    rule: '`saveIfLeased` checks and writes in one atomic step: once a take-over has resolved, no save of the former holder becomes visible, also none that had begun.',
    ...ofSharedLeases,
    run: (world) => stallOften(world, expectSuccessorOnTop),
  },
];

const STALLS = 3;
const TTL_MS = 1_000;
const TOLERANCE_MS = 10_000;
const REFUSED_WITHIN_MS = 5_000;
/** So often the process may have stopped inside a lock of the store, where nobody can take anything over. */
const MOST_ATTEMPTS = 40;
/** A write of another process that takes longer waits for such a lock. */
const LOCKED_AFTER_MS = 500;
/** First the process saves without a break, then it spends most of its time outside of saves. */
const ATTEMPTS_WITHOUT_PAUSE = 3;
const PAUSE_MS = 25;

interface AfterStall {
  readonly id: string;
  /** Of the process that stood still and goes on now. */
  readonly loop: RunningLoop;
  readonly successor: StoreProcess;
  /** What the successor saved before the other one went on. */
  readonly last: Checkpoint;
}

async function expectNoTrace(found: AfterStall): Promise<void> {
  const { loop, successor, id } = found;
  const refused = new Set(loop.refused.map((save) => `stalled ${save}`));
  const saves = await savesIn(checkpointsOf(successor), id);
  const traces = saves.map(({ traceparent = '' }) => traceparent).filter((mark) => refused.has(mark));
  if (traces.length > 0)
    throw new Mismatch(
      'no trace of refused saves in the history',
      traces,
      'What is refused must be nowhere: check the lease in the step that writes.',
    );
}

async function expectSuccessorOnTop({ successor, id, last }: AfterStall): Promise<void> {
  const stored = await checkpointsOf(successor).load(id);
  if (sameJson(last, stored)) return;
  throw new Mismatch(
    last.traceparent,
    stored?.traceparent ?? null,
    'The process stood still between its check of the lease and its write, and wrote when it went on.',
  );
}

async function stallOften(world: ProcessWorld, judge: (found: AfterStall) => Promise<void>): Promise<void> {
  if (process.platform === 'win32') throw new NotApplicable('Windows cannot stop a process');
  const successor = await world.start();
  if (checkpointsOf(successor).acquireLease === undefined) throw new NotApplicable('the store has no leases');
  let stalls = 0;
  for (let attempt = 0; stalls < STALLS; attempt += 1) {
    if (attempt === MOST_ATTEMPTS)
      throw new Mismatch(
        'a lease that can be taken over while its holder stands still',
        `it could not be written in ${attempt - stalls} of ${attempt} attempts`,
        'Is a lock held for much longer than a write takes?',
      );
    const stalled = await world.start();
    const found = await stall(world, stalled, successor, attempt);
    if (found !== undefined) {
      stalls += 1;
      await untilRefused(world, found.loop);
      await judge(found);
    }
    await stalled.kill();
  }
}

/** The process goes on and saves again and again, and each of these saves is refused. */
async function untilRefused(world: ProcessWorld, loop: RunningLoop): Promise<void> {
  let isOver = false;
  const over = loop.ended.then(() => (isOver = true));
  await Promise.race([over, world.elapse(REFUSED_WITHIN_MS)]);
  if (!isOver || loop.refused.length === 0)
    throw new Mismatch(
      'each save of the former holder is refused',
      `${loop.refused.length} were refused, and it still saves`,
      'Compare owner and fence with the lease as it is stored now, not as this process remembers it.',
    );
}

/** `undefined` when the process stopped inside a lock of the store. */
async function stall(
  world: ProcessWorld,
  stalled: StoreProcess,
  successor: StoreProcess,
  attempt: number,
): Promise<AfterStall | undefined> {
  const id = `order-${attempt}`;
  const states = runOfManySizes(world.now());
  const checkpoints = checkpointsOf(successor);
  const lease = await checkpointsOf(stalled).acquireLease?.(id, 'stalled', TTL_MS);
  if (lease === undefined || lease === false)
    throw new Mismatch('a lease', lease, 'A free lease must be given.');
  const loop = stalled.saveOn({
    ...{ id, states, firstNumber: 0, mark: 'stalled ' },
    lease: { owner: 'stalled', fence: fenceOf(lease) },
    pauseMs: attempt < ATTEMPTS_WITHOUT_PAUSE ? 0 : PAUSE_MS,
  });
  await loop.reached(1 + world.random.below(4));
  await world.elapse(world.random.below(4));
  stalled.stop();
  try {
    if (await isLocked(world, successor, states[0] as Checkpoint)) return undefined;
    const ask = () => outcomeOf(async () => checkpoints.acquireLease?.(id, 'successor', 60_000));
    const { value: taken, error } = await world.poll(
      ask,
      (answer) => answer.error !== undefined || answer.value !== false,
      2 * TTL_MS + TOLERANCE_MS,
    );
    if (error !== undefined && isNamedError(error)) return undefined;
    if (error instanceof Error) throw error;
    if (taken === false)
      throw new Mismatch('a lease', taken, 'Nobody renewed it for more than two periods (L3).');
    const last = { ...(states[0] as Checkpoint), traceparent: 'successor' };
    const fence = fenceOf(taken as Parameters<typeof fenceOf>[0]);
    const saved = await checkpoints.saveIfLeased?.(id, last, 'successor', fence);
    if (saved !== true) throw new Mismatch(true, saved, 'Who took the lease over can save.');
    return { id, loop, successor, last };
  } finally {
    stalled.continue();
  }
}

/** Whether a save of another run has to wait: the process that stands still holds a lock of the whole store. */
async function isLocked(world: ProcessWorld, writer: StoreProcess, state: Checkpoint): Promise<boolean> {
  const probe = awaitedLater(checkpointsOf(writer).save('probe', state));
  let isSaved = false;
  const saved = probe.then(() => (isSaved = true));
  await Promise.race([awaitedLater(saved), world.elapse(LOCKED_AFTER_MS)]);
  return !isSaved;
}
