/** The suite as a Worker runs it: in workerd, on its own namespace. One request asks for the rules of one group. */
import { check } from '@lousho/testing/conformance';
import { KVStore, type KVNamespaceLike } from '../../src/index.ts';
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
