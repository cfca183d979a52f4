/** A worker of `npm run simulate`: runs its share of the seeds and tells of each that breaks a promise. */
import { parentPort, workerData } from 'node:worker_threads';
import { simulateSeed } from './simulate-seed.ts';

export interface Share {
  readonly first: number;
  readonly count: number;
  /** From one seed of the share to the next. */
  readonly step: number;
}
/** Behind each seed. */
export interface SeedRun {
  readonly seed: number;
  /** What to print when a promise is broken. */
  readonly failure?: string;
}

const { first, count, step } = workerData as Share;
for (let index = 0; index < count; index += 1) {
  const seed = first + index * step;
  const failure = await simulateSeed(seed);
  parentPort?.postMessage({ seed, ...(failure === undefined ? undefined : { failure }) } satisfies SeedRun);
}
