/** Chance that can be repeated: `LOUSHO_SEED` chooses it, else the clock does, and whoever uses it prints the seed. */

export interface Random {
  readonly seed: number;
  /** From 0 up to, not including, 1. */
  next(): number;
  /** A whole number from 0 up to, not including, `bound`. */
  below(bound: number): number;
  pick<Item>(items: readonly Item[]): Item;
}

export function seededRandom(rig: string): Random {
  const given = process.env['LOUSHO_SEED'];
  const seed = given === undefined ? Date.now() % 1_000_000 : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`LOUSHO_SEED must be a whole number; got "${given}"`);
  console.log(`${rig}: seed ${seed} (LOUSHO_SEED=${seed} chooses the same moments)`);
  return randomFrom(seed);
}

/** mulberry32, public domain. */
function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return { seed, next, below, pick: (items) => items[below(items.length)] as never };
}
