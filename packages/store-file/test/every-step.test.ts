/** Each change of each operation on the disk may be the last one that its process makes, or may fail: what was told stays true. */
import fs from 'node:fs';
import {
  appendFrozen,
  resolvePorts,
  resolveStoreOptions,
  type Checkpoint,
  type SessionRecord,
} from '@lousho/contract';
import { manualClock, testPorts, type ManualClock } from '@lousho/testing';
import { expect, it } from 'vitest';
import { storeParts, type StoreParts } from '../src/store-parts.ts';
import { failingFiles, type FailingFiles, type FailurePlan } from './support/failing-files.ts';
import {
  approvalRecord,
  finished,
  hello,
  inProgress,
  nextStep,
  says,
  sessionRecord,
} from './support/fixtures.ts';
import { expectMarked, givenCompleteMarks } from './support/marks.ts';
import { newestLog } from './support/raw-files.ts';
import { openStore, tempFolder } from './support/temp-store.ts';

const ID = 'order-7';
const TTL_MS = 30_000;
const HISTORY_LIMIT = 2;

interface World {
  readonly folder: string;
  readonly clock: ManualClock;
  readonly files: FailingFiles;
  /** The one that dies, or whose disk fails. */
  readonly store: StoreParts;
}

/** What is stored, as another process sees it. */
interface Stored {
  readonly checkpoint: Checkpoint | null;
  readonly history: readonly Checkpoint[];
  readonly session: SessionRecord | null;
  readonly approvals: readonly string[];
}

interface Operation {
  /** Before anything fails. */
  given?(world: World): Promise<void>;
  /** What is cut off. */
  run(world: World): Promise<unknown>;
  /** More steps than this it never has. */
  readonly name: string;
}

const first = inProgress();
const second = nextStep(first, 'second');
const big = Array.from({ length: 6 }, (_, n) => {
  return inProgress({ stepIndex: n, businessState: { n, filler: 'x'.repeat(8_000) } });
});

async function leasedTwice({ store }: World): Promise<void> {
  await store.checkpoints.acquireLease(ID, 'a', TTL_MS);
  await store.checkpoints.saveIfLeased(ID, first, 'a');
}

