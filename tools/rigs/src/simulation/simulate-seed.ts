/** One seed, with the agent and the stores of this repository, and what to print of it when a promise is broken. */
import { createAgent } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { simulate, type SimulationReport } from '@lousho/testing/simulation';

/** Enough to see what led to it. */
const SHOWN_LINES = 40;

/** `undefined` when every promise was kept. */
export async function simulateSeed(seed: number): Promise<string | undefined> {
  const report = await simulate({ seed, createAgent, ...storeOf(seed) });
  return report.broken === undefined ? undefined : describeFailure(report);
}

/** Mostly the store that is fast; the plainest one now and then, so that no promise rests on how the fast one shares what it holds. */
function storeOf(seed: number) {
  return seed % 8 === 0
    ? {}
    : {
        createStore: (ports: Parameters<typeof memoryStore>[0] & object) =>
          memoryStore({ ports: ports as never }),
      };
}

function describeFailure({ seed, broken, blows, trace }: SimulationReport): string {
  const struck = blows.map(({ kind, atMs, forMs, machine }) => {
    return `  at ${(atMs / 1_000).toFixed(3)} s, machine ${machine}: ${kind}, ${forMs} ms`;
  });
  return [
    `Seed ${seed} breaks "${broken?.promise}": ${broken?.text}`,
    `It needs these blows${struck.length === 0 ? ': none' : ':'}`,
    ...struck,
    `The last of ${trace.length} events:`,
    ...trace.slice(-SHOWN_LINES).map((line) => `  ${line}`),
    `Again: npm run simulate -- --seeds 1 --seed ${seed}`,
  ].join('\n');
}
