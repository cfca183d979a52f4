/** One storage, the time around it, and the processes that use it: every scenario runs on each store. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Checkpoint, DurabilityOptions, FullAgentStore, Ports, StoreOptions } from '@lousho/contract';
import { fileStore } from '@lousho/store-file';
import { memoryStore } from '@lousho/store-memory';
import { SqliteStore } from '@lousho/store-sqlite';
import { testPorts, type ManualClock } from '@lousho/testing';
import { afterEach, beforeEach, describe } from 'vitest';
import { createAgent, type Agent, type AgentConfig } from '../../src/index.ts';
import { patientClock, type PatientClock } from './patient-clock.ts';

export type StoreName = 'memory' | 'sqlite' | 'file';
/** Left out: what the process gives. */
export type ProcessAgentConfig = Omit<AgentConfig, 'ports'>;

interface Process {
  readonly store: FullAgentStore;
  readonly checkpoints: FullAgentStore['checkpoints'];
  readonly ports: Ports;
  /** An agent on this process's handle of the storage, its clock and its ids. */
  agent(config: ProcessAgentConfig): Agent;
}
export interface World extends Process {
  readonly clock: ManualClock;
  /** Another process on the same data. On a clock of its own it dies in silence: its heartbeats stop while ours goes on. */
  otherProcess(clock?: ManualClock): Process;
  stored(id: string): Promise<Checkpoint | null>;
  /** Every save of a run, oldest first. */
  saves(id: string): Promise<readonly Checkpoint[]>;
}

/** Runs one and the same suite on every store. */
export function onEveryStore(title: string, suite: (world: World, name: StoreName) => void): void {
  for (const name of Object.keys(storages) as StoreName[]) {
    describe(`${title} (${name})`, () => {
      const world = new StoredWorld(storages[name]);
      beforeEach(() => world.begin());
      afterEach(() => world.end());
      suite(world, name);
    });
  }
}

interface Storage {
  open(options: StoreOptions): FullAgentStore;
  close(): Promise<void>;
}

const storages: { readonly [Name in StoreName]: (clock: PatientClock) => Promise<Storage> } = {
  async memory(clock) {
    const store = memoryStore({ ports: testPorts(clock) });
    return { open: () => handleOn(store), close: () => store.close() };
  },
  sqlite: () => storedIn((folder, options) => new SqliteStore(path.join(folder, 'agent.db'), options)),
  file: (clock) => storedIn((folder, options) => clock.watch(fileStore(folder, options))),
};

/** Each handle opens the folder anew, as another process does. */
async function storedIn(
  open: (folder: string, options: StoreOptions & DurabilityOptions) => FullAgentStore,
): Promise<Storage> {
  const folder = await temporaryFolder();
  const handles: FullAgentStore[] = [];
  return {
    open(options) {
      // Tests of agents kill no power: without the syncs they take seconds less.
      const handle = open(folder.path, { ...options, durability: 'process' });
      handles.push(handle);
      return handle;
    },
    async close() {
      for (const handle of handles) await handle.close();
      await folder.remove();
    },
  };
}

/** A second object over the same memory: to the queue of this process, and to leases, it is another one. */
function handleOn(store: FullAgentStore): FullAgentStore {
  return { ...store, checkpoints: { ...store.checkpoints }, approvals: { ...store.approvals } };
}

class StoredWorld implements World {
  readonly #openStorage: (clock: PatientClock) => Promise<Storage>;
  #storage: Storage | undefined;
  #clock: ManualClock | undefined;
  #first: Process | undefined;

  constructor(openStorage: (clock: PatientClock) => Promise<Storage>) {
    this.#openStorage = openStorage;
  }

  async begin(): Promise<void> {
    const clock = patientClock();
    this.#clock = clock;
    this.#storage = await this.#openStorage(clock);
    this.#first = this.otherProcess();
  }

  async end(): Promise<void> {
    await this.#storage?.close();
  }

  get clock(): ManualClock {
    return begun(this.#clock);
  }
  get store(): FullAgentStore {
    return begun(this.#first).store;
  }
  get checkpoints(): FullAgentStore['checkpoints'] {
    return this.store.checkpoints;
  }
  get ports(): Ports {
    return begun(this.#first).ports;
  }

  agent(config: ProcessAgentConfig): Agent {
    return begun(this.#first).agent(config);
  }

  otherProcess(clock: ManualClock = this.clock): Process {
    const ports = testPorts(clock);
    const store = begun(this.#storage).open({ ports });
    return {
      store,
      checkpoints: store.checkpoints,
      ports,
      agent: (config) => createAgent({ store, ports, ...config }),
    };
  }

  stored(id: string): Promise<Checkpoint | null> {
    return this.checkpoints.load(id);
  }

  async saves(id: string): Promise<readonly Checkpoint[]> {
    const entries = await this.checkpoints.history(id);
    return entries.map(({ checkpoint }) => checkpoint).reverse();
  }
}

function begun<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('The world is there only inside a test.');
  return value;
}

/** A folder that is gone after the test. */
export async function temporaryFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'lousho-core-'));
  return { path: folder, remove: () => rm(folder, { recursive: true, force: true }) };
}
