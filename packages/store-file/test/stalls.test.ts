/** One process is stopped before any of its calls to the file system, another one does its work, and the first one wakes up and goes on. */
import fs from 'node:fs';
import path from 'node:path';
import type { Checkpoint, FullAgentStore, Lease } from '@lousho/contract';
import { manualClock, testPorts } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import type { StoreParts } from '../src/store-parts.ts';
import { approvalRecord, finished, inProgress, nextStep, sessionRecord } from './support/fixtures.ts';
import { UNFINISHED, expectMarked, givenCompleteMarks } from './support/marks.ts';
import { stallingFiles, type StallingFiles } from './support/stalling-files.ts';
import { openOn, openStore, tempFolder } from './support/temp-store.ts';

const ID = 'order-7';
const TTL_MS = 30_000;
const HISTORY_LIMIT = 4;

interface World {
  readonly folder: string;
  readonly files: StallingFiles;
  /** The one that is stopped. */
  readonly one: StoreParts;
  /** The same, with its clock as far ahead as that of `two`. */
  readonly lateOne: StoreParts;
  /** On the same clock. */
  readonly peer: FullAgentStore;
  /** On a clock that is so far ahead that every lease of the others has expired. */
  readonly two: FullAgentStore;
}

const first = inProgress();
const ofOne = nextStep(first, 'of one');
const ofTwo = nextStep(first, 'of two');

function givenWorld(): World {
  const folder = tempFolder();
  const files = stallingFiles();
  const clock = manualClock();
  const later = manualClock(clock.wallMs() + 2 * TTL_MS);
  const options = { folder, historyLimit: HISTORY_LIMIT };
  return {
    folder,
    files,
    one: openOn(files, { ...options, ports: testPorts(clock) }),
    lateOne: openOn(files, { ...options, ports: testPorts(later) }),
    peer: openStore(folder, { historyLimit: HISTORY_LIMIT, ports: testPorts(clock) }),
    two: openStore(folder, { historyLimit: HISTORY_LIMIT, ports: testPorts(later) }),
  };
}

async function givenLeased(world: World): Promise<Lease> {
  const lease = await world.one.checkpoints.acquireLease(ID, 'one', TTL_MS);
  if (lease === false) throw new Error('it was free');
  return lease;
}

async function givenSaved(world: World): Promise<Lease> {
  const lease = await givenLeased(world);
  expect(await world.one.checkpoints.saveIfLeased(ID, first, 'one')).toBe(true);
  return lease;
}

/**
 * Stops `run` before each of its calls, does `meanwhile` in the other process, lets it go on, and checks the outcome. More often than a
 * process is ever stopped: at every single call.
 */
async function atEveryCall<Given, Outcome, Other>(steps: {
  readonly given: (world: World) => Promise<Given>;
  readonly run: (world: World, given: Given) => Promise<Outcome>;
  readonly meanwhile: (world: World) => Promise<Other>;
  readonly check: (world: World, outcome: Outcome, other: Other, given: Given) => Promise<void>;
}): Promise<void> {
  let stalls = 0;
  for (let call = 1; ; call += 1) {
    const world = givenWorld();
    await givenCompleteMarks(world.folder);
    const given = await steps.given(world);
    const stalled = world.files.stallAt(call);
    const running = steps.run(world, given);
    const isStalled = (await Promise.race([stalled, running.then(() => 'done')])) === 'stalled';
    const other = await steps.meanwhile(world);
    world.files.letGo();
    await steps.check(world, await running, other, given);
    if (!isStalled) break;
    stalls += 1;
  }
  expect(stalls).toBeGreaterThan(1);
}

/** Everything that is stored, as a process sees it that comes later. */
async function storedIn({ folder }: World): Promise<{
  readonly checkpoint: Checkpoint | null;
  readonly history: readonly Checkpoint[];
}> {
  const { checkpoints } = openStore(folder, { historyLimit: HISTORY_LIMIT });
  await expectMarked({ checkpoints });
  const history = await checkpoints.history(ID);
  return { checkpoint: await checkpoints.load(ID), history: history.map(({ checkpoint }) => checkpoint) };
}

async function takeOverAndSave({ two }: World): Promise<Lease> {
  const lease = await two.checkpoints.acquireLease(ID, 'two', TTL_MS);
  if (lease === false) throw new Error('it had expired');
  expect(await two.checkpoints.saveIfLeased(ID, ofTwo, 'two', lease.fence)).toBe(true);
  return lease;
}

