/** Rules about processes that are killed: at many moments of a loop of saves, and while they hold a lease. */
import type { Checkpoint, CheckpointHistoryEntry } from '@lousho/contract';
import { firstDifference } from '../conformance/difference.ts';
import { fenceOf, isNothing, outcomeOf, savesIn } from '../conformance/expectations.ts';
import { Mismatch, NotApplicable } from '../conformance/failure.ts';
import { ofDurable, ofDurableLeases } from '../conformance/rule.ts';
import { checkpointsOf, runOfManySizes, type ProcessRule, type ProcessWorld } from './process-world.ts';
import type { StoreProcess } from './store-process.ts';

export const killRules: readonly ProcessRule[] = [
  {
    id: 'C7',
    name: 'process/acknowledged-survives-a-kill',
    rule: 'A save that resolved survives what `claims.durable` names.',
    ...ofDurable,
    run: (world) => killOften(world, expectNothingLost),
  },
  {
    id: 'C8',
    name: 'process/cut-off-save-is-before-or-after',
    rule: 'A save that a crash cuts off leaves the state before it or the state after it.',
    ...ofDurable,
    run: (world) => killOften(world, expectBeforeOrAfter),
  },
  {
    id: 'L3',
    name: 'process/killed-holder-is-replaced',
    rule: 'A lease that is not renewed goes to another owner that asks a whole lease period after its expiry, or later.',
    ...ofDurableLeases,
    run: replaceKilledHolder,
  },
];

const KILLS = 10;
/** Saves between two kills at most. */
const MOST_SAVES = 6;
const ID = 'order-1';
const TORN = 'Write aside and rename, append and cut off what is torn, or use a transaction.';

interface AfterKill {
  /** Number of the last save that the killed process had reported as done. */
  readonly acknowledged: number;
  readonly stored: Checkpoint | null;
  /** Newest first; some entries are enough. */
  readonly history: readonly CheckpointHistoryEntry[];
  /** Save n as it was given. */
  written(save: number): Checkpoint;
}

function expectNothingLost({ acknowledged, stored }: AfterKill): void {
  const number = numberOf(stored);
  if (number >= acknowledged) return;
  throw new Mismatch(
    `save ${acknowledged}, which had resolved, or the one behind it`,
    stored === null ? null : `save ${number}`,
    'Resolve a save only when the write has left the process: in the file, not in a buffer of this process.',
  );
}

function expectBeforeOrAfter(found: AfterKill): void {
  const { acknowledged, stored, history } = found;
  const number = numberOf(stored);
  if (number > acknowledged + 1)
    throw new Mismatch(`at most save ${acknowledged + 1}`, `save ${number}`, TORN);
  const expectWhole = (save: number, checkpoint: Checkpoint, where: string): void => {
    const differsAt = firstDifference(found.written(save), checkpoint)?.path;
    if (differsAt !== undefined)
      throw new Mismatch(
        `save ${save} as it was given, ${where}`,
        { save: numberOf(checkpoint), differsAt },
        TORN,
      );
  };
  if (stored !== null) expectWhole(number, stored, 'as the checkpoint');
  // Write a checkpoint and its history entry in one step: then they agree after any kill.
  for (const [index, { checkpoint }] of history.entries())
    expectWhole(number - index, checkpoint, `as entry ${index} of the history`);
}

/** Each process goes on where the killed one was, as real ones do. */
async function killOften(world: ProcessWorld, judge: (found: AfterKill) => void): Promise<void> {
  const states = runOfManySizes(world.now());
  const written = (save: number): Checkpoint =>
    ({ ...states[save % states.length], traceparent: `save ${save}` }) as Checkpoint;
  let writer = await world.start();
  let acknowledged = -1;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const loop = writer.saveOn({ id: ID, states, firstNumber: acknowledged + 1, mark: 'save ' });
    await loop.reached(acknowledged + 1 + world.random.below(MOST_SAVES));
    // Not right behind an acknowledgement each time: somewhere in the next save.
    await world.elapse(world.random.below(4));
    await writer.kill();
    acknowledged = loop.acknowledged;
    writer = await world.start();
    const found = await afterKill(world, writer);
    judge({ ...found, acknowledged, written });
    acknowledged = numberOf(found.stored);
  }
}

async function afterKill(
  world: ProcessWorld,
  reader: StoreProcess,
): Promise<Pick<AfterKill, 'stored' | 'history'>> {
  const checkpoints = checkpointsOf(reader);
  const { value, error } = await outcomeOf(async () => checkpoints.load(ID));
  if (error !== undefined)
    throw new Mismatch('the state before or after the save that was cut off', error, TORN);
  const stored = value as Checkpoint | null | undefined;
  const hasHistory = world.claims.history && checkpoints.history !== undefined;
  const history = hasHistory ? await checkpoints.history?.(ID, { limit: 5 }) : [];
  return { stored: isNothing(stored) ? null : stored, history: history ?? [] };
}

/** -1 for none at all. */
function numberOf(checkpoint: Checkpoint | null): number {
  const number = /^save (\d+)$/.exec(checkpoint?.traceparent ?? '')?.[1];
  return number === undefined ? -1 : Number(number);
}

/** Short, so that nobody waits for long; and long enough for a machine that is busy. */
const TTL_MS = 1_000;
/** How much longer than promised it may take on a machine that has other things to do. */
const TOLERANCE_MS = 10_000;

async function replaceKilledHolder(world: ProcessWorld): Promise<void> {
  const [holder, other] = await world.startSome(2);
  if (holder === undefined || other === undefined) throw new Error('Invariant: two processes were started.');
  const [held, asking] = [checkpointsOf(holder), checkpointsOf(other)];
  if (held.acquireLease === undefined || asking.saveIfLeased === undefined)
    throw new NotApplicable('the store has no leases');
  const state = runOfManySizes(world.now())[0] as Checkpoint;
  const lease = await held.acquireLease(ID, 'killed', TTL_MS);
  if (lease === false) throw new Mismatch('a lease', lease, 'A free lease must be given.');
  await held.saveIfLeased?.(ID, state, 'killed', fenceOf(lease));
  await holder.kill();
  const taken = await world.poll(
    async () => asking.acquireLease?.(ID, 'successor', TTL_MS),
    (value) => value !== false,
    2 * TTL_MS + TOLERANCE_MS,
  );
  if (taken === false || taken === undefined)
    throw new Mismatch(
      `the lease of a killed process within two periods of ${TTL_MS} ms`,
      `none within ${(2 * TTL_MS + TOLERANCE_MS) / 1_000} s`,
      'A lease that nobody renews must end by its time, whatever became of its holder.',
    );
  const saved = await asking.saveIfLeased(
    ID,
    { ...state, traceparent: 'successor' },
    'successor',
    fenceOf(taken),
  );
  if (!saved) throw new Mismatch(true, saved, 'Who took the lease over can save.');
  const saves = await savesIn(asking, ID);
  if (world.claims.history && saves.length !== 2)
    throw new Mismatch(
      '2 entries in the history',
      saves.length,
      'What the killed process had saved must still be there.',
    );
}
