/** The suite as a Worker runs it: in workerd, on its own namespace. One request asks for the rules of one group. */
import { check } from '@lousho/testing/conformance';
import { checkpointHeader } from '@lousho/contract';
import { KVStore, type KVNamespaceLike } from '../../src/index.ts';
import { last, runOf } from './runs.ts';
import { waitingPorts } from './waiting-ports.ts';

interface Env {
  readonly RUNS: KVNamespaceLike;
}
export interface RuleReport {
  readonly id: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly message: string | undefined;
}

let storageCount = 0;

export default {
  async fetch(request: Request, { RUNS }: Env): Promise<Response> {
    const group = new URL(request.url).pathname.slice(1);
    if (group === 'limits') return Response.json(await atTheLimits(RUNS));
    const report = await check(
      {
        name: 'store-kv in workerd',
        claims: {
          leases: 'best-effort',
          history: true,
          list: true,
          durable: 'power',
          consistency: 'eventual',
        },
        historyLimit: 50,
        async createStorage(clock) {
          const prefix = `${group}-${(storageCount += 1)}/`;
          const damage = async (key: string): Promise<void> => {
            const value = (await RUNS.get(key)) ?? '';
            await RUNS.put(key, value.slice(0, value.length / 2));
          };
          return {
            open: async () => new KVStore(RUNS, { prefix, ports: waitingPorts(clock) }),
            destroy: async () => undefined,
            corrupt: (id) => damage(`${prefix}${id}`),
            corruptApproval: (id) => damage(`${prefix}#approval/${id}`),
            corruptSession: (id) => damage(`${prefix}#session/${id}`),
          };
        },
      },
      { only: [group] },
    );
    const rules = report.results.map(({ rule, outcome, failure, reason }): RuleReport => {
      return { id: rule.id, outcome, message: failure?.message ?? reason };
    });
    return Response.json(rules);
  },
};

/** The longest keys, metadata with text that is not well-formed, and a transcript in parts: what went in, and what came back. */
async function atTheLimits(
  kv: KVNamespaceLike,
): Promise<{ readonly stored: unknown; readonly read: unknown }> {
  const store = new KVStore(kv, { prefix: `${'p'.repeat(127)}/` });
  const id = 'i'.repeat(300);
  const metadata = { content: 'half a pair: \ud83d', long: 'x'.repeat(300) };
  const states = runOf(60, { metadata });
  for (const state of states) await store.checkpoints.save(id, state);
  const other = new KVStore(kv, { prefix: `${'p'.repeat(127)}/` }).checkpoints;
  const [entry] = (await other.listHeaders?.()) ?? [];
  const read = [await other.load(id), entry?.header];
  await other.delete(id);
  const left = await kv.list?.({ prefix: 'pppp' });
  return {
    stored: [last(states), checkpointHeader(last(states)), []],
    read: [...read, left?.keys.map(({ name }) => name)],
  };
}