describe.each([
  ['its first save', givenLeased],
  ['a later save', givenSaved],
])('a holder that is stopped in %s', (_name, given) => {
  it('never writes over the one who took the run over', async () => {
    await atEveryCall({
      given,
      run: ({ one }) => one.checkpoints.saveIfLeased(ID, ofOne, 'one'),
      meanwhile: takeOverAndSave,
      async check(world, isSaved) {
        const { checkpoint, history } = await storedIn(world);
        expect(checkpoint).toEqual(ofTwo);
        const saves = given === givenSaved ? [first] : [];
        expect(history).toEqual([...saves, ...(isSaved ? [ofOne] : []), ofTwo].reverse());
        expect(await world.one.checkpoints.saveIfLeased(ID, ofOne, 'one')).toBe(false);
      },
    });
  });

  it('never writes into the place of one who took the run over and has not saved yet', async () => {
    await atEveryCall({
      given,
      run: ({ one }) => one.checkpoints.saveIfLeased(ID, ofOne, 'one'),
      async meanwhile({ two }) {
        await two.checkpoints.acquireLease(ID, 'two', TTL_MS);
        return two.checkpoints.load(ID);
      },
      async check(world, isSaved, atTakeOver) {
        const { checkpoint, history } = await storedIn(world);
        expect(checkpoint).toEqual(atTakeOver);
        expect(history.includes(ofOne) || JSON.stringify(history).includes('of one')).toBe(isSaved);
        expect(await world.two.checkpoints.saveIfLeased(ID, ofTwo, 'two')).toBe(true);
        expect((await storedIn(world)).checkpoint).toEqual(ofTwo);
      },
    });
  });

  it('does not bring back a run that was deleted', async () => {
    await atEveryCall({
      given,
      run: ({ one }) => one.checkpoints.saveIfLeased(ID, ofOne, 'one'),
      meanwhile: ({ two }) => two.checkpoints.delete(ID),
      async check(world) {
        expect(await storedIn(world)).toEqual({ checkpoint: null, history: [] });
        expect(await world.one.checkpoints.renewLease(ID, 'one', TTL_MS)).toBe(false);
      },
    });
  });

  it('does not write into a run that was begun anew under its id', async () => {
    await atEveryCall({
      given,
      run: ({ one }) => one.checkpoints.saveIfLeased(ID, ofOne, 'one'),
      async meanwhile(world) {
        await world.two.checkpoints.delete(ID);
        return takeOverAndSave(world);
      },
      async check(world, _isSaved, { fence }, lease) {
        expect(await storedIn(world)).toEqual({ checkpoint: ofTwo, history: [ofTwo] });
        expect(fence).toBeGreaterThan(lease.fence);
      },
    });
  });
});

