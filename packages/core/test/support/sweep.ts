/** What crash sweeps of an agent share: the stores that they run over, and the driver that starts a run or goes on with it. */
import path from 'node:path';
import { isSDKError, type AgentStore, type ExecutionResult, type Ports } from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { memoryStore } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';
import type { CrashScenario } from '@lousho/testing/crash';
import { afterAll, beforeAll, describe } from 'vitest';
import type { Agent } from '../../src/index.ts';
import { temporaryFolder } from './world.ts';

export type CreateStore = NonNullable<CrashScenario['createStore']>;

interface SweptStores {
  readonly [name: string]: (folder: string) => (ports: Ports) => AgentStore;
}

const inMemory: SweptStores = {
  memory: () => (ports) => memoryStore({ ports }),
  'memory, its inbox elsewhere': () => (ports) => ({
    checkpoints: memoryStore({ ports }).checkpoints,
    approvals: memoryStore({ ports }).approvals,
  }),
};
const onDisk: SweptStores = {
  sqlite: (folder) => (ports) => {
    const file = path.join(folder, `${ports.ids.random()}.db`);
    return new SqliteStore(file, { ports, durability: 'process' });
  },
  file: (folder) => (ports) =>
    fileStore(path.join(folder, ports.ids.random()), { ports, durability: 'process' }),
};

/** One and the same sweep over each store; `createStore()` gives what a scenario takes. */
export function sweepEveryStore(title: string, suite: (createStore: () => CreateStore) => void): void {
  sweepOver({ ...inMemory, ...onDisk }, title, suite);
}

/** On stores with a part for everything: one in memory, and those on a disk. */
export function sweepWholeStores(
  title: string,
  suite: (createStore: () => CreateStore, name: string) => void,
): void {
  const { memory } = inMemory;
  sweepOver({ ...(memory && { memory }), ...onDisk }, title, suite);
}

/** What a disk cannot make worse: it takes a minute there. */
export function sweepInMemory(title: string, suite: (createStore: () => CreateStore) => void): void {
  sweepOver(inMemory, title, suite);
}

function sweepOver(
  stores: SweptStores,
  title: string,
  suite: (createStore: () => CreateStore, name: string) => void,
): void {
  describe.each(Object.entries(stores))(`${title} (%s)`, (name, storeIn) => {
    let folder: Awaited<ReturnType<typeof temporaryFolder>>;
    beforeAll(async () => {
      folder = await temporaryFolder();
    });
    afterAll(() => folder.remove());
    suite(() => storeIn(folder.path), name);
  });
}

/** Starts or goes on; a pause that is there already is where to go on from. */
export async function goOn(agent: Agent): Promise<readonly string[] | ExecutionResult> {
  try {
    const result = await agent.send('sell', { sessionId: 'order-7', inputId: 'input-1' });
    return result.approvalIds ?? result;
  } catch (error) {
    if (isSDKError(error, 'LOUSHO_SESSION_AWAITING_APPROVAL')) return error.details.approvalIds;
    throw error;
  }
}
