/** Choices that look random and are the same for the same seed, so that a failure can be made again. */

export interface SeededRandom {
  /** 0 to `below` - 1. */
  below(count: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** `true` in about that share of the calls, 0 to 1. */
  chance(share: number): boolean;
}

/** Mulberry32: 32 bits of state, good enough to choose commands. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count: number): number => Math.floor(next() * count);
  return {
    below,
    pick<Item>(items: readonly Item[]): Item {
      if (items.length === 0) throw new Error('Invariant: there is nothing to pick from.');
      return items[below(items.length)] as Item;
    },
    chance: (share) => next() < share,
  };
}