describe('somebody who is stopped while he takes a run over', () => {
  const acquire = ({ one }: World): Promise<Lease | false> => one.checkpoints.acquireLease(ID, 'b', TTL_MS);
  /** Held by nobody: given back. */
  const released = async (world: World): Promise<void> => {
    await givenSaved(world);
    await world.one.checkpoints.releaseLease(ID, 'one');
  };

  it.each([
    ['that nobody had', async () => undefined],
    ['that was given back', released],
  ])('gets a run %s only if nobody else got it', async (_name, given: (world: World) => Promise<void>) => {
    await atEveryCall({
      given,
      run: acquire,
      meanwhile: ({ peer }) => peer.checkpoints.acquireLease(ID, 'two', TTL_MS),
      async check({ one, peer }, mine, theirs) {
        const isMine = mine !== false && (await one.checkpoints.renewLease(ID, 'b', TTL_MS, mine.fence));
        const isTheirs =
          theirs !== false && (await peer.checkpoints.renewLease(ID, 'two', TTL_MS, theirs.fence));
        expect([isMine, isTheirs].filter(Boolean)).toHaveLength(1);
        // Whoever was told that he has it, and was not overtaken by time, has it.
        if (theirs !== false && mine !== false) expect(mine.fence).not.toBe(theirs.fence);
      },
    });
  });

  it('takes nothing from one who has taken it, saved, and gives it back meanwhile', async () => {
    await atEveryCall({
      given: released,
      run: acquire,
      async meanwhile(world) {
        const lease = await world.peer.checkpoints.acquireLease(ID, 'two', TTL_MS);
        if (lease === false) return undefined;
        expect(await world.peer.checkpoints.saveIfLeased(ID, ofTwo, 'two', lease.fence)).toBe(true);
        await world.peer.checkpoints.releaseLease(ID, 'two');
        return lease;
      },
      async check(world, mine, theirs) {
        const expected = theirs === undefined ? first : ofTwo;
        expect((await storedIn(world)).checkpoint).toEqual(expected);
        expect(mine !== false && (await world.one.checkpoints.saveIfLeased(ID, ofOne, 'b'))).toBe(
          mine !== false,
        );
        if (theirs !== undefined && mine !== false) expect(mine.fence).toBeGreaterThan(theirs.fence);
        if (mine !== false) expect((await storedIn(world)).history).toContainEqual(ofOne);
      },
    });
  });

  it('gets a higher number than every run before that was begun and deleted meanwhile', async () => {
    await atEveryCall({
      given: released,
      run: acquire,
      async meanwhile({ peer }) {
        const fences: number[] = [];
        for (let round = 0; round < 2; round += 1) {
          await peer.checkpoints.delete(ID);
          const lease = await peer.checkpoints.acquireLease(ID, 'two', TTL_MS);
          if (lease !== false) fences.push(lease.fence);
          await peer.checkpoints.saveIfLeased(ID, ofTwo, 'two');
        }
        await peer.checkpoints.delete(ID);
        return Math.max(0, ...fences);
      },
      async check(world, mine, highest) {
        expect(await storedIn(world)).toEqual({ checkpoint: null, history: [] });
        const isMine =
          mine !== false && (await world.one.checkpoints.renewLease(ID, 'b', TTL_MS, mine.fence));
        // Either it had the run before all that, and lost it, or it has it now under a number of its own.
        if (isMine) expect(mine.fence).toBeGreaterThan(highest);
        const next = await openStore(world.folder).checkpoints.acquireLease(ID, isMine ? 'b' : 'c', TTL_MS);
        expect(next && next.fence).toBeGreaterThanOrEqual(highest);
      },
    });
  });

  it('lets a save without a lease neither get lost nor come twice', async () => {
    await atEveryCall({
      given: released,
      run: acquire,
      meanwhile: ({ peer }) => peer.checkpoints.save(ID, ofTwo),
      async check(world, mine) {
        expect(mine).not.toBe(false);
        expect(await storedIn(world)).toEqual({ checkpoint: ofTwo, history: [ofTwo, first] });
        expect(await world.one.checkpoints.saveIfLeased(ID, ofOne, 'b')).toBe(true);
        expect((await storedIn(world)).history).toEqual([ofOne, ofTwo, first]);
      },
    });
  });
});

describe('a heartbeat that is stopped', () => {
  it.each([
    ['taken over', async (world: World) => void (await takeOverAndSave(world))],
    ['deleted', ({ two }: World) => two.checkpoints.delete(ID)],
    [
      'deleted and begun anew',
      async (world: World) => {
        await world.two.checkpoints.delete(ID);
        await takeOverAndSave(world);
      },
    ],
  ])('does not bring back a lease whose run was %s', async (_name, meanwhile) => {
    await atEveryCall({
      given: givenSaved,
      run: ({ one }) => one.checkpoints.renewLease(ID, 'one', TTL_MS),
      meanwhile,
      async check(world) {
        expect(await world.one.checkpoints.renewLease(ID, 'one', TTL_MS)).toBe(false);
        expect(await world.one.checkpoints.saveIfLeased(ID, ofOne, 'one')).toBe(false);
        const { checkpoint } = await storedIn(world);
        expect([null, ofTwo]).toContainEqual(checkpoint);
      },
    });
  });
});

describe('a save without a lease that is stopped', () => {
  it.each([
    ['the first one', async () => undefined],
    ['a later one', ({ one }: World) => one.checkpoints.save(ID, first)],
    [
      'one behind a lease that was given back',
      async (world: World) => {
        await givenSaved(world);
        await world.one.checkpoints.releaseLease(ID, 'one');
      },
    ],
  ])('is stored once, beside those of others: %s', async (_name, given: (world: World) => Promise<void>) => {
    await atEveryCall({
      given,
      run: ({ one }) => one.checkpoints.save(ID, ofOne),
      async meanwhile(world) {
        await world.two.checkpoints.save(ID, ofTwo);
        await takeOverAndSave(world);
      },
      async check(world) {
        const { checkpoint, history } = await storedIn(world);
        expect(history.filter((one) => JSON.stringify(one).includes('of one'))).toHaveLength(1);
        expect(history.filter((one) => JSON.stringify(one).includes('of two'))).toHaveLength(2);
        expect(checkpoint).toEqual(history[0]);
        expect(await world.two.checkpoints.saveIfLeased(ID, finished(), 'two')).toBe(true);
      },
    });
  });
});

