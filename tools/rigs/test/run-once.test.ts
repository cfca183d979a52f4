/** What is delivered at least once is done once: 50 deliveries at one moment to three processes are one run with one effect. */
import { expect, it } from 'vitest';
import { describeViolations, findViolations } from '../src/checker.ts';
import { Rig } from '../src/rig.ts';
import type { Ending, WorkerProcess } from '../src/worker-process.ts';
import type { StoreKind } from '../workers/open-store.mjs';

const JOB = 'webhook-7';
const DELIVERIES = 50;

it.each(['sqlite', 'file'] as const)(
  'gives every delivery the same result over %s, at once or after a coded refusal',
  async (storeKind) => {
    const rig = new Rig('run-once', { storeKind: storeKind satisfies StoreKind });
    const agent = { script: [[{ name: 'work', args: { ms: 50 } }], []] } as const;
    const workers = await Promise.all([1, 2, 3].map(() => rig.startReady({ agent })));
    const deliver = (index: number): Promise<Ending> =>
      (workers[index % workers.length] as WorkerProcess).perform(JOB, { type: 'once', inputId: 'delivery' });

    const first = await Promise.all(Array.from({ length: DELIVERIES }, (_none, index) => deliver(index)));
    const refused = first.filter((ending) => ending.type !== 'resolved');
    expect(refused.map(codeOf)).toEqual(refused.map(() => 'LOUSHO_SESSION_BUSY'));
    expect(refused.length).toBeLessThan(DELIVERIES);
    const retried = first.map(async (ending, index) =>
      ending.type === 'resolved' ? ending : deliver(index),
    );
    const again = await Promise.all(retried);

    const told = again.map((ending) => (ending.type === 'resolved' ? ending.told : ending));
    expect(told).toEqual(told.map(() => told[0]));
    expect(told[0]).toMatchObject({ finishReason: 'stop', toolCalls: [{ toolName: 'work' }] });
    const kinds = rig.log().map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'tool.started')).toHaveLength(1);
    const finals = new Map([[JOB, await rig.load(JOB)]]);
    const evidence = { log: rig.log(), looks: [], finals, leaseTtlMs: 30_000 };
    expect(describeViolations(findViolations(evidence))).toBe('');
  },
);

function codeOf(ending: Ending): string {
  return ending.type === 'rejected' ? (ending.code ?? ending.message) : ending.type;
}
