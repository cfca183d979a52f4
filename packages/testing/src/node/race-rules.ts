/** Rules about processes that work at one moment: what one of them saves the others see, and of those that ask exactly one gets it. */
import type { Checkpoint } from '@lousho/contract';
import { sameJson } from '../conformance/difference.ts';
import { isNothing } from '../conformance/expectations.ts';
import { Mismatch, NotApplicable } from '../conformance/failure.ts';
import type { Need } from '../conformance/rule.ts';
import { approvalRecord, growingRun, sessionRecord } from '../conformance/sample-runs.ts';
import { checkpointsOf, runOfManySizes, type ProcessRule, type ProcessWorld } from './process-world.ts';
import type { StoreProcess } from './store-process.ts';

const ofSharedLeases: Need = {
  claim: 'atomic leases that outlive a process',
  needs: ({ leases, durable }) => leases === 'atomic' && durable !== 'memory',
};
const ofSharedAndStrong: Need = {
  claim: 'strong consistency and durability beyond memory',
  needs: ({ consistency, durable }) => consistency === 'strong' && durable !== 'memory',
};

export const raceRules: readonly ProcessRule[] = [
  {
    id: 'C4',
    name: 'process/visible-in-other-processes',
    rule: 'After `save` resolves, every handle on the same storage loads this checkpoint.',
    ...ofSharedAndStrong,
    async run(world) {
      const processes = await world.startSome(2);
      const states = growingRun(world.now(), 8);
      for (const [index, state] of states.entries()) {
        const writer = processes[index % 2] as StoreProcess;
        await checkpointsOf(writer).save('order-1', state);
        for (const reader of processes)
          await expectLoads(
            reader,
            'order-1',
            state,
            'Is it cached in the process, or written after the promise resolved?',
          );
      }
      const [a, b] = processes.map(checkpointsOf);
      await a?.delete('order-1');
      const left = await b?.load('order-1');
      if (!isNothing(left)) throw new Mismatch(null, left, 'Another process deleted it.');
    },
  },
  {
    id: 'C6',
    name: 'process/one-of-many-whole',
    rule: 'Of saves at one moment one stands, whole; nobody ever loads a mixture.',
    ...ofSharedAndStrong,
    run: watchTwoWriters,
  },
  {
    id: 'L1',
    name: 'process/one-winner',
    rule: 'Of owners that ask at one moment for a free lease, exactly one gets it.',
    ...ofSharedLeases,
    run: (world) =>
      race(world, async ({ store }, index, round) => {
        const lease = await store.checkpoints?.acquireLease?.(`race-${round}`, `owner-${index}`, 60_000);
        return lease !== false;
      }),
  },
  {
    id: 'A8',
    name: 'process/one-process-removed-it',
    rule: '`delete` of an approval gives `true` to exactly one caller, whose call removed it; all others, and an unknown id, get `false`.',
    ...ofSharedAndStrong,
    run: (world) =>
      race(
        world,
        async ({ store }, _index, round) => store.approvals?.delete(`race-${round}`),
        async ({ store }, round) => {
          if (store.approvals === undefined) throw new NotApplicable('the store has no approvals');
          await store.approvals.save(approvalRecord(`race-${round}`, world.now()));
        },
      ),
  },
  {
    id: 'S4',
    name: 'process/one-of-many-wins',
    rule: '`saveIfRevision` stores, and gives `true`, only when the stored revision is `expectedRevision`: of callers that expect the same one, exactly one wins.',
    ...ofSharedAndStrong,
    run: (world) =>
      race(
        world,
        async ({ store }, index, round) =>
          store.sessions?.saveIfRevision(sessionRecord('chat-1', world.now(), { turn: index }), round),
        async ({ store }) => {
          if (store.sessions === undefined) throw new NotApplicable('the store has no sessions');
        },
      ),
  },
];

async function expectLoads(
  reader: StoreProcess,
  id: string,
  expected: Checkpoint,
  hint: string,
): Promise<void> {
  const loaded = await checkpointsOf(reader).load(id);
  if (!sameJson(expected, loaded)) throw new Mismatch(expected, loaded, hint);
}

const RACERS = 4;
const ROUNDS = 40;

/** All processes ask at one moment, round after round: exactly one of them is told `true`, all others `false`. */
async function race(
  world: ProcessWorld,
  ask: (racer: StoreProcess, index: number, round: number) => Promise<unknown>,
  prepare: (racer: StoreProcess, round: number) => Promise<void> = async () => undefined,
): Promise<void> {
  const racers = await world.startSome(RACERS);
  for (let round = 0; round < ROUNDS; round += 1) {
    await prepare(racers[round % RACERS] as StoreProcess, round);
    const answers = await Promise.all(racers.map((racer, index) => ask(racer, index, round)));
    const winners = answers.filter((answer) => answer === true).length;
    const losers = answers.filter((answer) => answer === false).length;
    if (winners !== 1 || losers !== RACERS - 1)
      throw new Mismatch(
        { true: 1, false: RACERS - 1 },
        { true: winners, false: losers, round: round + 1 },
        'A check and a write in two steps hold within one process only: let the database, or the file system, decide.',
      );
  }
}

const LOADS = 60;
/** Each writer has to get so far while the other one writes too. */
const SAVES = 3;
/** A save waits for those of the other process, and for the disk. This long it never does. */
const SAVES_WITHIN_MS = 60_000;

/** Two processes save one run all the time; a third looks. */
async function watchTwoWriters(world: ProcessWorld): Promise<void> {
  const [one, two, reader] = await world.startSome(3);
  if (one === undefined || two === undefined || reader === undefined)
    throw new Error('Invariant: three processes were started.');
  const states = runOfManySizes(world.now());
  const loops = [one, two].map((writer, index) =>
    writer.saveOn({ id: 'order-1', states, firstNumber: 0, mark: `${index}-` }),
  );
  await Promise.all(loops.map((loop) => loop.reached(0)));
  const deadlineMs = world.nowMs() + SAVES_WITHIN_MS;
  for (let load = 0; load < LOADS || loops.some(({ acknowledged }) => acknowledged < SAVES); load += 1) {
    const loaded = await checkpointsOf(reader).load('order-1');
    const number = Number(/^[01]-(\d+)$/.exec(loaded?.traceparent ?? '')?.[1]);
    const written = { ...states[number % states.length], traceparent: loaded?.traceparent };
    if (isNothing(loaded) || !sameJson(written, loaded))
      throw new Mismatch(
        'one of the saves, whole',
        loaded,
        'Two processes must not write into one record at once.',
      );
    for (const { failure } of loops) if (failure !== undefined) throw failure as Error;
    if (world.nowMs() > deadlineMs)
      throw new Mismatch(
        `${SAVES} saves of each process within ${SAVES_WITHIN_MS / 1_000} s`,
        loops.map(({ acknowledged }) => acknowledged),
        'One of them keeps the other one waiting all the time, or its saves fail.',
      );
  }
}