it('lets one commit of a session win that is stopped, or the other', async () => {
  for (const revision of [0, 1]) {
    await atEveryCall({
      given: async ({ one }) => {
        if (revision > 0) await one.sessions.saveIfRevision(sessionRecord('chat'), 0);
      },
      run: ({ one }) => one.sessions.saveIfRevision(sessionRecord('chat', { turn: 1 }), revision),
      meanwhile: ({ two }) => two.sessions.saveIfRevision(sessionRecord('chat', { turn: 2 }), revision),
      async check({ folder }, mine, theirs) {
        expect([mine, theirs].filter(Boolean)).toHaveLength(1);
        expect(await openStore(folder).sessions.load('chat')).toMatchObject({
          revision: revision + 1,
          turn: mine ? 1 : 2,
        });
      },
    });
  }
});

it('does not bring back a session that was deleted, or write into one that was begun anew', async () => {
  for (const isBegunAnew of [false, true]) {
    await atEveryCall({
      given: ({ one }) => one.sessions.saveIfRevision(sessionRecord('chat'), 0),
      run: ({ one }) => one.sessions.saveIfRevision(sessionRecord('chat', { turn: 1 }), 1),
      async meanwhile({ two }) {
        await two.sessions.delete('chat');
        if (isBegunAnew) await two.sessions.saveIfRevision(sessionRecord('chat', { turn: 9 }), 0);
      },
      async check({ folder }, isSaved) {
        const stored = await openStore(folder).sessions.load('chat');
        const anew =
          isSaved && isBegunAnew && stored?.revision === 2
            ? { revision: 2, turn: 1 }
            : { revision: 1, turn: 9 };
        if (isBegunAnew) expect(stored).toMatchObject(anew);
        else expect(stored).toBeNull();
      },
    });
  }
});

it('gives a decision to one of two people, however long one of them is stopped', async () => {
  await atEveryCall({
    given: ({ one }) => one.approvals.save(approvalRecord('a-1')),
    run: ({ one }) => one.approvals.delete('a-1'),
    meanwhile: ({ two }) => two.approvals.delete('a-1'),
    async check({ folder }, mine, theirs) {
      expect([mine, theirs].filter(Boolean)).toHaveLength(1);
      expect(await openStore(folder).approvals.list()).toEqual([]);
    },
  });
});

describe('a take-over that is stopped', () => {
  it('has every save that its holder was told of, and none of the others', async () => {
    await atEveryCall({
      given: async ({ peer }) => {
        await peer.checkpoints.acquireLease(ID, 'holder', TTL_MS);
        expect(await peer.checkpoints.saveIfLeased(ID, first, 'holder')).toBe(true);
      },
      run: ({ lateOne }) => lateOne.checkpoints.acquireLease(ID, 'taker', TTL_MS),
      async meanwhile({ peer }) {
        const saved: Checkpoint[] = [];
        for (const text of ['a', 'b']) {
          const next = nextStep(saved.at(-1) ?? first, text);
          if (!(await peer.checkpoints.saveIfLeased(ID, next, 'holder'))) break;
          saved.push(next);
        }
        return saved;
      },
      async check(world, lease, saved) {
        expect(lease).not.toBe(false);
        expect(await storedIn(world)).toEqual({
          checkpoint: saved.at(-1) ?? first,
          history: [first, ...saved].reverse(),
        });
        expect(await world.peer.checkpoints.saveIfLeased(ID, ofTwo, 'holder')).toBe(false);
        expect(await world.peer.checkpoints.renewLease(ID, 'holder', TTL_MS)).toBe(false);
        expect(await world.lateOne.checkpoints.saveIfLeased(ID, ofOne, 'taker')).toBe(true);
        expect((await storedIn(world)).history).toEqual([first, ...saved, ofOne].reverse());
      },
    });
  });

  it('gives way to a holder that was told meanwhile that it still has the run', async () => {
    await atEveryCall({
      async given({ peer }) {
        await peer.checkpoints.acquireLease(ID, 'holder', TTL_MS);
        expect(await peer.checkpoints.saveIfLeased(ID, first, 'holder')).toBe(true);
      },
      run: ({ lateOne }) => lateOne.checkpoints.acquireLease(ID, 'taker', TTL_MS),
      // It wakes up when its lease is over, as a process does that was stopped.
      meanwhile: ({ two }) => two.checkpoints.renewLease(ID, 'holder', TTL_MS),
      async check({ peer, two, lateOne }, lease, isRenewed) {
        expect(lease === false).toBe(isRenewed);
        expect(await two.checkpoints.acquireLease(ID, 'third', TTL_MS)).toBe(false);
        expect(await two.checkpoints.renewLease(ID, 'holder', TTL_MS)).toBe(isRenewed);
        expect(await peer.checkpoints.saveIfLeased(ID, ofOne, 'holder')).toBe(isRenewed);
        expect(await lateOne.checkpoints.saveIfLeased(ID, ofTwo, 'taker')).toBe(!isRenewed);
        expect(await peer.checkpoints.load(ID)).toEqual(isRenewed ? ofOne : ofTwo);
      },
    });
  });
});

