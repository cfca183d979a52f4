/** fast-check with the seed of this run: printed when a property fails, and replayed with `LOUSHO_SEED=<number>`. */
import fc from 'fast-check';

const { LOUSHO_SEED: given, LOUSHO_CASES: cases } = process.env;

/** One seed for every property of a test run. */
export const seed = given === undefined ? Math.floor(Math.random() * 0x7fff_ffff) : Number(given);
if (!Number.isSafeInteger(seed)) throw new Error('LOUSHO_SEED must be a whole number');

/** How many cases a property has, unless `LOUSHO_CASES` says otherwise. */
export function caseCount(usual: number): number {
  return cases === undefined ? usual : Number(cases);
}

fc.configureGlobal({
  seed,
  numRuns: caseCount(200),
});

export { fc };