const operations: readonly Operation[] = [
  { name: 'the first save', run: ({ store }) => store.checkpoints.save(ID, first) },
  {
    name: 'a later save',
    given: ({ store }) => store.checkpoints.save(ID, first),
    run: ({ store }) => store.checkpoints.save(ID, second),
  },
  {
    name: 'a save of another handle',
    given: ({ folder }) => openStore(folder).checkpoints.save(ID, first),
    run: ({ store }) => store.checkpoints.save(ID, second),
  },
  {
    name: 'the first save under a lease',
    given: async ({ store }) => void (await store.checkpoints.acquireLease(ID, 'a', TTL_MS)),
    run: ({ store }) => store.checkpoints.saveIfLeased(ID, first, 'a'),
  },
  {
    name: 'a later save under a lease',
    given: leasedTwice,
    run: ({ store }) => store.checkpoints.saveIfLeased(ID, second, 'a'),
  },
  { name: 'the first lease', run: ({ store }) => store.checkpoints.acquireLease(ID, 'a', TTL_MS) },
  {
    name: 'a take-over',
    async given({ folder, clock }) {
      const earlier = manualClock(clock.wallMs() - 2 * TTL_MS);
      const other = openStore(folder, { ports: testPorts(earlier) }).checkpoints;
      await other.acquireLease(ID, 'a', TTL_MS);
      await other.saveIfLeased(ID, first, 'a');
    },
    run: ({ store }) => store.checkpoints.acquireLease(ID, 'b', TTL_MS),
  },
  {
    name: 'the first save after a take-over',
    async given(world) {
      await leasedTwice(world);
      await world.store.checkpoints.releaseLease(ID, 'a');
      await world.store.checkpoints.acquireLease(ID, 'b', TTL_MS);
    },
    run: ({ store }) => store.checkpoints.saveIfLeased(ID, second, 'b'),
  },
  {
    name: 'a save behind a released lease',
    async given(world) {
      await leasedTwice(world);
      await world.store.checkpoints.releaseLease(ID, 'a');
    },
    run: ({ store }) => store.checkpoints.save(ID, second),
  },
  {
    name: 'a renewal',
    given: leasedTwice,
    run: ({ store }) => store.checkpoints.renewLease(ID, 'a', TTL_MS),
  },
  { name: 'a release', given: leasedTwice, run: ({ store }) => store.checkpoints.releaseLease(ID, 'a') },
  { name: 'a delete', given: leasedTwice, run: ({ store }) => store.checkpoints.delete(ID) },
  {
    name: 'a delete that keeps the history',
    given: leasedTwice,
    run: ({ store }) => store.checkpoints.delete(ID, { keepHistory: true }),
  },
  {
    name: 'the end of a run whose log is rewritten',
    async given({ store }) {
      for (const state of big) await store.checkpoints.save(ID, state);
    },
    run: ({ store }) => store.checkpoints.save(ID, finished({ stepIndex: 99 })),
  },
  {
    name: 'a save that ends the run',
    given: ({ store }) => store.checkpoints.save(ID, first),
    run: ({ store }) => store.checkpoints.save(ID, finished()),
  },
  {
    name: 'a save that ends the run of another handle',
    given: ({ folder }) => openStore(folder).checkpoints.save(ID, first),
    run: ({ store }) => store.checkpoints.save(ID, finished()),
  },
  {
    name: 'a save that goes on after the end',
    given: ({ store }) => store.checkpoints.save(ID, finished()),
    run: ({ store }) => store.checkpoints.save(ID, second),
  },
  {
    name: 'a save behind a history that was kept',
    async given({ store }) {
      await store.checkpoints.save(ID, first);
      await store.checkpoints.delete(ID, { keepHistory: true });
    },
    run: ({ store }) => store.checkpoints.save(ID, second),
  },
  {
    name: 'a save over damage',
    async given({ store, folder }) {
      await store.checkpoints.save(ID, first);
      fs.truncateSync(newestLog(folder, ID), 40);
      await store.checkpoints.load(ID).catch(() => undefined);
    },
    run: async ({ folder, files, clock }) => partsOn(folder, files, clock).checkpoints.save(ID, second),
  },
  {
    name: 'a prune',
    given: ({ store }) => store.checkpoints.save(ID, finished()),
    run: ({ store }) => store.prune({ olderThanMs: 0 }),
  },
  {
    name: 'the first commit of a session',
    run: ({ store }) => store.sessions.saveIfRevision(sessionRecord('chat'), 0),
  },
  {
    name: 'a later commit',
    given: async ({ store }) => void (await store.sessions.saveIfRevision(sessionRecord('chat'), 0)),
    run: ({ store }) => store.sessions.saveIfRevision(sessionRecord('chat', { turn: 1 }), 1),
  },
  {
    name: 'a delete of a session',
    given: async ({ store }) => void (await store.sessions.saveIfRevision(sessionRecord('chat'), 0)),
    run: ({ store }) => store.sessions.delete('chat'),
  },
  {
    name: 'the first save of a turn',
    async given({ store }) {
      const messages = appendFrozen(
        [hello],
        Array.from({ length: 6 }, (_, n) => says(`${n}`)),
      );
      await store.sessions.saveIfRevision(sessionRecord('chat', { messages }), 0);
    },
    async run({ store }) {
      const chat = await store.sessions.load('chat');
      await store.checkpoints.save(ID, inProgress({ messages: chat?.messages ?? [] }));
    },
  },
  { name: 'an approval', run: ({ store }) => store.approvals.save(approvalRecord('a-1')) },
  {
    name: 'an approval that replaces one',
    given: ({ store }) => store.approvals.save(approvalRecord('a-1')),
    run: ({ store }) => store.approvals.save(approvalRecord('a-1', { toolName: 'other' })),
  },
  {
    name: 'a decision',
    given: ({ store }) => store.approvals.save(approvalRecord('a-1')),
    run: ({ store }) => store.approvals.delete('a-1'),
  },
];

function partsOn(folder: string, files: FailingFiles, clock: ManualClock): StoreParts {
  return storeParts({
    ...resolveStoreOptions({ historyLimit: HISTORY_LIMIT }),
    ...{ folder, durability: 'power', fs: files },
    ports: resolvePorts(testPorts(clock)),
    networkKindOf: () => undefined,
    warn: () => undefined,
  });
}

/** Not closed in the end: its process may be dead. */
async function given(operation: Operation): Promise<World> {
  const folder = tempFolder();
  const [clock, files] = [manualClock(), failingFiles()];
  const world = { folder, clock, files, store: partsOn(folder, files, clock) };
  await givenCompleteMarks(folder);
  await operation.given?.(world);
  return world;
}