it('tells one that is stopped in a renewal the truth: it has the run, or the other one has', async () => {
  await atEveryCall({
    given: async ({ peer }) => void (await peer.checkpoints.acquireLease(ID, 'holder', TTL_MS)),
    run: ({ lateOne }) => lateOne.checkpoints.renewLease(ID, 'holder', TTL_MS),
    meanwhile: ({ two }) => two.checkpoints.acquireLease(ID, 'taker', TTL_MS),
    async check({ peer, two }, isRenewed, lease) {
      expect(lease === false).toBe(isRenewed);
      expect(await peer.checkpoints.saveIfLeased(ID, ofOne, 'holder')).toBe(isRenewed);
      expect(await two.checkpoints.saveIfLeased(ID, ofTwo, 'taker')).toBe(!isRenewed);
    },
  });
});

describe('a delete that is stopped', () => {
  it.each([
    ['a save', ({ two }: World) => two.checkpoints.save(ID, ofTwo)],
    ['a take-over', async (world: World) => void (await takeOverAndSave(world))],
    ['another delete', ({ two }: World) => two.checkpoints.delete(ID)],
    [
      'a delete and a new run',
      async (world: World) => {
        await world.two.checkpoints.delete(ID);
        await takeOverAndSave(world);
      },
    ],
  ])('takes away what was there, and nothing that came behind it: %s', async (_name, meanwhile) => {
    await atEveryCall({
      given: givenSaved,
      run: ({ one }) => one.checkpoints.delete(ID),
      meanwhile,
      async check(world) {
        const { checkpoint, history } = await storedIn(world);
        expect([null, ofTwo]).toContainEqual(checkpoint);
        if (checkpoint === null) expect(history).toEqual([]);
        expect(await world.one.checkpoints.saveIfLeased(ID, ofOne, 'one')).toBe(false);
        // Whoever comes next finds everything in order.
        await world.peer.checkpoints.save(ID, finished());
        expect((await storedIn(world)).checkpoint).toEqual(finished());
        await world.peer.checkpoints.delete(ID);
        expect(await storedIn(world)).toEqual({ checkpoint: null, history: [] });
      },
    });
  });
});

describe('a log that is being rewritten when its process is stopped', () => {
  const last = inProgress({ stepIndex: 9, businessState: 'x'.repeat(8_000) });
  const end = finished({ stepIndex: 99 });

  it.each([
    ['a take-over', takeOverAndSave],
    ['a delete', ({ two }: World) => two.checkpoints.delete(ID)],
    ['a save', ({ two }: World) => two.checkpoints.save(ID, ofTwo)],
  ])('stays what others made of it: %s', async (_name, meanwhile: (world: World) => Promise<unknown>) => {
    await atEveryCall({
      async given(world) {
        await givenLeased(world);
        for (let n = 0; n < 8; n += 1)
          expect(await world.one.checkpoints.saveIfLeased(ID, last, 'one')).toBe(true);
      },
      run: ({ one }) => one.checkpoints.saveIfLeased(ID, end, 'one'),
      meanwhile,
      async check(world, isSaved) {
        const { checkpoint, history } = await storedIn(world);
        if (meanwhile.name === takeOverAndSave.name) expect(checkpoint).toEqual(ofTwo);
        expect([null, ofTwo, end]).toContainEqual(checkpoint);
        if (checkpoint !== null)
          expect(history.filter(({ status }) => status === 'finished')).toHaveLength(isSaved ? 1 : 0);
        expect(history).toHaveLength(checkpoint === null ? 0 : new Set(history).size);
        await world.peer.checkpoints.save(ID, ofOne);
        expect((await storedIn(world)).history.slice(1)).toEqual(history.slice(0, HISTORY_LIMIT - 1));
      },
    });
  });
});

