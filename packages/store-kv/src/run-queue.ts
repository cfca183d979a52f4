/**
 * The writes of each run in their order. KV takes one write a second for a key, so saves that come together are written together, and so
 * are those that come while KV refuses one: the newest state is put, and each save gets its entry in the history.
 */
import type { Checkpoint } from '@lousho/contract';
import type { KVClient } from './kv-client.ts';
import { isThrottled } from './kv-errors.ts';

export interface Holder {
  readonly owner: string;
  readonly fence: number | undefined;
}
export interface PendingSave {
  readonly checkpoint: Checkpoint;
  /** Saves only while this holder has the lease. */
  readonly holder: Holder | undefined;
}
export type SaveOutcome =
  | { readonly kind: 'saved' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** One outcome for each save. Rejects when none of them is stored. */
export type WriteSaves = (id: string, saves: readonly PendingSave[]) => Promise<readonly SaveOutcome[]>;

interface QueuedSave extends PendingSave {
  readonly kind: 'save';
  readonly settle: (outcome: SaveOutcome) => void;
}
interface QueuedTask {
  readonly kind: 'task';
  readonly run: () => Promise<void>;
}

/** As often as one write alone is tried. */
const MAX_TRIES = 10;

export class RunQueue {
  readonly #jobs = new Map<string, (QueuedSave | QueuedTask)[]>();
  readonly #client: KVClient;
  readonly #write: WriteSaves;

  constructor(client: KVClient, write: WriteSaves) {
    this.#client = client;
    this.#write = write;
  }

  /** `false` when the holder has lost the lease. */
  async save(id: string, save: PendingSave): Promise<boolean> {
    const outcome = await new Promise<SaveOutcome>((settle) => {
      this.#add(id, { ...save, kind: 'save', settle });
    });
    if (outcome.kind === 'failed') throw outcome.error;
    return outcome.kind === 'saved';
  }

  /** Something that is no save, between the saves before it and those behind it. */
  async task(id: string, run: () => Promise<void>): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#add(id, { kind: 'task', run: () => run().then(resolve, reject) });
    });
  }

  #add(id: string, job: QueuedSave | QueuedTask): void {
    const jobs = this.#jobs.get(id);
    if (jobs !== undefined) {
      jobs.push(job);
      return;
    }
    const begun = [job];
    this.#jobs.set(id, begun);
    void this.#work(id, begun);
  }

  async #work(id: string, jobs: (QueuedSave | QueuedTask)[]): Promise<void> {
    // What comes in the same turn goes along.
    await Promise.resolve();
    for (let job = jobs[0]; job !== undefined; job = jobs[0]) {
      if (job.kind === 'task') {
        await job.run();
        jobs.shift();
      } else {
        await this.#saveAll(id, jobs);
      }
    }
    this.#jobs.delete(id);
  }

  /** The saves at the head of the queue, up to the first task. */
  async #saveAll(id: string, jobs: (QueuedSave | QueuedTask)[]): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const saves = leadingSaves(jobs);
      let outcomes: readonly SaveOutcome[];
      try {
        outcomes = await this.#write(id, saves);
      } catch (error) {
        if (tries < MAX_TRIES && isThrottled(error)) {
          await this.#client.waitForSlot(tries);
          // With those that came meanwhile, and asked anew who holds the lease.
          continue;
        }
        outcomes = saves.map(() => ({ kind: 'failed', error }));
      }
      jobs.splice(0, saves.length);
      saves.forEach(({ settle }, index) => settle(outcomes[index] ?? { kind: 'refused' }));
      return;
    }
  }
}

function leadingSaves(jobs: readonly (QueuedSave | QueuedTask)[]): readonly QueuedSave[] {
  const saves: QueuedSave[] = [];
  for (const job of jobs) {
    if (job.kind !== 'save') break;
    saves.push(job);
  }
  return saves;
}