async function storedIn({ folder, clock }: World): Promise<Stored> {
  const store = openStore(folder, { ports: testPorts(clock), historyLimit: HISTORY_LIMIT });
  const checkpoint = await store.checkpoints.load(ID).catch(codeOf);
  const history = await store.checkpoints.history(ID).catch(() => []);
  const listed = await store.checkpoints.list();
  const headers = await store.checkpoints.listHeaders();
  await expectMarked(store);
  const isListed = checkpoint !== null;
  expect([listed.length, headers.length]).toEqual([isListed ? 1 : 0, isListed ? 1 : 0]);
  return {
    checkpoint: checkpoint as Checkpoint | null,
    history: history.map((entry) => entry.checkpoint),
    session: (await store.sessions.load('chat')) ?? null,
    approvals: (await store.approvals.list()).map(({ id, toolName }) => `${id} ${toolName}`),
  };
}

function codeOf(error: unknown): unknown {
  return (error as { readonly code: unknown }).code;
}

/** What happens to the operation: its result, its error, or its process died. */
async function outcomeOf(
  operation: Operation,
  world: World,
  plan: FailurePlan,
): Promise<'told' | 'refused' | 'died'> {
  world.files.arm(plan);
  const told = operation.run(world).then(
    () => 'told' as const,
    (error: unknown) => {
      expect(codeOf(error)).toMatch(/^LOUSHO_STORE_(?:WRITE|READ)_FAILED$/);
      return 'refused' as const;
    },
  );
  return Promise.race([told, world.files.died]);
}

/** A new process finds everything as it can go on from. */
async function expectUsable(world: World): Promise<void> {
  const { folder, clock } = world;
  const later = manualClock(clock.wallMs() + 3 * TTL_MS);
  const store = openStore(folder, { ports: testPorts(later), historyLimit: HISTORY_LIMIT });
  expect(await store.checkpoints.acquireLease(ID, 'next', TTL_MS)).not.toBe(false);
  const state = inProgress({ runId: 'next' });
  expect(await store.checkpoints.saveIfLeased(ID, state, 'next')).toBe(true);
  expect(await openStore(folder).checkpoints.load(ID)).toEqual(state);
  await store.checkpoints.delete(ID);
  expect(await openStore(folder).checkpoints.load(ID)).toBeNull();
  const revision = (await store.sessions.load('chat'))?.revision ?? 0;
  expect(await store.sessions.saveIfRevision(sessionRecord('chat'), revision)).toBe(true);
  await store.sessions.delete('chat');
  await store.approvals.save(approvalRecord('a-1', { toolName: 'next' }));
  expect(await store.approvals.load('a-1')).toMatchObject({ toolName: 'next' });
}

const STEPS_AT_MOST = 80;

it.each(operations)(
  'leaves the state before or after $name when the process dies in it',
  { timeout: 60_000 },
  async (operation) => {
    const [untouched, done] = [await given(operation), await given(operation)];
    const before = await storedIn(untouched);
    await operation.run(done);
    const after = await storedIn(done);
    let isOver = false;
    for (let at = 1; !isOver; at += 1) {
      expect(at).toBeLessThan(STEPS_AT_MOST);
      const world = await given(operation);
      isOver = (await outcomeOf(operation, world, { at, how: 'dies' })) === 'told';
      expect(isOver ? [after] : [before, after]).toContainEqual(await storedIn(world));
      await expectUsable(world);
    }
  },
);

it.each(operations)(
  'leaves the state before $name when the disk refuses it',
  { timeout: 60_000 },
  async (operation) => {
    const [untouched, done] = [await given(operation), await given(operation)];
    const before = await storedIn(untouched);
    await operation.run(done);
    const after = await storedIn(done);
    let hasFailed = true;
    for (let at = 1; hasFailed; at += 1) {
      const world = await given(operation);
      const outcome = await outcomeOf(operation, world, { at, how: 'fails' });
      hasFailed = world.files.hasFailed;
      world.files.disarm();
      const stored = await storedIn(world);
      expect(outcome === 'told' ? [after] : [before, after]).toContainEqual(stored);
      if (outcome === 'refused' && operation.name.includes('save')) expect(stored).toEqual(before);
      // With the disk, the same handle works again.
      await operation.run(world);
      if (outcome === 'refused') expect(await storedIn(world)).toEqual(after);
      await expectUsable(world);
    }
  },
);