describe('a process that is stopped leaves every unfinished run to be found', () => {
  const over = finished({ stepIndex: 5 });
  const givenOver = async ({ one }: World): Promise<void> => one.checkpoints.save(ID, over);
  const unfinishedOf = ({ checkpoints }: Pick<FullAgentStore, 'checkpoints'>) =>
    checkpoints.listHeaders({ status: UNFINISHED });

  it.each<{
    readonly name: string;
    readonly given: (world: World) => Promise<unknown>;
    readonly run: (world: World) => Promise<unknown>;
    readonly meanwhile: (world: World) => Promise<unknown>;
  }>([
    {
      name: 'in the save that ends the run, which somebody else goes on with',
      given: givenSaved,
      run: ({ one }) => one.checkpoints.saveIfLeased(ID, over, 'one'),
      meanwhile: takeOverAndSave,
    },
    {
      name: 'in the save that ends the run, which somebody else begins anew',
      given: ({ one }) => one.checkpoints.save(ID, first),
      run: ({ one }) => one.checkpoints.save(ID, over),
      meanwhile: async ({ peer }) => {
        await peer.checkpoints.delete(ID);
        await peer.checkpoints.save(ID, ofTwo);
      },
    },
    {
      name: 'in the save that goes on after the end, while somebody else goes on and ends',
      given: givenOver,
      run: ({ one }) => one.checkpoints.save(ID, ofOne),
      meanwhile: async ({ peer }) => {
        await peer.checkpoints.save(ID, ofTwo);
        await peer.checkpoints.save(ID, over);
      },
    },
    {
      name: 'in the save that goes on after the end, while somebody lists',
      given: givenOver,
      run: ({ one }) => one.checkpoints.save(ID, ofOne),
      meanwhile: ({ peer }) => unfinishedOf(peer),
    },
    {
      name: 'in a list, while somebody goes on after the end',
      given: async (world) => {
        await world.peer.checkpoints.save(ID, first);
        await givenOver(world);
      },
      run: ({ one }) => unfinishedOf(one),
      meanwhile: ({ peer }) => peer.checkpoints.save(ID, ofTwo),
    },
    {
      name: 'in a list, while somebody begins what was deleted',
      given: async ({ one, folder }) => {
        await one.checkpoints.save(ID, first);
        await one.checkpoints.delete(ID);
        // As a process leaves it that died in the middle of deleting.
        fs.writeFileSync(path.join(folder, 'unfinished', `${ID}.0000000002.1`), '');
      },
      run: ({ one }) => unfinishedOf(one),
      meanwhile: ({ peer }) => peer.checkpoints.save(ID, ofTwo),
    },
    {
      name: 'in a delete, while somebody begins the run anew',
      given: givenSaved,
      run: ({ one }) => one.checkpoints.delete(ID),
      meanwhile: ({ peer }) => peer.checkpoints.save(ID, ofTwo),
    },
    {
      name: 'in the first list of a folder, while runs begin and end',
      given: async (world) => {
        fs.rmSync(path.join(world.folder, 'unfinished'), { recursive: true });
        await givenOver(world);
        await world.peer.checkpoints.save('order-8', first);
      },
      run: ({ one }) => unfinishedOf(one),
      meanwhile: async ({ peer }) => {
        await peer.checkpoints.save(ID, ofTwo);
        await peer.checkpoints.save('order-8', over);
        await peer.checkpoints.save('order-9', first);
      },
    },
  ])('$name', async ({ given, run, meanwhile }) => {
    await atEveryCall({
      given,
      run,
      meanwhile,
      check: async ({ folder }) => expectMarked(openStore(folder)),
    });
  });
});
