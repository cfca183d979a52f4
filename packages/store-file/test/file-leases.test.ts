/** Who may execute a run: take-over by time with clocks that disagree, at once with proof, and never twice at one time. */
import fs from 'node:fs';
import path from 'node:path';
import type { FullCheckpointStore, Lease, LeaseRecord, Ports, ProcessFacts } from '@lousho/contract';
import { manualClock, testPorts, type ManualClock } from '@lousho/testing';
import { expect, it } from 'vitest';
import type { FileStoreOptions } from '../src/index.ts';
import { nodeFileSystem } from '../src/file-system.ts';
import { inProgress, nextStep } from './support/fixtures.ts';
import { leaseFile } from './support/raw-files.ts';
import { openOn, openStore, tempFolder } from './support/temp-store.ts';

const TTL_MS = 30_000;

/** Two processes on one file, on one clock unless told otherwise. */
function twoProcesses(clock: ManualClock = manualClock(), otherClock: ManualClock = clock) {
  const file = tempFolder();
  const open = (ports: Partial<Ports>): FullCheckpointStore => openStore(file, { ports }).checkpoints;
  return { file, clock, one: open(testPorts(clock)), two: open(testPorts(otherClock)) };
}

function fenceOf(lease: Lease | false): number {
  if (lease === false) throw new Error('the lease was free');
  return lease.fence;
}

/** The same time, with another idea of what the wall clock shows. */
function skewed(clock: ManualClock, skewMs: number): ManualClock {
  return { ...clock, wallMs: () => clock.wallMs() + skewMs };
}

it('gives a run to one of many owners', async () => {
  const { one, two } = twoProcesses();
  const takers = Array.from({ length: 50 }, (_, n) =>
    (n % 2 === 0 ? one : two).acquireLease('order-7', `owner-${n}`, TTL_MS),
  );
  expect((await Promise.all(takers)).filter((lease) => lease !== false)).toHaveLength(1);
  expect(await two.acquireLease('order-8', 'owner-9', TTL_MS)).toEqual({ fence: 1 });
});

it('waits one more period after the expiry, because clocks may disagree', async () => {
  const { clock, one, two } = twoProcesses();
  await one.acquireLease('order-7', 'a', TTL_MS);
  await clock.advance(2 * TTL_MS - 1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toEqual({ fence: 2 });
});

it('waits as long as the lease that it finds says, not as long as its own', async () => {
  const { clock, one, two } = twoProcesses();
  await one.acquireLease('order-7', 'a', 50);
  await clock.advance(99);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).not.toBe(false);
});

it.each([-49_000, -20_000, 20_000, 49_000])(
  'does not take a run over whose holder lives, with clocks %d ms apart',
  async (skewMs) => {
    const clock = manualClock();
    const { one, two } = twoProcesses(clock, skewed(clock, skewMs));
    await one.acquireLease('order-7', 'a', TTL_MS);
    for (let beat = 0; beat < 12; beat += 1) {
      await clock.advance(10_000);
      expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
      expect(await one.renewLease('order-7', 'a', TTL_MS)).toBe(true);
    }
  },
);

