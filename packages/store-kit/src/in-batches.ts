/** Many values through Web Crypto: some at a time, so that the platform's threads have work and not all of them wait in memory. */

const AT_ONCE = 256;

/** In the order of the items. Rejects with the first one's reason when all of its batch have settled, so that none rejects unheard. */
export async function inBatches<Item, Result>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += AT_ONCE) {
    const batch = items.slice(start, start + AT_ONCE);
    const outcomes = await Promise.allSettled(batch.map((item, index) => work(item, start + index)));
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') throw outcome.reason;
      results.push(outcome.value);
    }
  }
  return results;
}
