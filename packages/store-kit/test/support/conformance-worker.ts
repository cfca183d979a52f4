/** The suite as a Worker runs it, over a sealed store in the memory of workerd. One request asks for the rules of one group. */
import { memoryStore } from '@lousho/store-memory';
import { testPorts } from '@lousho/testing';
import { check } from '@lousho/testing/conformance';
import { encryptedStore } from '../../src/index.ts';
import { testKey } from './keys.ts';

export interface RuleReport {
  readonly id: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly message: string | undefined;
}

export default {
  async fetch(request: Request): Promise<Response> {
    const report = await check(
      {
        name: 'store-kit in workerd',
        claims: { leases: 'atomic', history: true, list: true, durable: 'memory', consistency: 'strong' },
        historyLimit: 50,
        async createStorage(clock) {
          const store = encryptedStore(memoryStore({ ports: testPorts(clock) }), [testKey('2026-01')]);
          return { open: async () => store, destroy: () => store.close() };
        },
      },
      { only: [new URL(request.url).pathname.slice(1)] },
    );
    const rules = report.results.map(({ rule, outcome, failure, reason }): RuleReport => {
      return { id: rule.id, outcome, message: failure?.message ?? reason };
    });
    return Response.json(rules);
  },
};
