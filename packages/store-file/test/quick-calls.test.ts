/** Which calls are made on the thread, and when it is left alone. */
import fs from 'node:fs';
import { manualClock, testPorts } from '@lousho/testing';
import { expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../src/file-system.ts';
import { nodeThreadCalls, type ThreadCalls } from '../src/quick-calls.ts';
import type { StoreParts } from '../src/store-parts.ts';
import { inProgress, nextStep } from './support/fixtures.ts';
import { newestLog } from './support/raw-files.ts';
import { openOn, openStore } from './support/temp-store.ts';

const IDS = ['order-1', 'order-2', 'order-3'];
const first = inProgress();
const second = nextStep(first, 'on');

interface World extends StoreParts {
  readonly folder: string;
  readonly pass: (ms: number) => void;
  /** Calls since the runs were begun. */
  readonly inPool: string[];
  readonly onThread: string[];
}

/** A store in which each of `IDS` has been saved once. `slowMs`: how long a sync on the thread takes. */
async function givenRuns(
  options: {
    readonly slowMs?: () => number;
    readonly networkKindOf?: () => string | undefined;
    readonly thread?: Partial<ThreadCalls>;
  } = {},
): Promise<World> {
  const { slowMs = () => 0, networkKindOf = () => undefined } = options;
  const [inPool, onThread]: [string[], string[]] = [[], []];
  let nowMs = 0;
  const clock = Object.assign(manualClock(), { monotonicMs: () => nowMs });
  const thread = recording<ThreadCalls>(
    {
      ...nodeThreadCalls,
      syncData(fd) {
        nowMs += slowMs();
        nodeThreadCalls.syncData(fd);
      },
      ...options.thread,
    },
    onThread,
  );
  const store = openOn(recording<FileSystem>(nodeFileSystem, inPool), {
    ...{ thread, networkKindOf },
    ports: testPorts(clock),
  });
  for (const id of IDS) {
    await store.checkpoints.save(id, first);
    // The second save opens the log.
    await store.checkpoints.save(id, first);
  }
  inPool.length = onThread.length = 0;
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { ...store, pass, inPool, onThread };
}

/** The same calls, each of which leaves its name. */
function recording<Calls extends object>(calls: Calls, names: string[]): Calls {
  const wrapped = Object.entries(calls).map(([name, call]) => [
    name,
    (...args: readonly unknown[]): unknown => {
      names.push(name);
      return (call as (...args: readonly unknown[]) => unknown)(...args);
    },
  ]);
  return Object.fromEntries(wrapped) as Calls;
}

it('makes no trip to the thread pool for a save that is alone on a quick local disk', async () => {
  const { checkpoints, inPool, onThread, folder } = await givenRuns();
  await checkpoints.save('order-1', second);
  expect(inPool).toEqual([]);
  expect(onThread).toContain('syncData');
  expect(await openStore(folder).checkpoints.load('order-1')).toEqual(second);
});

it('lets the disk take saves of one moment together', async () => {
  const { checkpoints, inPool, onThread } = await givenRuns();
  await Promise.all(IDS.map((id) => checkpoints.save(id, second)));
  expect(onThread).not.toContain('syncData');
  expect(inPool.filter((name) => name === 'syncData')).toHaveLength(IDS.length);
});

it('copies a large save in the pool', async () => {
  const { checkpoints, inPool } = await givenRuns();
  await checkpoints.save('order-1', nextStep(first, 'long '.repeat(20_000)));
  expect(inPool).toContain('write');
});

/** Saves once more; whether the sync was made on the thread. */
function syncsOf({ checkpoints, onThread, inPool }: World): () => Promise<boolean> {
  return async () => {
    onThread.length = inPool.length = 0;
    await checkpoints.save('order-1', second);
    expect([...onThread, ...inPool].filter((name) => name === 'syncData')).toHaveLength(1);
    return onThread.includes('syncData');
  };
}

it('holds the thread twice for a slow disk, and then not for twenty times as long', async () => {
  let slowMs = 3;
  const world = await givenRuns({ slowMs: () => slowMs });
  const saveNext = syncsOf(world);
  // It was slow when the runs were begun.
  expect(await saveNext()).toBe(false);
  // What is asked of files in memory goes on.
  expect(world.inPool).toEqual(['syncData']);
  world.pass(59);
  expect(await saveNext()).toBe(false);
  world.pass(1);
  expect(await saveNext()).toBe(true);
  expect(await saveNext()).toBe(false);
  slowMs = 1;
  world.pass(60);
  expect(await saveNext()).toBe(true);
  expect(await saveNext()).toBe(true);
});

it('takes one slow sync of a quick disk for an accident', async () => {
  let slowMs = 1;
  const saveNext = syncsOf(await givenRuns({ slowMs: () => slowMs }));
  slowMs = 10;
  expect(await saveNext()).toBe(true);
  slowMs = 1;
  expect(await saveNext()).toBe(true);
  slowMs = 3;
  expect(await saveNext()).toBe(true);
  expect(await saveNext()).toBe(true);
  expect(await saveNext()).toBe(false);
});

it('leaves the thread at once when the disk stalls', async () => {
  let slowMs = 1;
  const saveNext = syncsOf(await givenRuns({ slowMs: () => slowMs }));
  slowMs = 21;
  expect(await saveNext()).toBe(true);
  expect(await saveNext()).toBe(false);
});

it('lets others have their turn while one save follows another', async () => {
  const { checkpoints } = await givenRuns({ slowMs: () => 1 });
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  for (let save = 0; save < 200; save += 1) await checkpoints.save('order-1', second);
  clearImmediate(next);
  expect(turns).toBeGreaterThan(5);
});

it('never holds the thread for a server', async () => {
  const { checkpoints, onThread } = await givenRuns({ networkKindOf: () => 'NFS' });
  await checkpoints.save('order-1', second);
  expect(onThread).toEqual([]);
});

it.each(['write', 'syncData', 'stat'] as const)(
  'takes back a save when %s fails on the thread',
  async (name) => {
    let isBroken = false;
    const real = nodeThreadCalls as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
    const { checkpoints, folder } = await givenRuns({
      thread: {
        [name]: (...args: readonly unknown[]) => {
          if (isBroken && (name !== 'stat' || String(args[0]).endsWith('.jsonl')))
            throw Object.assign(new Error('EIO'), { code: 'EIO', syscall: name });
          return real[name]?.(...args);
        },
      },
    });
    const before = fs.readFileSync(newestLog(folder, 'order-1'));
    isBroken = true;
    await expect(checkpoints.save('order-1', second)).rejects.toMatchObject({
      code: 'LOUSHO_STORE_WRITE_FAILED',
      cause: { code: 'EIO' },
    });
    isBroken = false;
    expect(fs.readFileSync(newestLog(folder, 'order-1'))).toEqual(before);
  },
);