it('takes over what has not moved for two periods when the holder wrote an expiry that never comes', async () => {
  const clock = manualClock();
  const { one, two } = twoProcesses(skewed(clock, 24 * 60 * 60_000), clock);
  await one.acquireLease('order-7', 'a', TTL_MS);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(TTL_MS);
  expect(await one.renewLease('order-7', 'a', TTL_MS)).toBe(true);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(2 * TTL_MS - 1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toEqual({ fence: 2 });
});

it('gives the holder one more period when it slept itself', async () => {
  const { clock, one, two } = twoProcesses();
  await one.acquireLease('order-7', 'a', TTL_MS);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  // The machine sleeps: the wall clock goes on, and no timer runs.
  clock.jumpWall(10 * TTL_MS);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(TTL_MS - 1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toEqual({ fence: 2 });
});

it('notices its own sleep from listing runs too, before it has met any lease', async () => {
  const { clock, one, two } = twoProcesses();
  await one.acquireLease('order-7', 'a', TTL_MS);
  await two.listHeaders();
  clock.jumpWall(10 * TTL_MS);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await clock.advance(TTL_MS);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toEqual({ fence: 2 });
});

it('is renewed by its owner alone, also after it expired, until somebody takes it over', async () => {
  const { clock, one, two } = twoProcesses();
  const fence = fenceOf(await one.acquireLease('order-7', 'a', TTL_MS));
  expect(await two.renewLease('order-7', 'b', TTL_MS)).toBe(false);
  expect(await one.renewLease('order-7', 'a', TTL_MS, fence + 1)).toBe(false);
  await clock.advance(5 * TTL_MS);
  expect(await one.renewLease('order-7', 'a', TTL_MS, fence)).toBe(true);
  await clock.advance(2 * TTL_MS - 1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  expect(await one.acquireLease('order-7', 'a', TTL_MS)).toEqual({ fence });
  await clock.advance(2 * TTL_MS);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).not.toBe(false);
  expect(await one.renewLease('order-7', 'a', TTL_MS, fence)).toBe(false);
  expect(await one.renewLease('never-leased', 'a', TTL_MS)).toBe(false);
});

it('does not end earlier when the clock of its holder steps back', async () => {
  const clock = manualClock();
  const otherClock = manualClock();
  const { one, two } = twoProcesses(clock, otherClock);
  await one.acquireLease('order-7', 'a', TTL_MS);
  clock.jumpWall(-3_600_000);
  expect(await one.renewLease('order-7', 'a', TTL_MS)).toBe(true);
  await otherClock.advance(TTL_MS + 1);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
});

it('is released by its owner alone, and is then free at once and no longer renewed', async () => {
  const { one, two } = twoProcesses();
  const first = fenceOf(await one.acquireLease('order-7', 'a', TTL_MS));
  await two.releaseLease('order-7', 'b');
  await one.releaseLease('order-7', 'a', 999);
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  await one.releaseLease('order-7', 'a', first);
  expect(await one.renewLease('order-7', 'a', TTL_MS)).toBe(false);
  expect(await one.saveIfLeased('order-7', inProgress(), 'a', first)).toBe(false);
  expect(fenceOf(await two.acquireLease('order-7', 'b', TTL_MS))).toBe(first + 1);
  await one.releaseLease('never-leased', 'a');
});

it('never uses a number again, not after a release, a delete or a prune', async () => {
  const { clock, one, two } = twoProcesses();
  const fences: number[] = [];
  const take = async (): Promise<void> => {
    fences.push(fenceOf(await one.acquireLease('order-7', 'a', TTL_MS)));
    await one.saveIfLeased('order-7', inProgress({ savedAt: new Date(clock.wallMs()).toISOString() }), 'a');
  };
  await take();
  await one.releaseLease('order-7', 'a');
  await take();
  await one.delete('order-7');
  await take();
  await one.releaseLease('order-7', 'a');
  await clock.advance(10 * TTL_MS);
  expect(await two.prune({ olderThanMs: TTL_MS, statuses: ['in-progress'] })).toMatchObject({
    checkpoints: 1,
  });
  await take();
  expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
  expect(fences).toHaveLength(4);
});

it('removes the records of leases that nobody needs any more', async () => {
  const { file, clock, one } = twoProcesses();
  for (let n = 0; n < 20; n += 1) {
    await one.acquireLease(`chat.turn-${n}`, 'a', TTL_MS);
    if (n % 2 === 0) await one.releaseLease(`chat.turn-${n}`, 'a');
  }
  await clock.advance(10 * TTL_MS);
  await one.prune({ olderThanMs: TTL_MS });
  expect(fs.readdirSync(path.join(file, 'runs'))).toEqual([]);
});

it('refuses the save of an owner that lost it, and leaves what is stored alone', async () => {
  const { clock, one, two } = twoProcesses();
  const stale = fenceOf(await one.acquireLease('order-7', 'a', TTL_MS));
  await one.saveIfLeased('order-7', inProgress(), 'a', stale);
  await clock.advance(2 * TTL_MS);
  const fresh = fenceOf(await two.acquireLease('order-7', 'b', TTL_MS));
  const kept = nextStep(inProgress(), 'of b');
  expect(await two.saveIfLeased('order-7', kept, 'b', fresh)).toBe(true);
  expect(await one.saveIfLeased('order-7', nextStep(inProgress(), 'of a'), 'a', stale)).toBe(false);
  expect(await one.saveIfLeased('order-7', nextStep(inProgress(), 'of a'), 'a')).toBe(false);
  expect(await two.saveIfLeased('order-7', nextStep(inProgress(), 'of b'), 'b', stale)).toBe(false);
  expect(await one.load('order-7')).toEqual(kept);
  expect(await one.history('order-7')).toHaveLength(2);
});

it('stops a run whose checkpoint is deleted at its next save', async () => {
  const { one, two } = twoProcesses();
  const fence = fenceOf(await one.acquireLease('order-7', 'a', TTL_MS));
  await one.saveIfLeased('order-7', inProgress(), 'a', fence);
  await two.delete('order-7');
  expect(await one.renewLease('order-7', 'a', TTL_MS, fence)).toBe(false);
  expect(await one.saveIfLeased('order-7', nextStep(inProgress(), 'on'), 'a', fence)).toBe(false);
  expect(await two.load('order-7')).toBeNull();
  expect(fenceOf(await two.acquireLease('order-7', 'b', TTL_MS))).toBeGreaterThan(fence + 1);
});

it('puts a save that is checked and a lease that is taken over in one order', async () => {
  const { clock, one, two } = twoProcesses();
  for (let round = 0; round < 30; round += 1) {
    const id = `order-${round}`;
    const mine = fenceOf(await one.acquireLease(id, 'a', TTL_MS));
    await clock.advance(2 * TTL_MS);
    const [saved, taken] = await Promise.all([
      one.saveIfLeased(id, inProgress({ runId: 'a' }), 'a', mine),
      two.acquireLease(id, 'b', TTL_MS),
    ]);
    await two.saveIfLeased(id, inProgress({ runId: 'b' }), 'b', fenceOf(taken));
    expect(await one.saveIfLeased(id, inProgress({ runId: 'a' }), 'a', mine)).toBe(false);
    expect((await two.load(id))?.runId).toBe('b');
    expect(await two.history(id)).toHaveLength(saved ? 2 : 1);
  }
});

it('stores who holds it, so that others can find out whether that process is gone', async () => {
  const file = tempFolder();
  await openStore(file).checkpoints.acquireLease('order-7', 'a', TTL_MS);
  const text = fs.readFileSync(leaseFile(file, 'order-7'), 'utf8');
  const { holder: facts } = (JSON.parse(text) as { record: LeaseRecord }).record;
  expect(facts).toMatchObject({
    pid: process.pid,
    instanceId: expect.any(String),
    host: expect.any(String),
  });
  if (process.platform === 'linux')
    expect(facts).toMatchObject({ bootId: expect.any(String), processStartTicks: expect.any(Number) });
});

/** Ports of one process that answers for others. */
function portsOf(
  instanceId: string,
  isGone: (holder: ProcessFacts) => boolean | Promise<boolean>,
): Partial<Ports> {
  return { clock: manualClock(), processes: { own: () => ({ instanceId }), isGone } };
}

it('is taken at once when its process is provably gone', async () => {
  const file = tempFolder();
  const asked: ProcessFacts[] = [];
  const first = openStore(file, { ports: portsOf('p-1', () => false) }).checkpoints;
  await first.acquireLease('order-7', 'a', TTL_MS);
  const isGone = async (holder: ProcessFacts): Promise<boolean> => asked.push(holder) > 1;
  const other = openStore(file, { ports: portsOf('p-2', isGone) }).checkpoints;
  expect(await other.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  expect(await other.acquireLease('order-7', 'b', TTL_MS)).toEqual({ fence: 2 });
  expect(asked).toEqual([{ instanceId: 'p-1' }, { instanceId: 'p-1' }]);
});

it('is not taken on a proof about somebody who held it before', async () => {
  const file = tempFolder();
  const first = openStore(file, { ports: portsOf('p-1', () => false) }).checkpoints;
  const second = openStore(file, { ports: portsOf('p-2', () => true) }).checkpoints;
  await first.acquireLease('order-7', 'a', TTL_MS);
  // While the third one finds out that p-1 is gone, p-2 takes the run over.
  const isGone = async ({ instanceId }: ProcessFacts): Promise<boolean> => {
    await second.acquireLease('order-7', 'b', TTL_MS);
    return instanceId === 'p-1';
  };
  const third = openStore(file, { ports: portsOf('p-3', isGone) }).checkpoints;
  expect(await third.acquireLease('order-7', 'c', TTL_MS)).toBe(false);
  expect(await second.renewLease('order-7', 'b', TTL_MS)).toBe(true);
});

it('waits when nobody can say whether the process is gone', async () => {
  const file = tempFolder();
  const first = openStore(file, { ports: portsOf('p-1', () => false) }).checkpoints;
  await first.acquireLease('order-7', 'a', TTL_MS);
  const isGone = (): boolean => {
    throw new Error('no answer');
  };
  const other = openStore(file, { ports: portsOf('p-2', isGone) }).checkpoints;
  expect(await other.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
});

it('is taken at once from a run of this process that has ended without giving it back', async () => {
  const file = tempFolder();
  const options: FileStoreOptions = { ports: portsOf('p-1', () => false) };
  const [one, two] = [openStore(file, options), openStore(file, options)];
  await one.checkpoints.acquireLease('order-7', 'a', TTL_MS);
  expect(await two.checkpoints.acquireLease('order-7', 'b', TTL_MS)).toBe(false);
  // A closed store saves nothing more, so its runs are over.
  await one.close();
  expect(await two.checkpoints.acquireLease('order-7', 'b', TTL_MS)).toEqual({ fence: 2 });
});

it('is free at once when the run ended but the store could not write so', async () => {
  const folder = tempFolder();
  const ports = portsOf('p-1', () => false);
  let isFull = false;
  const { checkpoints: one } = openOn(
    {
      write: async (fd, bytes, position) => {
        if (isFull) throw Object.assign(new Error('no space left'), { code: 'ENOSPC', syscall: 'write' });
        return nodeFileSystem.write(fd, bytes, position);
      },
    },
    { folder, ports },
  );
  const two = openStore(folder, { ports }).checkpoints;
  const fence = fenceOf(await one.acquireLease('order-7', 'a', TTL_MS));
  isFull = true;
  await expect(one.releaseLease('order-7', 'a', fence)).rejects.toMatchObject({
    code: 'LOUSHO_STORE_WRITE_FAILED',
    details: { operation: 'releaseLease', id: 'order-7' },
  });
  isFull = false;
  expect(await two.acquireLease('order-7', 'b', TTL_MS)).toEqual({ fence: 2 });
});

it('takes equal ids and owners in two files for two leases', async () => {
  const options: FileStoreOptions = { ports: portsOf('p-1', () => false) };
  const [fileA, fileB] = [tempFolder(), tempFolder()];
  const [a, b] = [openStore(fileA, options), openStore(fileB, options)];
  await a.checkpoints.acquireLease('order-7', 'me', TTL_MS);
  await b.checkpoints.acquireLease('order-7', 'me', TTL_MS);
  await b.checkpoints.releaseLease('order-7', 'me');
  const other = openStore(fileA, options).checkpoints;
  expect(await other.acquireLease('order-7', 'other', TTL_MS)).toBe(false);
});
